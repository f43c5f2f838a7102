/* Importance from the trials of a sweep.
 *
 * The tests check the rules of importance.h: which parameters have entries, the reasons when there
 * are no indices, diverged and failed trials, the independence from the goal's direction and the
 * unit, and equal bits for equal input. The accuracy of the indices is in test_known_importance.c.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "search/importance/importance.h"
#include "search/importance/objective_model.h"
#include "tests/support/check_main.h"
#include "tests/search/importance/known_importance.h"
#include "tests/support/spaces.h"

enum { ISHIGAMI, G, LINEAR, MIXED, CONDITIONAL };

static struct importance *compute(const struct known_trials *t)
{
    struct importance *i = NULL;
    struct as_err err;
    ck_ok(importance_compute(&t->spec, &t->history, 0, &i, &err), err);
    return i;
}

static void check_entries(const struct importance *i)
{
    double top = 0;
    for (size_t k = 0; k < i->n; k++) {
        const struct importance_parameter *p = &i->parameters[k];
        ck_assert(0 <= p->first_low && p->first_low <= p->first && p->first <= p->first_high);
        ck_assert(0 <= p->total_low && p->total_low <= p->total && p->total <= p->total_high);
        ck_assert(p->first_high <= 1 && p->total_high <= 1 && p->top >= 0);
        top += p->top;
    }
    ck_assert(i->n == 0 || top == 0 || fabs(top - 1) < 1e-12);
}

START_TEST(linear_function)
{
    const struct known_problem *p = &known_problems[LINEAR];
    struct known_trials t;
    known_trials_make(p, 60, false, 1, &t);
    AS_AUTO(importance_freep) struct importance *i = compute(&t);
    check_entries(i);
    ck_assert_str_eq(i->method, "gp-sobol");
    ck_assert_str_eq(i->reason, "");
    ck_assert_uint_eq(i->trials, 60);
    ck_assert_double_gt(i->r2, 0.99);
    ck_assert_uint_eq(i->n, 5); /* the constant has no entry */
    for (size_t k = 0; k < 5; k++) {
        ck_assert_str_eq(i->parameters[k].name, t.space->params[k].name);
        ck_assert_double_eq_tol(i->parameters[k].first, p->first[k], 0.02);
        ck_assert_double_eq_tol(i->parameters[k].total, p->total[k], 0.02);
    }
    ck_assert_double_gt(i->parameters[0].top, 0.4);
    known_trials_done(&t);
}
END_TEST

/* The same trials give the same bits; with the opposite goal and sign, the same indices. */
START_TEST(pure_and_blind_to_the_goal)
{
    struct known_trials t;
    known_trials_make(&known_problems[MIXED], 50, false, 2, &t);
    AS_AUTO(importance_freep) struct importance *a = compute(&t), *b = compute(&t), *c = NULL;
    ck_assert_double_eq(a->r2, b->r2);
    ck_assert_uint_eq(a->n, 3);
    ck_assert_mem_eq(a->parameters, b->parameters, a->n * sizeof *a->parameters);
    for (size_t k = 0; k < t.history.n; k++)
        t.trials[k].values[0] *= -1e6;
    t.spec.maximize[0] = true;
    c = compute(&t);
    for (size_t k = 0; k < a->n; k++) {
        ck_assert_double_eq_tol(a->parameters[k].first, c->parameters[k].first, 1e-3);
        ck_assert_double_eq_tol(a->parameters[k].total, c->parameters[k].total, 1e-3);
    }
    known_trials_done(&t);
}
END_TEST

static void expect_reason(const struct known_trials *t, const char *part)
{
    AS_AUTO(importance_freep) struct importance *i = compute(t);
    ck_assert_msg(strstr(i->reason, part) != NULL, "'%s' is not in: %s", part, i->reason);
    ck_assert_uint_eq(i->n, 0);
}

START_TEST(hidden_with_a_reason)
{
    struct known_trials t;
    known_trials_make(&known_problems[LINEAR], 40, false, 3, &t);
    t.history.n = 11;
    expect_reason(&t, "11 trials have a value; it takes 12");
    t.history.n = 0;
    expect_reason(&t, "0 trials");
    t.history.n = 40;
    struct rng r;
    rng_init(&r, 1, 1);
    for (size_t k = 0; k < 40; k++)
        t.trials[k].values[0] = rng_normal(&r); /* nothing but noise */
    expect_reason(&t, "explains too little");
    for (size_t k = 0; k < 40; k++)
        t.trials[k].values[0] = 3;
    expect_reason(&t, "the same value");
    for (size_t k = 0; k < 40; k++)
        t.trials[k].values[0] = k % 2 ? NAN : INFINITY;
    expect_reason(&t, "0 trials");
    for (size_t k = 0; k < 40; k++)
        t.trials[k].state = k % 2 ? OBSERVED_PENDING : OBSERVED_FAILED;
    expect_reason(&t, "0 trials");
    known_trials_done(&t);
}
END_TEST

START_TEST(nothing_to_vary)
{
    struct known_trials t;
    struct space *s = NULL;
    struct as_err err;
    known_trials_make(&known_problems[LINEAR], 20, false, 3, &t);
    ck_ok(space_from_yaml("{k: {type: constant, value: 3}}", &s, &err), err);
    struct search_spec spec = {.space = s, .n_objectives = 1};
    struct history none = {0};
    struct importance *i = NULL;
    ck_ok(importance_compute(&spec, &none, 0, &i, &err), err);
    ck_assert_str_eq(i->reason, "no parameter can vary");
    ck_assert_uint_eq(i->n, 0);
    importance_free(i);
    ck_ok(importance_compute(&spec, NULL, 0, &i, &err), err);
    importance_free(i);
    ck_fails(importance_compute(&spec, NULL, 1, &i, &err), AS_E_INVAL, err, "objective 1");
    space_free(s);
    known_trials_done(&t);
}
END_TEST

/* One diverged trial and some failures do not change the indices much. Enormous and tiny units have
 * no effect.
 */
START_TEST(rough_data)
{
    const struct known_problem *p = &known_problems[LINEAR];
    static const double units[] = {1, 1e300, 1e-300};
    for (size_t u = 0; u < AS_ARRAY_LEN(units); u++) {
        struct known_trials t;
        known_trials_make(p, 80, false, 4, &t);
        for (size_t k = 0; k < 80; k++)
            t.trials[k].values[0] = (t.trials[k].values[0] + 40) * units[u];
        t.trials[7].values[0] = 1e6 * units[u];
        t.trials[20].values[0] = NAN;
        t.trials[30].state = OBSERVED_FAILED;
        AS_AUTO(importance_freep) struct importance *i = compute(&t);
        check_entries(i);
        ck_assert_uint_eq(i->n, 5);
        ck_assert_double_gt(i->parameters[0].total, i->parameters[1].total);
        ck_assert_double_gt(i->parameters[1].total, i->parameters[4].total);
        known_trials_done(&t);
    }
}
END_TEST

START_TEST(conditional_parameters)
{
    const struct known_problem *p = &known_problems[CONDITIONAL];
    struct known_trials t;
    known_trials_make(p, 60, false, 5, &t);
    AS_AUTO(importance_freep) struct importance *i = compute(&t);
    ck_assert_uint_eq(i->n, 3);
    for (size_t k = 0; k < 3; k++) {
        ck_assert(i->parameters[k].is_conditional == (k == 2));
        ck_assert_double_eq_tol(i->parameters[k].first, p->first[k], 0.02);
        ck_assert_double_eq_tol(i->parameters[k].total, p->total[k], 0.02);
    }
    known_trials_done(&t);
}
END_TEST

START_TEST(more_trials_than_the_model_takes)
{
    const struct known_problem *p = &known_problems[MIXED];
    struct known_trials t;
    known_trials_make(p, IMPORTANCE_MAX_TRIALS + 100, false, 6, &t);
    AS_AUTO(importance_freep) struct importance *i = compute(&t);
    ck_assert_uint_eq(i->trials, IMPORTANCE_MAX_TRIALS + 100);
    for (size_t k = 0; k < 3; k++)
        ck_assert_double_eq_tol(i->parameters[k].total, p->total[k], 0.03);
    known_trials_done(&t);
}
END_TEST

START_TEST(memory_that_runs_out)
{
    struct known_trials t;
    struct as_err err;
    known_trials_make(&known_problems[CONDITIONAL], 12, false, 7, &t);
    as_status st = AS_E_NOMEM;
    for (size_t nth = 1; st == AS_E_NOMEM; nth++) {
        struct importance *i = NULL;
        as_mem_fail_nth(nth);
        st = importance_compute(&t.spec, &t.history, 0, &i, &err);
        ck_assert((st == AS_OK) == (i != NULL));
        importance_free(i);
        ck_assert_uint_lt(nth, 5000);
    }
    as_mem_fail_nth(0);
    ck_ok(st, err);
    known_trials_done(&t);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search_importance");
    TCase *t = tcase_create("importance");
    tcase_add_test(t, linear_function);
    tcase_add_test(t, pure_and_blind_to_the_goal);
    tcase_add_test(t, hidden_with_a_reason);
    tcase_add_test(t, nothing_to_vary);
    tcase_add_test(t, rough_data);
    tcase_add_test(t, conditional_parameters);
    tcase_add_test(t, more_trials_than_the_model_takes);
    tcase_add_test(t, memory_that_runs_out);
    suite_add_tcase(s, t);
    return s;
}
