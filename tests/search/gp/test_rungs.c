/* What the method gp learns from rung results: the set, the models, the suggestions. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "search/gp/candidates.h"
#include "search/gp/surrogate.h"
#include "tests/search/sweep.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define LINE "x: {type: float, min: 0, max: 1}\n"
#define LAST 27.0

static void add_at(struct sweep *w, double x, double value)
{
    AS_AUTO(config_freep) struct config *c = config_create(w->spec.space);
    c->entries[0].value.real = x;
    config_settle(w->spec.space, c);
    sweep_add(w, c, value);
}

/* What the trials have at rungs; each test begins with none. */
static struct trial_rung reached[200];
static size_t n_reached;

/* The newest trial gets a rung above those that it has. */
static void reach(struct sweep *w, double step, double value)
{
    struct observation *o = &w->trials[w->n - 1];
    struct trial_rung *to = &reached[n_reached++];
    ck_assert_uint_le(n_reached, AS_ARRAY_LEN(reached));
    *to = (struct trial_rung){.step = step, .values = {value}};
    o->rungs = o->n_rungs ? o->rungs : to;
    o->n_rungs++;
}

/* A trial that stopped or is under way; at a rung unless step is 0. */
static void add_rung(struct sweep *w, double x, double step, double value, observation_state state)
{
    add_at(w, x, NAN);
    w->trials[w->n - 1].state = state;
    if (step > 0)
        reach(w, step, value);
}

/* A trial at a rung has neither completed nor failed, and nothing avoids it. */
START_TEST(a_set_with_rungs)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(LINE);
    AS_AUTO(sweep_done) struct sweep w = {0};
    sweep_init(&w, s, 1, false);
    w.spec.max_step = LAST;
    w.spec.maximize[0] = true;
    add_at(&w, 0.1, 5);
    reach(&w, 3, 1);
    reach(&w, LAST, 5);
    add_rung(&w, 0.2, 3, 4, OBSERVED_PARTIAL);
    add_rung(&w, 0.3, 3, 6, OBSERVED_PARTIAL);
    reach(&w, 9, NAN);
    add_rung(&w, 0.4, 1, 2, OBSERVED_PENDING);
    add_rung(&w, 0.5, 0, NAN, OBSERVED_PENDING);
    add_rung(&w, 0.6, 0, NAN, OBSERVED_PARTIAL);
    add_rung(&w, 0.7, 3, 1, OBSERVED_FAILED);
    AS_AUTO(training_set_freep) struct training_set *set = sweep_training_set(&w);
    static const double place[] = {NAN, 1.0 / 3, 2.0 / 3, 0, NAN, NAN, NAN};
    static const double cost[] = {NAN, -4, INFINITY, -2, NAN, NAN, NAN};
    for (size_t i = 0; i < 7; i++) {
        const struct training_rung *rung = training_set_rung(set, i);
        ck_assert((rung != NULL) == (i > 0 && i < 4));
        if (rung)
            ck_assert(fabs(rung->place - place[i]) < 1e-15 && rung->costs[0] == cost[i]);
        ck_assert(set->avoided[i] == (i == 6));
        ck_assert(isnan(set->costs[i]) == (i != 0));
    }
    /* the rung of a completed trial, but not that of the last step; those of a failed one never */
    ck_assert(set->rung_from[1] == 1 && set->rungs[0].costs[0] == -1 && set->rung_from[7] == 5);
    ck_assert(set->n_completed == 1 && set->n_failed == 1 && set->n_pending == 2);
    ck_assert(set->n_partial == 3 && set->n_rungs == 3 && set->best == 0);
    w.spec.max_step = 0;
    AS_AUTO(training_set_freep) struct training_set *without = sweep_training_set(&w);
    ck_assert(!without->rungs && !training_set_rung(without, 1) && !without->n_rungs);
    ck_assert(without->n_partial == 3 && without->n_failed == 1);
}
END_TEST

/* The value at the end, and at a step: a course that all share, and a part that depends on x. */
static double final_value(double x)
{
    return (x - 0.7) * (x - 0.7);
}

static double value_at(double x, double step)
{
    double left = 1 - log(step) / log(LAST);
    return final_value(x) + left * (0.8 + 0.1 * sin(5 * x));
}

/* Predict x at the last step with a model of all trials. */
static double predict(const struct sweep *w, surrogate_target target, double x, double *ret_sd)
{
    struct as_err err = {0};
    AS_AUTO(surrogate_store_done) struct surrogate_store store = {0};
    AS_AUTO(surrogate_done) struct surrogate m = {0};
    AS_AUTO(gp_work_freep) struct gp_work *work = gp_work_create();
    AS_AUTO(training_set_freep) struct training_set *set = sweep_training_set(w);
    const struct surrogate_spec spec = {target, 0, 2048, w->n};
    double mean, var;
    ck_ok(surrogate_prepare(&store, set, &spec, NULL, &m, &err), err);
    ck_ok(surrogate_reserve(&m, work, 1, &err), err);
    surrogate_predict(&m, work, &(struct gp_rows){.n = 1, .x = &x}, &mean, &var);
    *ret_sd = surrogate_back_deviation(&m, mean, sqrt(var));
    return surrogate_back(&m, mean);
}

/* Trials on the left have completed, those on the right stopped early at different steps: the
 * common course is taken off them, and what they say of x is kept. */
START_TEST(a_model_learns_from_rungs)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(LINE);
    AS_AUTO(sweep_done) struct sweep w = {0};
    static const double at[] = {0.62, 0.7, 0.81, 0.93};
    double sd = 0, sd_without = 0;
    sweep_init(&w, s, 1, false);
    w.spec.max_step = LAST;
    for (int i = 0; i <= 8; i++) {
        add_at(&w, 0.5 * i / 8, final_value(0.5 * i / 8));
        reach(&w, 3, value_at(0.5 * i / 8, 3));
        reach(&w, 9, value_at(0.5 * i / 8, 9));
    }
    for (int i = 0; i < 8; i++)
        add_rung(&w, 0.03 + 0.5 * i / 8, 3, value_at(0.03 + 0.5 * i / 8, 3), OBSERVED_PARTIAL);
    size_t n = w.n;
    for (int i = 0; i < 10; i++) {
        double x = 0.55 + 0.045 * i, step = i % 2 ? 3 : 9;
        add_rung(&w, x, step, value_at(x, step), i % 3 ? OBSERVED_PARTIAL : OBSERVED_PENDING);
    }
    for (size_t k = 0; k < AS_ARRAY_LEN(at); k++) {
        size_t all = w.n;
        double want = final_value(at[k]), got = predict(&w, SURROGATE_PLAIN, at[k], &sd);
        w.n = n;
        double without = predict(&w, SURROGATE_PLAIN, at[k], &sd_without);
        w.n = all;
        ck_assert_msg(fabs(got - want) < 0.06, "at %g: %g, not %g", at[k], got, want);
        ck_assert_msg(sd < sd_without, "at %g: +- %g, without %g", at[k], sd, sd_without);
        if (k == 3)
            ck_assert_double_lt(fabs(got - want), fabs(without - want));
    }
}
END_TEST

/* A diverged trial at a rung is a bad one for the model, whatever its number. */
START_TEST(a_diverged_rung_is_bad)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(LINE);
    AS_AUTO(sweep_done) struct sweep w = {0};
    double sd;
    sweep_init(&w, s, 1, false);
    w.spec.max_step = LAST;
    for (int i = 0; i < 10; i++) {
        double x = i / 10.0;
        add_rung(&w, x, 3, x > 0.65 ? NAN : value_at(x, 3), OBSERVED_PARTIAL);
    }
    double bad = predict(&w, SURROGATE_WARPED, 0.85, &sd);
    ck_assert_double_gt(bad, predict(&w, SURROGATE_WARPED, 0.5, &sd));
    ck_assert_double_gt(bad, predict(&w, SURROGATE_WARPED, 0.3, &sd));
}
END_TEST

/* Without any completed trial the model suggests, and goes where the rungs are best. */
START_TEST(suggests_from_rungs_alone)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(LINE);
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    double nearest = 1;
    sweep_init(&w, s, 1, _i);
    w.spec.max_step = LAST;
    for (int i = 0; i < 16; i++) {
        ck_ok(sweep_ask(&w, &err), err);
        sweep_check(&w, w.n - 1);
        double x = sweep_number(&w, w.n - 1, 0);
        struct observation *o = &w.trials[w.n - 1];
        o->state = OBSERVED_PARTIAL;
        double step = i % 4 == 3 ? 9 : 3;
        reach(&w, step, final_value(x) + 0.8 * (1 - log(step) / log(LAST)));
        if (i >= 5) {
            nearest = fmin(nearest, fabs(x - 0.7));
            ck_assert_str_eq(json_string_value(json_object_get(w.reason, "phase")), "model");
            ck_assert_int_eq(json_integer_value(json_object_get(w.reason, "rungs")), i);
            ck_assert_int_eq(json_integer_value(json_object_get(w.reason, "failed")), 0);
        }
    }
    ck_assert_double_lt(nearest, 0.1);
}
END_TEST

/* The best trials are those of the last step; moves also begin at trials that the model expects to
 * be better. */
START_TEST(the_best_trials_have_completed)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(LINE);
    AS_AUTO(sweep_done) struct sweep w = {0};
    size_t top[4];
    sweep_init(&w, s, 1, false);
    w.spec.max_step = LAST;
    add_rung(&w, 0.1, 9, 0.5, OBSERVED_PARTIAL);
    add_at(&w, 0.2, 3);
    add_at(&w, 0.9, 2);
    AS_AUTO(training_set_freep) struct training_set *set = sweep_training_set(&w);
    set->expected = as_calloc(3, sizeof *set->expected);
    memcpy(set->expected, (double[]){-1, 2, 3}, 3 * sizeof *set->expected);
    ck_assert_uint_eq(gp_candidates_top(set, 4, top), 2);
    ck_assert(top[0] == 2 && top[1] == 1);
    double points[CANDIDATES_MAX];
    size_t n, n_global, near = 0;
    struct as_err err = {0};
    const struct gp_region everywhere = {0};
    ck_ok(gp_candidates(set, &everywhere, 3, points, &n, &n_global, &err), err);
    for (size_t i = n_global; i < n; i++)
        near += fabs(points[i] - 0.1) < 0.05;
    ck_assert_uint_ge(near, 8);
}
END_TEST

/* Where early ranks are the reverse of those at the end, early values must not lead the model:
 * trials that ran to the end show it. */
START_TEST(misleading_rungs_say_nothing)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(LINE);
    AS_AUTO(sweep_done) struct sweep w = {0};
    double sd;
    sweep_init(&w, s, 1, false);
    w.spec.max_step = LAST;
    for (int i = 0; i <= 24; i++) {
        double x = i / 24.0, early = 1.5 - 3 * final_value(x);
        if (i % 3 == 0)
            add_at(&w, x, final_value(x));
        else
            add_rung(&w, x, 3, early, OBSERVED_PARTIAL);
        if (i % 3 == 0)
            reach(&w, 3, early);
    }
    for (int i = 1; i < 20; i++) {
        double x = i / 20.0, got = predict(&w, SURROGATE_PLAIN, x, &sd);
        ck_assert_msg(fabs(got - final_value(x)) < 0.05, "at %g: %g, not %g", x, got,
                      final_value(x));
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("gp_rungs");
    TCase *t = tcase_create("rungs");
    tcase_add_test(t, a_set_with_rungs);
    tcase_add_test(t, a_model_learns_from_rungs);
    tcase_add_test(t, misleading_rungs_say_nothing);
    tcase_add_test(t, a_diverged_rung_is_bad);
    tcase_add_loop_test(t, suggests_from_rungs_alone, 0, 2);
    tcase_add_test(t, the_best_trials_have_completed);
    suite_add_tcase(s, t);
    return s;
}
