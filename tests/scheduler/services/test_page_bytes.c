/* The budget of bytes of a page: pages of large rows end early, and their cursors lead to all. */
#include <stdio.h>
#include <string.h>

#include "scheduler/rows/page.h"
#include "scheduler/services/sweep_pareto.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err err;

#define ROWS 12
/* JSON of 0.9 MB */
#define LARGE "json_build_object('x', repeat('0123456789', 90000))"
#define LARGE_BYTES 900000
#define IN_ONE_PAGE (PAGE_BYTES_MAX / LARGE_BYTES)

START_TEST(documents_come_in_small_pages_and_only_when_asked_for)
{
    char name[16];
    for (int i = 0; i < ROWS; i++) {
        (void)snprintf(name, sizeof name, "n%d", i);
        make_sweep(&s, name, "'max_trials': 1", "");
    }
    pg_fixture_exec(s.url, "update sweep_base set document = " LARGE);
    struct sweep_query q = {.page.size = 1000};
    struct sweep_page page;
    ck_ok(sweep_list(s.db, &s.a, &q, &page, &err), err);
    ck_assert_uint_eq(page.n, ROWS);
    ck_assert_ptr_null(page.next_cursor);
    ck_assert_ptr_null(page.rows[0].document);
    q.with_documents = true;
    size_t seen = 0;
    do {
        ck_ok(sweep_list(s.db, &s.a, &q, &page, &err), err);
        ck_assert_uint_eq(page.n, IN_ONE_PAGE < ROWS - seen ? IN_ONE_PAGE : ROWS - seen);
        for (size_t i = 0; i < page.n; i++, seen++) {
            (void)snprintf(name, sizeof name, "n%d", ROWS - 1 - (int)seen);
            ck_assert_str_eq(page.rows[i].id, name);
            ck_assert_uint_gt(strlen(page.rows[i].document), LARGE_BYTES);
        }
        q.page.cursor = page.next_cursor;
    } while (q.page.cursor);
    ck_assert_uint_eq(seen, ROWS);
}
END_TEST

/* The filter holds on every page. */
START_TEST(sweeps_with_a_tag_come_in_small_pages)
{
    char name[16];
    for (int i = 0; i < ROWS; i++) {
        (void)snprintf(name, sizeof name, "n%d", i);
        make_sweep(&s, name, "'max_trials': 1", "");
    }
    pg_fixture_exec(s.url, "update sweep_base set document = " LARGE ", tags = case when "
                           "right(id, 1)::int % 2 = 1 then array['odd'] else array['even'] end");
    struct sweep_query q = {.tag = "odd", .with_documents = true, .page.size = 1000};
    struct sweep_page page;
    static const char *const expected[] = {"n11", "n9", "n7", "n5", "n3", "n1"};
    size_t seen = 0;
    do {
        ck_ok(sweep_list(s.db, &s.a, &q, &page, &err), err);
        ck_assert_uint_ge(page.n, 1);
        ck_assert_uint_le(page.n, IN_ONE_PAGE);
        for (size_t i = 0; i < page.n; i++, seen++)
            ck_assert_str_eq(page.rows[i].id, expected[seen]);
        q.page.cursor = page.next_cursor;
    } while (q.page.cursor);
    ck_assert_uint_eq(seen, AS_ARRAY_LEN(expected));
    q.tag = "od";
    ck_ok(sweep_list(s.db, &s.a, &q, &page, &err), err);
    ck_assert_uint_eq(page.n, 0);
}
END_TEST

/* A sweep "a" of ROWS completed trials with two objectives and large parameters. The losses fall
 * and the sizes rise with the number, so that every trial is on the front. */
static void make_large_trials(void)
{
    struct suggestion_row got;
    struct trial_row row;
    struct sweep_row sweep;
    json_t *doc =
        json_of("{'name': 'a', 'metrics': [{'name': 'loss', 'goal': 'minimize'}, {'name': "
                "'size', 'goal': 'minimize'}], 'parameters': {'x': {'type': 'float', "
                "'min': 0, 'max': 1}}, 'search': {'method': 'random'}, 'limits': "
                "{'max_trials': 12}}");
    ck_ok(sweep_create(s.db, &s.a, doc, NULL, &sweep, &err), err);
    json_decref(doc);
    for (int i = 0; i < ROWS; i++) {
        got = ask_one(&s, "a", "c");
        const struct measurement m[] = {{-1, "loss", 20 - i}, {-1, "size", i}};
        const struct completion c = {.outcome = OUTCOME_COMPLETED, .metrics = m, .n_metrics = 2};
        struct ask_ref ref = {.sweep = "a", .number = got.number, .client = "c"};
        ck_ok(ask_complete(s.db, &s.a, &ref, &c, &row, &err), err);
    }
    pg_fixture_exec(s.url, "update trial set params = " LARGE);
}

START_TEST(trials_come_in_small_pages)
{
    static const trial_sort sorts[] = {TRIAL_BY_NUMBER, TRIAL_BY_VALUE, TRIAL_BY_FINISHED};
    make_large_trials();
    for (size_t k = 0; k < AS_ARRAY_LEN(sorts) * 2; k++) {
        struct trial_query q = {.sort = sorts[k / 2], .descending = k % 2, .page.size = 1000};
        struct trial_page page;
        int64_t sum = 0;
        int seen = 0;
        do {
            ck_ok(trial_list(s.db, s.orders, &s.a, "a", &q, &page, &err), err);
            ck_assert_uint_ge(page.n, 1);
            ck_assert_uint_le(page.n, IN_ONE_PAGE);
            for (size_t i = 0; i < page.n; i++, seen++)
                sum += page.rows[i].number;
            q.page.cursor = page.next_cursor;
        } while (q.page.cursor);
        ck_assert_int_eq(seen, ROWS);
        ck_assert_int_eq(sum, ROWS * (ROWS - 1) / 2);
    }
}
END_TEST

START_TEST(the_best_come_in_small_pages)
{
    struct trial_page page;
    const char *cursor = NULL;
    int seen = 0;
    make_large_trials();
    do {
        ck_ok(trial_best(s.db, &s.a, "a", 1000, cursor, &page, &err), err);
        ck_assert_uint_le(page.n, IN_ONE_PAGE);
        for (size_t i = 0; i < page.n; i++, seen++)
            ck_assert_int_eq(page.rows[i].number, ROWS - 1 - seen);
        cursor = page.next_cursor;
    } while (cursor);
    ck_assert_int_eq(seen, ROWS);
    ck_ok(trial_best(s.db, &s.a, "a", 2, NULL, &page, &err), err);
    ck_assert_uint_eq(page.n, 2);
    ck_assert_ptr_null(page.next_cursor); /* the two that were asked for */
    ck_fails(trial_best(s.db, &s.a, "a", 2, "6d", &page, &err), AS_E_INVAL, err, "cursor");
}
END_TEST

START_TEST(a_front_comes_in_small_pages)
{
    struct pareto_row front;
    const char *cursor = NULL;
    double volume = 0;
    int seen = 0;
    make_large_trials();
    do {
        ck_ok(sweep_pareto(s.db, s.fronts, &s.a, "a", cursor, &front, &err), err);
        ck_assert_uint_le(front.n, IN_ONE_PAGE + 1);
        ck_assert(seen == 0 || front.hypervolume == volume);
        volume = front.hypervolume;
        for (size_t i = 0; i < front.n; i++, seen++)
            ck_assert_int_eq(front.rows[i].number, seen);
        cursor = front.next_cursor;
    } while (cursor);
    ck_assert_int_eq(seen, ROWS);
    ck_fails(sweep_pareto(s.db, s.fronts, &s.a, "a", "6d", &front, &err), AS_E_INVAL, err,
             "cursor");
}
END_TEST

START_TEST(a_long_series_comes_in_pages)
{
    make_sweep(&s, "a", "'max_trials': 1", "");
    struct claimed_row c = claim_one(&s, "r", make_runner(&s, "r", 1));
    ck_assert_int_eq(c.attempt, 1);
    pg_fixture_exec(s.url,
                    "insert into measurement (sweep_key, number, attempt, step, metric, value) "
                    "select t.sweep_key, t.number, 1, i, m, i from trial t, generate_series(0, "
                    "69999) i, (values ('a.b'), ('c')) n(m)");
    struct series_list l;
    const char *cursor = NULL;
    size_t seen = 0, pages = 0;
    do {
        ck_ok(trial_series(s.db, &s.a, "a", 0, NULL, cursor, &l, &err), err);
        for (size_t k = 0; k < l.n; k++)
            for (size_t i = 0; i < l.rows[k].n; i++, seen++) {
                ck_assert_int_eq(l.rows[k].steps[i], (int64_t)(seen % 70000));
                ck_assert_str_eq(l.rows[k].metric, seen < 70000 ? "a.b" : "c");
            }
        cursor = l.next_cursor;
        pages++;
    } while (cursor);
    ck_assert_uint_eq(seen, 140000);
    ck_assert_uint_eq(pages, 2);
    ck_fails(trial_series(s.db, &s.a, "a", 0, NULL, "6d", &l, &err), AS_E_INVAL, err, "cursor");
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("page_bytes");
    TCase *t = service_case(suite, "pages", &s, 0);
    tcase_add_test(t, documents_come_in_small_pages_and_only_when_asked_for);
    tcase_add_test(t, sweeps_with_a_tag_come_in_small_pages);
    tcase_add_test(t, trials_come_in_small_pages);
    tcase_add_test(t, the_best_come_in_small_pages);
    tcase_add_test(t, a_front_comes_in_small_pages);
    tcase_add_test(t, a_long_series_comes_in_pages);
    return suite;
}
