/* Points and attempts of a sweep over a database: what counts, what changed since, also on another
 * server, and lines that take several rounds to read. */
#include <math.h>
#include <stdio.h>

#include "scheduler/services/points_table.h"
#include "scheduler/services/table_export.h"
#include "scheduler/store/table_store.h"
#include "tests/scheduler/assign/ranks.h"
#include "tests/scheduler/services/columns.h"
#include "tests/support/check_main.h"

static struct table_cache *cache;

static void setup(void)
{
    open_grouped();
    cache = table_cache_create(TABLE_CACHE_BYTES);
}

static void teardown(void)
{
    table_cache_free(cache);
    close_grouped();
}

static struct columnar ask_table(const struct table_request *q)
{
    struct table_answer x;
    ck_ok(table_export(s.db, cache, &s.a, q, &x, &err), err);
    return parse_columns(&s.a, x.bytes, x.len);
}

static struct columnar points(const char *metric, const char *since)
{
    struct table_request q = {.kind = &table_of_points,
                              .sweep = "a",
                              .metric = metric,
                              .max_points = POINTS_LINE_MAX,
                              .has_since = since != NULL};
    if (since)
        ck_ok(as_parse_i64(since, &q.since, &err), err);
    return ask_table(&q);
}

static struct columnar attempts(const char *sweep, const char *since)
{
    struct table_request q = {
        .kind = &table_of_attempts, .sweep = sweep, .has_since = since != NULL};
    if (since)
        ck_ok(as_parse_i64(since, &q.since, &err), err);
    return ask_table(&q);
}

static void check_point(const struct columnar *f, size_t row, int trial, int step, double value)
{
    ck_assert_double_eq(number(f, "trial", row), trial);
    ck_assert_double_eq(number(f, "step", row), step);
    ck_assert_double_eq(number(f, "value", row), value);
    ck_assert_double_ge(number(f, "time", row), 0);
    ck_assert_double_lt(number(f, "time", row), 600);
}

START_TEST(the_value_that_counts)
{
    make_sweep(&s, "a", "'max_trials': 3, 'max_restarts': 3", "");
    int64_t epoch = make_runner(&s, "r", 3);
    struct claim_list list = claim(&s, "r", epoch, 2);
    struct attempt_ref first = ref_of(&list.rows[0]);
    for (int i = 1; i <= 4; i++)
        measure(&s, first, "loss", i, i);
    measure(&s, first, "acc", 1, NAN);
    struct columnar f = points(NULL, NULL);
    ck_assert_uint_eq(f.n_rows, 4);
    for (int i = 0; i < 4; i++)
        check_point(&f, (size_t)i, 0, i + 1, i + 1);
    ck_assert_uint_eq(points("loss", NULL).n_rows, 4);
    ck_assert_uint_eq(points("nobody", NULL).n_rows, 0);
    ck_assert_uint_eq(points("acc", NULL).n_rows, 1);

    /* A second attempt begins at step 2 again: its values count from there. */
    (void)end(&s, first, OUTCOME_RETRY);
    struct attempt_ref second = ref_of(&claim(&s, "r", epoch, 1).rows[0]);
    ck_assert_int_eq(second.number, 0);
    measure(&s, second, "loss", 2, 20);
    struct columnar now = points(NULL, f.version);
    ck_assert(!now.is_whole);
    ck_assert_uint_eq(now.n_rows, 4);
    check_point(&now, 0, 0, 1, 1);
    check_point(&now, 1, 0, 2, 20);
    check_point(&now, 2, 0, 3, 3);
    measure(&s, second, "loss", 3, 30);
    measure(&s, second, "loss", 5, 50);
    measure(&s, ref_of(&list.rows[1]), "loss", 1, 9);
    struct columnar later = points(NULL, now.version);
    ck_assert_uint_eq(later.n_rows, 6);
    check_point(&later, 2, 0, 3, 30);
    check_point(&later, 3, 0, 4, 4);
    check_point(&later, 4, 0, 5, 50);
    check_point(&later, 5, 1, 1, 9);
    ck_assert_uint_eq(points(NULL, later.version).n_rows, 0);

    /* Another server answers the same. */
    table_cache_free(cache);
    cache = table_cache_create(TABLE_CACHE_BYTES);
    struct columnar other = points(NULL, now.version);
    ck_assert(!other.is_whole);
    ck_assert_uint_eq(other.n_rows, 6);
    for (size_t i = 0; i < 6; i++)
        check_point(&other, i, (int)number(&later, "trial", i), (int)number(&later, "step", i),
                    number(&later, "value", i));
}
END_TEST

/* More points than one round reads of a trial; and of a running one only what is new. */
START_TEST(long_lines)
{
    make_sweep(&s, "a", "'max_trials': 3", "");
    int64_t epoch = make_runner(&s, "r", 3);
    struct claim_list list = claim(&s, "r", epoch, 3);
    enum { STEPS = 3000 };
    static struct measurement m[STEPS];
    int64_t n = 0;
    for (int i = 0; i < STEPS; i++)
        m[i] = (struct measurement){i, "loss", i == 1234 ? -5 : i};
    for (int i = 0; i < STEPS; i += 500) {
        struct attempt_ref ref = ref_of(&list.rows[1]);
        ck_ok(attempt_measure(s.db, &ref, NULL, m + i, 500, &n, &err), err);
    }
    for (int i = 0; i < 256; i++) /* exactly the points of a round */
        measure(&s, ref_of(&list.rows[2]), "loss", i, i);
    struct columnar f = points(NULL, NULL);
    bool has_lowest = false;
    size_t n_long = 0;
    for (size_t i = 0; i < f.n_rows; i++) {
        n_long += number(&f, "trial", i) == 1;
        has_lowest = has_lowest || number(&f, "value", i) == -5;
    }
    ck_assert(has_lowest);
    ck_assert_uint_gt(n_long, POINTS_LINE_MAX / 4);
    ck_assert_uint_le(n_long, POINTS_LINE_MAX);
    ck_assert_uint_eq(f.n_rows - n_long, 256);
    ck_assert_double_eq(number(&f, "step", n_long - 1), STEPS - 1);
    measure(&s, ref_of(&list.rows[1]), "loss", STEPS, 0.5);
    f = points(NULL, f.version);
    ck_assert_uint_le(f.n_rows, POINTS_LINE_MAX);
    check_point(&f, f.n_rows - 1, 1, STEPS, 0.5);
}
END_TEST

/* The chunks of a range of trials, three at a time: only trials that are whole count. */
static int64_t read_in(int64_t from, int64_t to, int64_t chunks, struct point_row **rows, size_t *n)
{
    const struct point_range range = {from, to, chunks};
    int64_t key = 0, next = 0;
    const char *metric = NULL;
    struct tx_run run = tx_run_start(s.db, TX_READ, &err);
    while (tx_run_again(&run)) {
        run.status = store_table_sweep(run.tx, &s.a, "a", &key, &metric, &err);
        if (run.status == AS_OK)
            run.status =
                store_table_points_in(run.tx, &s.a, key, metric, &range, rows, n, &next, &err);
    }
    ck_ok(run.status, err);
    return next;
}

START_TEST(a_range_of_trials)
{
    make_sweep(&s, "a", "'max_trials': 6, 'max_restarts': 3", "");
    int64_t epoch = make_runner(&s, "r", 6);
    struct claim_list list = claim(&s, "r", epoch, 6);
    struct point_row *rows = NULL;
    size_t n = 0;
    for (int i = 0; i < 2; i++)
        measure(&s, ref_of(&list.rows[0]), "loss", i, i);
    measure(&s, ref_of(&list.rows[1]), "acc", 1, 1);
    for (int i = 0; i < 130; i++) /* three chunks */
        measure(&s, ref_of(&list.rows[2]), "loss", i, i == 7 ? INFINITY : i);
    measure(&s, ref_of(&list.rows[4]), "loss", 9, NAN);
    ck_assert_int_eq(read_in(0, 6, 100, &rows, &n), 6);
    ck_assert_uint_eq(n, 133);
    ck_assert_int_eq(rows[1].step, 1);
    ck_assert_double_eq(rows[2 + 7].value, INFINITY);
    ck_assert_double_nan(rows[132].value);
    ck_assert(rows[132].has_seconds && rows[132].seconds >= 0 && rows[132].seconds < 600);
    ck_assert_int_eq(read_in(0, 6, 3, &rows, &n), 2); /* a part of trial 2 */
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(read_in(2, 6, 3, &rows, &n), 2); /* it alone is too much */
    ck_assert_uint_eq(n, 0);
    ck_assert_int_eq(read_in(2, 6, 4, &rows, &n), 4); /* trial 4 may have more */
    ck_assert_uint_eq(n, 130);
    ck_assert_int_eq(read_in(5, 6, 1, &rows, &n), 6);
    ck_assert_uint_eq(n, 0);
    struct columnar f = points(NULL, NULL);
    ck_assert_uint_eq(f.n_rows, 133);
    check_point(&f, 1, 0, 1, 1);
    check_point(&f, 131, 2, 129, 129);
}
END_TEST

START_TEST(known_results_have_points)
{
    make_sweep(&s, "a", "'max_trials': 3", "");
    JSON_AUTO body = json_of("{'params': {'x': 0.5}, 'metrics': {'loss': 4}}");
    struct trial_row row;
    ck_ok(trial_add(s.db, &s.a, "a", body, NULL, &row, &err), err);
    struct columnar f = points(NULL, NULL);
    ck_assert_uint_eq(f.n_rows, 1);
    ck_assert_double_eq(number(&f, "value", 0), 4);
    ck_assert_double_nan(number(&f, "time", 0)); /* it has no attempt */
    ck_assert_uint_eq(attempts("a", NULL).n_rows, 0);
}
END_TEST

START_TEST(attempts_of_runners_and_clients)
{
    make_sweep(&s, "a", "'max_trials': 4, 'max_restarts': 3", "");
    int64_t epoch = make_runner(&s, "r", 3);
    struct claim_list list = claim(&s, "r", epoch, 2);
    (void)end(&s, ref_of(&list.rows[0]), OUTCOME_RETRY);
    (void)claim(&s, "r", epoch, 1);
    struct columnar f = attempts("a", NULL);
    ck_assert_uint_eq(f.n_rows, 3);
    static const int trials[] = {0, 0, 1}, numbers[] = {1, 2, 1};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_double_eq(number(&f, "trial", i), trials[i]);
        ck_assert_double_eq(number(&f, "attempt", i), numbers[i]);
        ck_assert_double_nan(number(&f, "seat", i));
        ck_assert_str_eq(word(&f, "runner", i), "r");
        ck_assert_ptr_null(word(&f, "client", i));
        ck_assert_double_gt(number(&f, "began_at", i), 1.7e12);
    }
    ck_assert_str_eq(word(&f, "outcome", 0), "retry");
    ck_assert_double_ge(number(&f, "ended_at", 0), number(&f, "began_at", 0));
    ck_assert_ptr_null(word(&f, "outcome", 1));
    ck_assert_double_nan(number(&f, "ended_at", 1));
    finish(&s, ref_of(&list.rows[1]), 1);
    struct columnar later = attempts("a", f.version);
    ck_assert(!later.is_whole);
    ck_assert_uint_eq(later.n_rows, 1);
    ck_assert_double_eq(number(&later, "trial", 0), 1);
    ck_assert_str_eq(word(&later, "outcome", 0), "completed");
    ck_assert_uint_eq(column(&later, "outcome")->n_words, 1); /* those of its rows */

    make_learner(&s, "l", "'max_trials': 4", "");
    (void)ask_one(&s, "l", "me");
    f = attempts("l", NULL);
    ck_assert_uint_eq(f.n_rows, 1);
    ck_assert_str_eq(word(&f, "client", 0), "me");
    ck_assert_ptr_null(word(&f, "runner", 0));
}
END_TEST

START_TEST(seats_of_a_gang)
{
    make_elastic("g", "'max_trials': 1", 1);
    (void)start_gang("g", "r", 3);
    struct columnar f = attempts("g", NULL);
    ck_assert_uint_eq(f.n_rows, 4);
    ck_assert_double_nan(number(&f, "seat", 0));
    ck_assert_ptr_null(word(&f, "runner", 0));
    for (size_t i = 1; i < 4; i++) {
        ck_assert_double_eq(number(&f, "seat", i), (double)(i - 1));
        ck_assert_str_eq(word(&f, "runner", i), "r");
        ck_assert_ptr_null(word(&f, "outcome", i));
    }
    ck_ok(ends(seat(2), OUTCOME_RELEASED, 0), err);
    struct columnar later = attempts("g", f.version);
    ck_assert_uint_eq(later.n_rows, 4);
    ck_assert_str_eq(word(&later, "outcome", 3), "released");
    ck_assert_double_ge(number(&later, "ended_at", 3), number(&later, "began_at", 3));
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("table_points");
    TCase *t = tcase_create("table_points");
    pg_fixture_start();
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, the_value_that_counts);
    tcase_add_test(t, long_lines);
    tcase_add_test(t, a_range_of_trials);
    tcase_add_test(t, known_results_have_points);
    tcase_add_test(t, attempts_of_runners_and_clients);
    tcase_add_test(t, seats_of_a_gang);
    suite_add_tcase(suite, t);
    return suite;
}
