/* The bound of what a sweep can still gain, against a bound by brute force: the long double oracle
 * on a fine grid. */
#include <math.h>
#include <string.h>

#include "search/regret_bound.h"
#include "base/mem.h"
#include "search/gp/surrogate.h"
#include "search/sampling/sampler.h"
#include "tests/search/regression/gp_reference.h"
#include "tests/search/sweep.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define GRID 2000

static double curve(double x)
{
    return sin(9 * x) + 2 * (x - 0.4) * (x - 0.4);
}

/* n trials at the points of a sequence, in a space of numbers within 0 and 1. */
static void fill(struct sweep *w, const struct space *s, size_t n, double (*value)(const double *))
{
    struct as_err err = {0};
    sweep_init(w, s, 1, false);
    for (size_t t = 0; t < n; t++) {
        AS_AUTO(config_freep) struct config *c = NULL;
        double x[2] = {0};
        ck_ok(sampler_draw(s, SAMPLER_SOBOL, 3, t, &c, NULL, &err), err);
        for (size_t i = 0; i < s->n; i++)
            x[i] = c->entries[i].value.real;
        sweep_add(w, c, value(x));
    }
}

static struct regret_bound bound_of(const struct sweep *w)
{
    struct as_err err = {0};
    struct regret_bound b = {0};
    const struct history h = {w->trials, w->n};
    ck_ok(regret_bound_compute(&w->spec, &h, &b, &err), err);
    return b;
}

static double on_line(const double *x)
{
    return curve(*x);
}

/* The model is the one that the function under test fits; the ends come from the oracle. */
static double brute_force(const struct sweep *w)
{
    struct as_err err = {0};
    AS_AUTO(surrogate_store_done) struct surrogate_store store = {0};
    AS_AUTO(surrogate_done) struct surrogate m = {0};
    AS_AUTO(training_set_freep) struct training_set *set = NULL;
    const struct history h = {w->trials, w->n};
    ck_ok(training_set_create(&w->spec, &h, NULL, &set, &err), err);
    const struct surrogate_spec spec = {SURROGATE_PLAIN, 0, 2048, w->n};
    ck_ok(surrogate_prepare(&store, set, &spec, NULL, &m, &err), err);
    struct gp_case g = {.c = *gp_model_columns(m.model)};
    g.rows = (struct gp_rows){.n = w->n, .x = gp_model_x(m.model)};
    g.theta = (double *)gp_model_theta(m.model);
    g.y = (double *)gp_warp_values(m.warp);
    double t = (double)w->n, beta = sqrt(0.4 * log(t * t * acos(-1) * acos(-1) / 0.6));
    double upper = INFINITY, lower = INFINITY, mean, var, constant;
    for (int i = 0; i <= GRID + (int)w->n; i++) {
        double x = i <= GRID ? (double)i / GRID : set->points[i - GRID - 1];
        reference_posterior(&g, w->n, &(struct gp_rows){.n = 1, .x = &x}, &mean, &var, &constant);
        lower = fmin(lower, mean - beta * sqrt(fmax(var, 1e-12)));
        if (i > GRID)
            upper = fmin(upper, mean + beta * sqrt(fmax(var, 1e-12)));
    }
    return surrogate_back(&m, upper) - surrogate_back(&m, lower);
}

START_TEST(equals_brute_force)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml("x: {type: float, min: 0, max: 1}\n");
    static const size_t sizes[] = {3, 6, 11, 16};
    AS_AUTO(sweep_done) struct sweep w = {0};
    fill(&w, s, sizes[_i], on_line);
    struct regret_bound b = bound_of(&w);
    double want = brute_force(&w);
    ck_assert(b.is_known && b.is_enough == (sizes[_i] >= REGRET_BOUND_TRIALS + 1));
    ck_assert_msg(fabs(b.bound - want) <= 1e-3 * (0.01 + want), "%.9g, not %.9g", b.bound, want);
}
END_TEST

/* A wave in two parameters. */
static double wave(const double *x)
{
    return sin(5 * x[0]) + (x[1] - 0.6) * (x[1] - 0.6) + 0.3 * x[0] * x[1];
}

/* The bound holds what is left, and falls as trials are added. The same metric with the other sign
 * and goal has the same bound. */
START_TEST(holds_what_is_left)
{
    AS_AUTO(space_freep)
    struct space *s =
        space_of_yaml("x: {type: float, min: 0, max: 1}\ny: {type: float, min: 0, max: 1}\n");
    double least = INFINITY, first = 0, last = 0;
    for (int i = 0; i <= 200; i++)
        for (int j = 0; j <= 200; j++)
            least = fmin(least, wave((double[]){i / 200.0, j / 200.0}));
    for (size_t n = 12; n <= 40; n += 7) {
        AS_AUTO(sweep_done) struct sweep w = {0};
        double best = INFINITY;
        fill(&w, s, n, wave);
        for (size_t i = 0; i < n; i++)
            best = fmin(best, w.trials[i].values[0]);
        struct regret_bound b = bound_of(&w);
        ck_assert_msg(b.bound >= best - least - 1e-3, "%zu trials: %g, but %g is left", n, b.bound,
                      best - least);
        ck_assert(b.is_enough && b.relative > 0 && isfinite(b.relative));
        first = n == 12 ? b.bound : first;
        last = b.bound;
        for (size_t i = 0; i < n; i++)
            w.trials[i].values[0] *= -1;
        w.spec.maximize[0] = true;
        ck_assert_double_eq_tol(bound_of(&w).bound, b.bound, 1e-12);
    }
    ck_assert_msg(last < first / 2, "%g at first, %g at last", first, last);
}
END_TEST

START_TEST(unknown_without_a_model)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml("x: {type: float, min: 0, max: 1}\n");
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    struct regret_bound b = {.is_known = true};
    fill(&w, s, 6, on_line);
    ck_ok(regret_bound_compute(&w.spec, NULL, &b, &err), err);
    ck_assert(!b.is_known);
    w.spec.n_objectives = 2;
    for (size_t i = 0; i < 6; i++)
        w.trials[i].values[1] = 0;
    ck_assert(!bound_of(&w).is_known);
    w.spec.n_objectives = 1;
    ck_assert(bound_of(&w).is_known);
    w.spec.n_outcomes = 1; /* nothing is feasible */
    w.spec.outcomes[0] = (struct outcome_bound){.min = 1, .max = 2};
    for (size_t i = 0; i < 6; i++)
        w.trials[i].outcomes[0] = 0;
    ck_assert(!bound_of(&w).is_known);
    w.spec.n_outcomes = 0;
    for (size_t i = 0; i < 6; i++)
        w.trials[i].values[0] = 4; /* nothing differs: nothing to gain, as far as a model knows */
    ck_assert(bound_of(&w).bound >= 0);
}
END_TEST

/* Pending trials do not make it smaller: nothing is known of them. */
START_TEST(pending_trials_are_not_known)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml("x: {type: float, min: 0, max: 1}\n");
    AS_AUTO(sweep_done) struct sweep w = {0};
    fill(&w, s, 9, on_line);
    w.n = 6;
    double want = bound_of(&w).bound;
    w.n = 9;
    for (size_t i = 6; i < 9; i++)
        w.trials[i].state = OBSERVED_PENDING;
    double got = bound_of(&w).bound;
    ck_assert(memcmp(&got, &want, sizeof got) == 0);
}
END_TEST

/* Each count once, then each larger by a sixteenth; 89 of them up to 1,000. */
START_TEST(the_schedule_is_fixed)
{
    static const size_t counts[] = {0, 3, 4, 31, 32, 33, 34, 47, 48, 51, 1000};
    static const size_t next[] = {4, 4, 5, 32, 34, 34, 36, 48, 51, 54, 1027};
    size_t n = 0;
    for (size_t i = 0; i < AS_ARRAY_LEN(counts); i++)
        ck_assert_msg(regret_bound_next(counts[i]) == next[i], "after %zu: %zu, not %zu", counts[i],
                      regret_bound_next(counts[i]), next[i]);
    for (size_t count = 0; (count = regret_bound_next(count)) <= 1000;)
        n++;
    ck_assert_uint_eq(n, 89);
}
END_TEST

/* Which count is the latest one, and which may follow another: some may be left out before one
 * of 32 or more. */
START_TEST(counts_follow_each_other)
{
    static const size_t of[] = {0, 3, 4, 31, 32, 33, 34, 50, 51};
    static const size_t latest[] = {0, 0, 4, 31, 32, 32, 34, 48, 51};
    static const struct {
        size_t before, count;
        bool may;
    } pairs[] = {{0, 4, true},    {0, 5, false},   {4, 4, false},   {4, 5, true},   {4, 6, false},
                 {4, 32, true},   {29, 31, false}, {0, 34, true},   {7, 35, false}, {7, 48, true},
                 {31, 34, true},  {32, 34, true},  {32, 33, false}, {32, 36, true}, {32, 48, true},
                 {32, 49, false}, {48, 36, false}, {48, 48, false}, {34, 51, true}};
    for (size_t i = 0; i < AS_ARRAY_LEN(of); i++)
        ck_assert_msg(regret_bound_latest(of[i]) == latest[i], "up to %zu: %zu, not %zu", of[i],
                      regret_bound_latest(of[i]), latest[i]);
    for (size_t i = 0; i < AS_ARRAY_LEN(pairs); i++)
        ck_assert_msg(regret_bound_follows(pairs[i].before, pairs[i].count) == pairs[i].may,
                      "%zu after %zu", pairs[i].count, pairs[i].before);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("regret_bound");
    TCase *t = tcase_create("bound");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, equals_brute_force, 0, 4);
    tcase_add_test(t, holds_what_is_left);
    tcase_add_test(t, unknown_without_a_model);
    tcase_add_test(t, pending_trials_are_not_known);
    tcase_add_test(t, the_schedule_is_fixed);
    tcase_add_test(t, counts_follow_each_other);
    suite_add_tcase(s, t);
    return s;
}
