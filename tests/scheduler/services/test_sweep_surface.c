/* Surfaces of a sweep over a database: each parameter, two of them, the cache, and what is
 * refused. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/services/sweep_surface.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err err;
static struct result_cache cache;

static void setup(void)
{
    result_cache_init(&cache);
}

static void teardown(void)
{
    result_cache_done(&cache);
}

static void add_known(double x, double y, double loss)
{
    char text[160];
    struct trial_row row;
    (void)snprintf(text, sizeof text,
                   "{'params': {'x': %.6f, 'y': %.6f}, 'metrics': {'loss': %.9f}}", x, y, loss);
    JSON_AUTO body = json_of(text);
    ck_ok(trial_add(s.db, &s.a, "l", body, NULL, &row, &err), err);
}

/* loss = x^2 + y / 2, on a grid of n x n. */
static void add_results(int n)
{
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n; k++) {
            double x = i / (n - 1.0), y = k / (n - 1.0);
            add_known(x, y, x * x + y / 2);
        }
    }
}

static struct surface_row ask_for(const char *x, const char *y)
{
    const struct surface_request q = {.sweep = "l", .x = x, .y = y, .places = 5};
    struct surface_row row;
    ck_ok(sweep_surface(s.db, &cache, &s.a, &q, &row, &err), err);
    ck_assert_str_eq(row.metric, "loss");
    return row;
}

static double cell(const json_t *surface, size_t i)
{
    return json_number_value(json_array_get(json_object_get(surface, "mean"), i));
}

START_TEST(predicts_what_was_measured)
{
    make_learner(&s, "l", "'max_trials': 400", "");
    add_results(6);
    struct surface_row row = ask_for("x", "y");
    ck_assert_int_eq(row.trials, 36);
    ck_assert_ptr_null(row.reason);
    ck_assert_double_gt(row.r2, 0.9);
    JSON_AUTO list = json_of(row.surfaces);
    ck_assert_uint_eq(json_array_size(list), 1);
    const json_t *both = json_array_get(list, 0);
    for (size_t i = 0; i < 25; i++) {
        double x = (double)(i % 5) / 4, y = (double)(i / 5) / 4;
        ck_assert_double_eq_tol(cell(both, i), x * x + y / 2, 0.05);
    }
    /* The best trial is at 0, 0; each parameter alone leaves the other one there. */
    row = ask_for(NULL, NULL);
    JSON_AUTO each = json_of(row.surfaces);
    ck_assert_uint_eq(json_array_size(each), 2);
    for (size_t i = 0; i < 5; i++) {
        double place = (double)i / 4;
        ck_assert_double_eq_tol(cell(json_array_get(each, 0), i), place * place, 0.05);
        ck_assert_double_eq_tol(cell(json_array_get(each, 1), i), place / 2, 0.05);
    }
    ck_assert(json_is_null(json_object_get(json_array_get(each, 0), "y")));
    ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(each, 0), "base_trial")), 0);
}
END_TEST

/* Until another trial ends the text is kept, for each request of its own. */
START_TEST(is_computed_once)
{
    make_learner(&s, "l", "'max_trials': 400", "");
    add_results(4);
    struct surface_row first = ask_for("x", NULL), other = ask_for("y", NULL),
                       again = ask_for("x", NULL);
    ck_assert_str_eq(first.surfaces, again.surfaces);
    ck_assert_str_ne(first.surfaces, other.surfaces);
    size_t n = 0;
    for (size_t i = 0; i < RESULT_CACHE_MAX; i++)
        n += cache.entries[i].text != NULL;
    ck_assert_uint_eq(n, 2);
    add_known(0.5, 0.5, -9);
    ck_assert_str_ne(ask_for("x", NULL).surfaces, first.surfaces);
    ck_assert_int_eq(ask_for("x", NULL).trials, 17);
}
END_TEST

START_TEST(says_that_there_are_few_trials)
{
    make_learner(&s, "l", "'max_trials': 400", "");
    struct surface_row row = ask_for("x", NULL);
    ck_assert_ptr_nonnull(strstr(row.reason, "0 trials have a value; it takes 6"));
    ck_assert_str_eq(row.surfaces, "[]");
    ck_assert_double_nan(row.r2);
    ck_assert(!row.is_stale);
}
END_TEST

/* Methods that do not learn have surfaces as well. */
START_TEST(of_a_random_sweep)
{
    make_sweep(&s, "l", "'max_trials': 40", "");
    int64_t epoch = make_runner(&s, "r", 12);
    struct claim_list list = claim(&s, "r", epoch, 12);
    for (size_t i = 0; i < list.n; i++) {
        JSON_AUTO params = json_of(list.rows[i].params);
        double x = json_number_value(json_object_get(params, "x"));
        finish(&s, ref_of(&list.rows[i]), 2 * x);
    }
    struct surface_row row = ask_for("x", NULL);
    JSON_AUTO surfaces = json_of(row.surfaces);
    ck_assert_double_eq_tol(cell(json_array_get(surfaces, 0), 2), 1, 0.1);
}
END_TEST

START_TEST(what_is_refused)
{
    make_learner(&s, "l", "'max_trials': 400", "");
    add_results(4);
    struct surface_row row;
    struct surface_request q = {.sweep = "l", .x = "z", .places = 5};
    ck_fails(sweep_surface(s.db, &cache, &s.a, &q, &row, &err), AS_E_INVAL, err, "parameter x");
    q = (struct surface_request){.sweep = "l", .y = "y", .places = 5};
    ck_fails(sweep_surface(s.db, &cache, &s.a, &q, &row, &err), AS_E_INVAL, err, "without x");
    q = (struct surface_request){.sweep = "l", .x = "x", .y = "x", .places = 5};
    ck_fails(sweep_surface(s.db, &cache, &s.a, &q, &row, &err), AS_E_INVAL, err, "same");
    q = (struct surface_request){.sweep = "l", .metric = "acc", .x = "x", .places = 5};
    ck_fails(sweep_surface(s.db, &cache, &s.a, &q, &row, &err), AS_E_INVAL, err, "metric");
    q = (struct surface_request){.sweep = "nobody", .places = 5};
    ck_fails(sweep_surface(s.db, &cache, &s.a, &q, &row, &err), AS_E_NOT_FOUND, err, "nobody");
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("sweep_surface");
    TCase *t = service_case(suite, "sweep_surface", &s, 0);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, predicts_what_was_measured);
    tcase_add_test(t, is_computed_once);
    tcase_add_test(t, says_that_there_are_few_trials);
    tcase_add_test(t, of_a_random_sweep);
    tcase_add_test(t, what_is_refused);
    return suite;
}
