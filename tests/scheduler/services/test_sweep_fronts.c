/* The fronts that a server keeps: each answer equals the plain front of the rows of the trials, as
 * trials end, fail, are retried or break a constraint, and whatever the server still has. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "scheduler/services/sweep_pareto.h"
#include "search/pareto/hypervolume.h"
#include "search/pareto/pareto.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err err;

#define MAX_TRIALS 400
#define METRICS 2
static const bool maximize[METRICS] = {false, true};

static void make_sweep_of_two(const char *name)
{
    struct sweep_row row;
    json_t *doc = json_pack("{s:s}", "name", name);
    json_t *rest = json_of(
        "{'metrics': [{'name': 'cost', 'goal': 'minimize'}, {'name': 'gain', 'goal': 'maximize'}], "
        "'constraints': [{'metric': 'heat', 'max': 8}], 'parameters': {'x': {'type': 'float', "
        "'min': 0, 'max': 1}}, 'search': {'method': 'random'}, 'limits': {'max_trials': 400, "
        "'max_failed_trials': 400}}");
    json_object_update(doc, rest);
    ck_ok(sweep_create(s.db, &s.a, doc, NULL, &row, &err), err);
    json_decref(rest);
    json_decref(doc);
}

/* Numbers of a small grid, so that ties and copies abound; a tenth of the results is not finite. */
static void tell_random(struct rng *r, const char *sweep)
{
    struct suggestion_row got = ask_one(&s, sweep, "c");
    struct trial_row row;
    bool is_bad = rng_below(r, 10) == 0;
    const struct measurement m[] = {{-1, "cost", is_bad ? NAN : (double)rng_below(r, 9)},
                                    {-1, "gain", (double)rng_below(r, 9)},
                                    {-1, "heat", (double)rng_below(r, 11)}};
    const struct completion c = {.outcome = OUTCOME_COMPLETED, .metrics = m, .n_metrics = 3};
    struct ask_ref ref = {.sweep = sweep, .number = got.number, .client = "c"};
    ck_ok(ask_complete(s.db, &s.a, &ref, &c, &row, &err), err);
    ck_assert_int_eq(row.state, is_bad ? TRIAL_FAILED : TRIAL_COMPLETED);
}

static void add_result(const char *sweep, double cost, double gain, double heat)
{
    struct trial_row row;
    json_t *body = json_pack("{s:{s:f}, s:{s:f, s:f, s:f}}", "params", "x", 0.5, "metrics", "cost",
                             cost, "gain", gain, "heat", heat);
    ck_ok(trial_add(s.db, &s.a, sweep, body, NULL, &row, &err), err);
    json_decref(body);
}

static void add_known(struct rng *r, const char *sweep)
{
    double cost = (double)rng_below(r, 9), gain = (double)rng_below(r, 9);
    add_result(sweep, cost, gain, (double)rng_below(r, 11));
}

/* What is in the rows. */
struct plain {
    int64_t numbers[MAX_TRIALS];
    double values[MAX_TRIALS * METRICS];
    size_t n, front[MAX_TRIALS], n_front;
};

static double metric_of(const struct trial_row *row, const char *name)
{
    JSON_AUTO j = NULL;
    ck_ok(json_parse(row->metrics, strlen(row->metrics), &j, &err), err);
    return json_number_value(json_object_get(j, name));
}

static struct plain plain_front(const char *sweep)
{
    struct plain p = {0};
    const struct trial_query q = {.page.size = 1000};
    struct trial_page page;
    ck_ok(trial_list(s.db, s.orders, &s.a, sweep, &q, &page, &err), err);
    ck_assert_ptr_null(page.next_cursor);
    for (size_t i = 0; i < page.n; i++) {
        const struct trial_row *row = &page.rows[i];
        if (row->state != TRIAL_COMPLETED || metric_of(row, "heat") > 8)
            continue;
        p.numbers[p.n] = row->number;
        p.values[p.n * METRICS] = metric_of(row, "cost");
        p.values[p.n * METRICS + 1] = metric_of(row, "gain");
        p.n++;
    }
    ck_ok(gp_pareto_front(p.values, p.n, METRICS, maximize, p.front, &p.n_front, &err), err);
    return p;
}

static void check_front(const char *sweep, struct sweep_fronts *fronts)
{
    struct plain p = plain_front(sweep);
    struct pareto_row front;
    double reference[METRICS], hypervolume = 0;
    ck_ok(sweep_pareto(s.db, fronts, &s.a, sweep, NULL, &front, &err), err);
    ck_assert_uint_eq(front.n, p.n_front);
    for (size_t i = 0; i < front.n; i++)
        ck_assert_int_eq(front.rows[i].number, p.numbers[p.front[i]]);
    ck_assert(front.has_reference == (p.n_front > 0));
    if (p.n_front == 0)
        return;
    gp_pareto_reference(p.values, p.n, METRICS, maximize, p.front, p.n_front, reference);
    ck_ok(gp_hypervolume(p.values, p.n, METRICS, maximize, reference, &hypervolume, &err), err);
    ck_assert_mem_eq(front.reference, reference, sizeof reference);
    ck_assert_double_le(fabs(front.hypervolume - hypervolume), 1e-12 * hypervolume);
}

/* Three servers: one is asked after each trial, one seldom, and one keeps nothing. */
START_TEST(a_front_is_that_of_all_trials)
{
    AS_AUTO(sweep_fronts_freep)
    struct sweep_fronts *seldom = sweep_fronts_create(SWEEP_FRONTS_BYTES);
    AS_AUTO(sweep_fronts_freep) struct sweep_fronts *none = sweep_fronts_create(0);
    struct retried again;
    struct rng r;
    rng_init(&r, 28, 3);
    make_sweep_of_two("a");
    check_front("a", s.fronts);
    for (int i = 0; i < 60; i++) {
        if (i % 7 == 6)
            add_known(&r, "a");
        else
            tell_random(&r, "a");
        if (i % 20 == 10) {
            const struct retry_request req = {.state = TRIAL_FAILED};
            ck_ok(trials_retry(s.db, &s.a, "a", &req, "me", &again, &err), err);
        }
        if (i % 3 == 0)
            check_front("a", s.fronts);
        if (i % 25 == 24)
            check_front("a", seldom);
    }
    add_result("a", 0, 9, 9); /* better than all, and not feasible */
    check_front("a", s.fronts);
    check_front("a", seldom);
    check_front("a", none);
    add_result("a", 0, 9, 1);
    check_front("a", s.fronts);
    ck_assert_uint_eq(sweep_fronts_bytes(none), 0);
    ck_assert_uint_gt(sweep_fronts_bytes(seldom), 0);
}
END_TEST

/* A trial that ended is read once: values that the database has lost since do not matter. */
START_TEST(what_was_seen_is_not_read_again)
{
    struct pareto_row front;
    struct rng r;
    rng_init(&r, 28, 4);
    make_sweep_of_two("a");
    for (int i = 0; i < 12; i++)
        add_known(&r, "a");
    check_front("a", s.fronts);
    ck_ok(sweep_pareto(s.db, s.fronts, &s.a, "a", NULL, &front, &err), err);
    size_t n = front.n;
    ck_assert_uint_gt(n, 0);
    pg_fixture_exec(s.url, "set session_replication_role = replica; update trial set metrics = "
                           "'{\"cost\": 1e9, \"gain\": -1e9, \"heat\": 1}'");
    ck_ok(sweep_pareto(s.db, s.fronts, &s.a, "a", NULL, &front, &err), err);
    ck_assert_uint_eq(front.n, n);
    AS_AUTO(sweep_fronts_freep)
    struct sweep_fronts *other = sweep_fronts_create(SWEEP_FRONTS_BYTES);
    ck_ok(sweep_pareto(s.db, other, &s.a, "a", NULL, &front, &err), err);
    ck_assert_uint_gt(front.n, n); /* they are all equal now */
}
END_TEST

/* The front that was used longest ago goes first. */
START_TEST(memory_has_a_bound)
{
    struct pareto_row front;
    struct rng r;
    char name[8];
    rng_init(&r, 28, 5);
    AS_AUTO(sweep_fronts_freep) struct sweep_fronts *few = sweep_fronts_create(4000);
    for (int i = 0; i < 12; i++) {
        (void)snprintf(name, sizeof name, "n%d", i);
        make_sweep_of_two(name);
        add_known(&r, name);
        ck_ok(sweep_pareto(s.db, few, &s.a, name, NULL, &front, &err), err);
        ck_assert_uint_le(sweep_fronts_bytes(few), 4000);
    }
    ck_assert_uint_gt(sweep_fronts_bytes(few), 500);
    check_front("n0", few);
    ck_fails(sweep_pareto(s.db, few, &s.a, "nothing", NULL, &front, &err), AS_E_NOT_FOUND, err,
             "nothing");
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("sweep_fronts");
    TCase *t = service_case(suite, "fronts", &s, 0);
    tcase_add_test(t, a_front_is_that_of_all_trials);
    tcase_add_test(t, what_was_seen_is_not_read_again);
    tcase_add_test(t, memory_has_a_bound);
    return suite;
}
