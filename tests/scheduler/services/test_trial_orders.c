/* Sorted lists: every order is the one that is made here of the same trials, at once and after the
 * trials changed, within a limit of memory, and whoever asks. */
#include "scheduler/services/trial_orders.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/check_main.h"
#include "tests/support/service.h"

#define TRIALS 60

static struct service s;
static struct as_err err;
static int64_t epoch;

static const struct trial_query sorts[] = {
    {.sort = TRIAL_BY_VALUE},
    {.sort = TRIAL_BY_STARTED},
    {.sort = TRIAL_BY_FINISHED},
    {.sort = TRIAL_BY_DURATION},
    {.sort = TRIAL_BY_CREATED},
    {.sort = TRIAL_BY_STATE},
    {.sort = TRIAL_BY_METRIC, .name = "loss"},
    {.sort = TRIAL_BY_METRIC, .name = "val/acc"},
    {.sort = TRIAL_BY_METRIC, .name = "never"},
    {.sort = TRIAL_BY_PARAM, .name = "x"},
    {.sort = TRIAL_BY_PARAM, .name = "kind"},
    {.sort = TRIAL_BY_PARAM, .name = "size"},
    {.sort = TRIAL_BY_PARAM, .name = "flag"},
};

/* What a trial is sorted by here, of the row that the list by number has. NAN: nothing. */
static double key_of(const struct trial_query *q, const struct trial_row *r)
{
    JSON_AUTO values = json_plain(q->sort == TRIAL_BY_METRIC ? r->metrics : r->params);
    const json_t *v = q->name ? json_object_get(values, q->name) : NULL;
    switch (q->sort) {
    case TRIAL_BY_VALUE:
        return r->has_value ? r->value : NAN;
    case TRIAL_BY_STARTED:
        return r->started_ms ? (double)r->started_ms : NAN;
    case TRIAL_BY_FINISHED:
        return r->finished_ms ? (double)r->finished_ms : NAN;
    case TRIAL_BY_CREATED:
        return (double)r->created_ms;
    case TRIAL_BY_STATE:
        return r->state;
    default:
        break;
    }
    if (json_is_string(v) && strcmp(q->name, "kind") == 0) /* in the document's order */
        return strcmp(json_string_value(v), "sgd") == 0 ? 0 : 1;
    if (json_is_string(v)) /* of a metric */
        return strcmp(json_string_value(v), "Infinity") == 0    ? INFINITY
               : strcmp(json_string_value(v), "-Infinity") == 0 ? -INFINITY
                                                                : NAN;
    if (json_is_boolean(v))
        return json_is_true(v);
    return v ? json_number_value(v) : NAN;
}

static size_t read_list(struct trial_query q, int64_t size, struct trial_row *ret)
{
    size_t n = 0;
    q.page = (struct page_req){.size = size};
    do {
        struct trial_page page;
        ck_ok(trial_list(s.db, s.orders, &s.a, "a", &q, &page, &err), err);
        ck_assert_uint_le(n + page.n, TRIALS);
        memcpy(ret + n, page.rows, page.n * sizeof *ret);
        n += page.n;
        q.page.cursor = page.next_cursor;
    } while (q.page.cursor);
    return n;
}

/* Durations are of microseconds in the database and of milliseconds in a row. */
static bool may_follow(const struct trial_query *q, const struct trial_row *a,
                       const struct trial_row *b)
{
    if (q->sort == TRIAL_BY_DURATION) {
        if (!a->finished_ms || !b->finished_ms)
            return a->finished_ms || !b->finished_ms;
        int64_t x = a->finished_ms - a->started_ms, y = b->finished_ms - b->started_ms;
        return q->descending ? x + 1 >= y : x <= y + 1;
    }
    double x = key_of(q, a), y = key_of(q, b);
    if (isnan(x) || isnan(y))
        return !isnan(x) || (isnan(y) && a->number < b->number);
    if (x == y) /* times of one millisecond may differ in microseconds */
        return a->number < b->number || q->sort == TRIAL_BY_STARTED ||
               q->sort == TRIAL_BY_FINISHED || q->sort == TRIAL_BY_CREATED;
    return q->descending ? x > y : x < y;
}

static void check_orders(void)
{
    static struct trial_row all[TRIALS], rows[TRIALS];
    size_t n = read_list((struct trial_query){0}, 1000, all);
    for (size_t i = 0; i < 2 * AS_ARRAY_LEN(sorts); i++) {
        struct trial_query q = sorts[i / 2];
        bool is_there[TRIALS] = {false};
        q.descending = i % 2;
        ck_assert_uint_eq(read_list(q, 1 + (int64_t)(i * 7 % 40), rows), n);
        for (size_t k = 0; k < n; k++) {
            ck_assert(!is_there[rows[k].number]);
            is_there[rows[k].number] = true;
            ck_assert_msg(k == 0 || may_follow(&q, &rows[k - 1], &rows[k]),
                          "sort %d %s, descending %d: trial %d before %d", (int)q.sort,
                          q.name ? q.name : "", q.descending, (int)rows[k - 1].number,
                          (int)rows[k].number);
        }
        trial_state running = TRIAL_RUNNING;
        q.state = &running;
        size_t n_running = read_list(q, 3, rows), expected = 0;
        for (size_t k = 0; k < n; k++)
            expected += all[k].state == TRIAL_RUNNING;
        ck_assert_uint_eq(n_running, expected);
    }
}

static void make(void)
{
    struct sweep_row row;
    JSON_AUTO doc = json_of(
        "{'name': 'a', 'metric': {'name': 'loss', 'goal': 'minimize'}, 'parameters': {'x': "
        "{'type': "
        "'float', 'min': 0, 'max': 1}, 'kind': {'type': 'categorical', 'values': ['sgd', 'adam']}, "
        "'size': {'type': 'ordinal', 'values': [64, 8, 128]}, 'flag': {'type': 'bool', 'when': "
        "{'kind': 'adam'}}}, 'search': {'method': 'random', 'seed': 3}, 'limits': {'max_trials': "
        "60}, 'trial': {'command': ['true']}}");
    ck_ok(sweep_create(s.db, &s.a, doc, NULL, &row, &err), err);
    epoch = make_runner(&s, "r", TRIALS);
}

/* Begin `n` trials; some of them report, some end. */
static void go_on(int n, int seed)
{
    struct claim_list list = claim(&s, "r", epoch, n);
    for (size_t i = 0; i < list.n; i++) {
        struct attempt_ref ref = ref_of(&list.rows[i]);
        int what = (int)(i + (size_t)seed) % 7;
        if (what == 0)
            measure(&s, ref, "loss", 1, NAN);
        else if (what == 1)
            measure(&s, ref, "loss", 1, i % 2 ? INFINITY : -INFINITY);
        else if (what < 4)
            measure(&s, ref, "val/acc", 1, (double)(i * 5 % 11));
        if (what > 2)
            finish(&s, ref, (double)(i * 3 % 5));
    }
}

START_TEST(orders_follow_what_happens)
{
    make();
    check_orders(); /* of nothing */
    for (int i = 0; i < 4; i++) {
        go_on(13, i);
        check_orders();
    }
}
END_TEST

START_TEST(a_page_goes_on_where_it_ended_while_trials_arrive)
{
    struct trial_page page;
    int64_t last = -1;
    make();
    go_on(20, 3);
    struct trial_query q = {.sort = TRIAL_BY_PARAM, .name = "x", .page = {.size = 2}};
    bool seen[TRIALS] = {false};
    double x = -1;
    do {
        ck_ok(trial_list(s.db, s.orders, &s.a, "a", &q, &page, &err), err);
        for (size_t i = 0; i < page.n; i++) {
            double now = key_of(&q, &page.rows[i]);
            ck_assert(now > x || (now == x && page.rows[i].number > last));
            ck_assert(!seen[page.rows[i].number]);
            seen[page.rows[i].number] = true;
            x = now;
            last = page.rows[i].number;
        }
        q.page.cursor = page.next_cursor;
        go_on(1, 1);
    } while (q.page.cursor);
    for (int i = 0; i < 20; i++)
        ck_assert(seen[i]); /* those that were there at the beginning */
}
END_TEST

START_TEST(memory_is_bounded)
{
    struct trial_page page;
    make();
    go_on(40, 0);
    AS_AUTO(trial_orders_freep) struct trial_orders *small = trial_orders_create(4 << 10);
    ck_assert_ptr_nonnull(small);
    for (size_t i = 0; i < 3 * AS_ARRAY_LEN(sorts); i++) {
        struct trial_query q = sorts[i % AS_ARRAY_LEN(sorts)];
        ck_ok(trial_list(s.db, small, &s.a, "a", &q, &page, &err), err);
        ck_assert_uint_eq(page.n, 40);
        ck_assert_uint_le(trial_orders_bytes(small), 4 << 10);
    }
    ck_assert_uint_gt(trial_orders_bytes(small), 0);
}
END_TEST

START_TEST(what_is_not_there_is_said)
{
    struct trial_page page;
    make();
    go_on(3, 0);
    struct trial_query q = {.sort = TRIAL_BY_PARAM, .name = "y"};
    ck_fails(trial_list(s.db, s.orders, &s.a, "a", &q, &page, &err), AS_E_INVAL, err,
             "no parameter 'y'");
    q.name = "x";
    q.page.size = 1;
    ck_ok(trial_list(s.db, s.orders, &s.a, "a", &q, &page, &err), err);
    struct trial_query other = {
        .sort = TRIAL_BY_PARAM, .name = "kind", .page.cursor = page.next_cursor};
    ck_fails(trial_list(s.db, s.orders, &s.a, "a", &other, &page, &err), AS_E_INVAL, err,
             "another order");
}
END_TEST

static void *read_again_and_again(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20; i++) {
        AS_AUTO(arena_done) struct arena a = {0};
        struct trial_query q = sorts[i % AS_ARRAY_LEN(sorts)];
        struct trial_page page;
        struct as_err own = {0};
        ck_ok(trial_list(s.db, s.orders, &a, "a", &q, &page, &own), own);
    }
    return NULL;
}

START_TEST(many_read_at_once)
{
    pthread_t readers[4];
    make();
    for (size_t i = 0; i < AS_ARRAY_LEN(readers); i++)
        ck_assert_int_eq(pthread_create(&readers[i], NULL, read_again_and_again, NULL), 0);
    for (int i = 0; i < 4; i++)
        go_on(10, i);
    for (size_t i = 0; i < AS_ARRAY_LEN(readers); i++)
        ck_assert_int_eq(pthread_join(readers[i], NULL), 0);
    check_orders();
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("trial_orders");
    TCase *t = service_case(suite, "trial_orders", &s, 0);
    tcase_add_test(t, orders_follow_what_happens);
    tcase_add_test(t, a_page_goes_on_where_it_ended_while_trials_arrive);
    tcase_add_test(t, memory_is_bounded);
    tcase_add_test(t, what_is_not_there_is_said);
    tcase_add_test(t, many_read_at_once);
    return suite;
}
