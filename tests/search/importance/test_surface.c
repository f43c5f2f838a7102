/* Surfaces of the model against functions that are known: values in the metric's unit, the base,
 * conditions, constraints, and what has no surface. */
#include <math.h>
#include <string.h>

#include "search/importance/surface.h"
#include "tests/search/importance/known_importance.h"
#include "tests/support/check_main.h"

enum { ISHIGAMI, G, LINEAR, MIXED, CONDITIONAL, NOISY, TRIANGLE };

static struct as_err err;

static struct objective_model *model_of(const struct known_trials *t)
{
    struct objective_model *m = NULL;
    ck_ok(objective_model_create(&t->spec, &t->history, 0, &m, &err), err);
    return m;
}

static struct surface *compute(const struct objective_model *m, size_t x, size_t y, size_t n)
{
    struct surface *s = NULL;
    ck_ok(surface_compute(m, x, y, n, &s, &err), err);
    return s;
}

/* -40 + 3 a + 2 b + c - d / 2, at the places of the best trial. b has a log scale. */
START_TEST(values_of_a_linear_function)
{
    struct known_trials t;
    known_trials_make(&known_problems[LINEAR], 60, false, 1, &t);
    AS_AUTO(objective_model_freep) struct objective_model *m = model_of(&t);
    AS_AUTO(surface_freep) struct surface *s = compute(m, 0, 1, 9);
    ck_assert_uint_eq(s->x.n, 9);
    ck_assert_uint_eq(s->y.n, 9);
    ck_assert_double_eq(json_number_value(json_array_get(s->x.values, 8)), 1);
    ck_assert_double_eq_tol(json_number_value(json_array_get(s->y.values, 4)), 1e-2, 1e-12);
    const struct config_entry *base = s->base->entries;
    double rest = -40 + base[2].value.real - 0.5 * base[3].value.real;
    for (size_t i = 0; i < 81; i++) {
        double expected = rest + 3 * (double)(i % 9) / 8 + 2 * (double)(i / 9) / 8;
        ck_assert_double_eq_tol(s->mean[i], expected, 0.1);
        ck_assert_double_ge(s->deviation[i], 0);
        ck_assert_double_lt(s->deviation[i], 0.5);
    }
    const struct observation *best = t.trials;
    for (size_t i = 1; i < t.history.n; i++)
        if (t.trials[i].values[0] < best->values[0])
            best = &t.trials[i];
    ck_assert_uint_eq(s->base_number, best->number);
    known_trials_done(&t);
}
END_TEST

/* A metric that is maximised has its own sign. */
START_TEST(values_of_a_goal_that_is_maximised)
{
    struct known_trials t;
    known_trials_make(&known_problems[LINEAR], 60, false, 1, &t);
    for (size_t i = 0; i < t.history.n; i++)
        t.trials[i].values[0] *= -1e3;
    t.spec.maximize[0] = true;
    AS_AUTO(objective_model_freep) struct objective_model *m = model_of(&t);
    AS_AUTO(surface_freep) struct surface *s = compute(m, 0, SURFACE_NONE, 5);
    ck_assert_uint_eq(s->y.n, 1);
    ck_assert_double_eq_tol(s->mean[0] - s->mean[4], 3e3, 100);
    ck_assert_double_gt(s->mean[0], 3e4);
    known_trials_done(&t);
}
END_TEST

/* Choices have all their values, numbers with few levels too. */
START_TEST(axes_of_every_kind)
{
    struct known_trials t;
    known_trials_make(&known_problems[MIXED], 60, false, 2, &t);
    AS_AUTO(objective_model_freep) struct objective_model *m = model_of(&t);
    AS_AUTO(surface_freep) struct surface *s = compute(m, 0, 2, 2);
    ck_assert_uint_eq(s->x.n, 3);
    ck_assert_str_eq(json_string_value(json_array_get(s->x.values, 2)), "t");
    ck_assert_uint_eq(s->y.n, 2);
    ck_assert_int_eq(json_integer_value(json_array_get(s->y.values, 0)), 1);
    ck_assert_int_eq(json_integer_value(json_array_get(s->y.values, 1)), 4);
    AS_AUTO(surface_freep) struct surface *all = compute(m, 2, SURFACE_NONE, 50);
    ck_assert_uint_eq(all->x.n, 4);
    for (size_t k = 1; k < 4; k++)
        ck_assert_double_eq_tol(all->mean[k] - all->mean[k - 1], 0.5, 0.2);
    known_trials_done(&t);
}
END_TEST

/* The base has the conditional parameter; where it is not active there is no value. */
START_TEST(conditions_hold)
{
    struct known_trials t;
    known_trials_make(&known_problems[CONDITIONAL], 60, false, 5, &t);
    AS_AUTO(objective_model_freep) struct objective_model *m = model_of(&t);
    AS_AUTO(surface_freep) struct surface *s = compute(m, 2, 1, 5);
    ck_assert(s->base->entries[2].active);
    ck_assert_uint_eq(s->y.n, 2);
    for (size_t i = 0; i < 5; i++) {
        ck_assert(isfinite(s->mean[i]));
        ck_assert_double_nan(s->mean[5 + i]);
        ck_assert_double_nan(s->deviation[5 + i]);
    }
    ck_assert_double_eq_tol(s->mean[4] - s->mean[0], 1.5, 0.2);
    for (size_t i = 0; i < t.history.n; i++) /* nobody has it */
        if (t.trials[i].config->entries[2].active)
            t.trials[i].state = OBSERVED_FAILED;
    AS_AUTO(objective_model_freep) struct objective_model *other = model_of(&t);
    ck_assert_ptr_nonnull(other->model);
    AS_AUTO(surface_freep) struct surface *none = compute(other, 2, SURFACE_NONE, 5);
    ck_assert_ptr_null(none->mean);
    ck_assert_ptr_nonnull(strstr(none->reason, "no trial"));
    known_trials_done(&t);
}
END_TEST

START_TEST(constraints_hold)
{
    struct known_trials t;
    known_trials_make(&known_problems[TRIANGLE], 40, false, 5, &t);
    AS_AUTO(objective_model_freep) struct objective_model *m = model_of(&t);
    AS_AUTO(surface_freep) struct surface *s = compute(m, 0, 1, 11);
    for (size_t y = 0; y < 11; y++)
        for (size_t x = 0; x < 11; x++)
            if (x + y != 10) /* on the edge rounding decides */
                ck_assert(isfinite(s->mean[y * 11 + x]) == (x + y < 10));
    known_trials_done(&t);
}
END_TEST

START_TEST(what_has_no_surface)
{
    struct known_trials t;
    struct surface *s = NULL;
    known_trials_make(&known_problems[LINEAR], 5, false, 1, &t);
    AS_AUTO(objective_model_freep) struct objective_model *few = model_of(&t);
    ck_assert_ptr_null(few->model);
    ck_assert_ptr_nonnull(strstr(few->reason, "5 trials have a value; it takes 12"));
    known_trials_done(&t);
    known_trials_make(&known_problems[LINEAR], 20, false, 1, &t);
    AS_AUTO(objective_model_freep) struct objective_model *m = model_of(&t);
    ck_fails(surface_compute(m, 5, SURFACE_NONE, 9, &s, &err), AS_E_INVAL, err, "one value");
    ck_fails(surface_compute(m, 1, 1, 9, &s, &err), AS_E_INVAL, err, "same parameter");
    ck_fails(surface_compute(m, 0, 1, 65, &s, &err), AS_E_INVAL, err, "4225");
    known_trials_done(&t);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    struct known_trials t;
    known_trials_make(&known_problems[CONDITIONAL], 12, false, 7, &t);
    AS_AUTO(objective_model_freep) struct objective_model *m = model_of(&t);
    as_status st = AS_E_NOMEM;
    for (size_t nth = 1; st == AS_E_NOMEM; nth++) {
        struct surface *s = NULL;
        as_mem_fail_nth(nth);
        st = surface_compute(m, 0, 1, 4, &s, &err);
        ck_assert((st == AS_OK) == (s != NULL));
        surface_free(s);
        ck_assert_uint_lt(nth, 5000);
    }
    as_mem_fail_nth(0);
    ck_ok(st, err);
    known_trials_done(&t);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search_surface");
    TCase *t = tcase_create("surface");
    tcase_add_test(t, values_of_a_linear_function);
    tcase_add_test(t, values_of_a_goal_that_is_maximised);
    tcase_add_test(t, axes_of_every_kind);
    tcase_add_test(t, conditions_hold);
    tcase_add_test(t, constraints_hold);
    tcase_add_test(t, what_has_no_surface);
    tcase_add_test(t, every_allocation_may_fail);
    suite_add_tcase(s, t);
    return s;
}
