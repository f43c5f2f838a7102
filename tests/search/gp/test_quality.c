/* Does the search find minima in few trials? Seeds are fixed, so the outcome is fixed on one
 * machine; on other processors the last bits differ, and the trials may differ too. False alarms:
 * among 48 sweeps with other seeds at most one missed the target of its function. At that rate
 * three of six do so with a probability of 1.8e-4, for any of the three functions 5.4e-4. */
#include <math.h>

#include "base/rng.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"
#include "tests/search/sweep.h"

#define SEEDS 6

typedef double (*objective)(const double *x);

static double branin(const double *x)
{
    double a = x[1] - 5.1 / (4 * M_PI * M_PI) * x[0] * x[0] + 5 / M_PI * x[0] - 6;
    return a * a + 10 * (1 - 1 / (8 * M_PI)) * cos(x[0]) + 10 - 0.397887357729739;
}

static double hartmann6(const double *x)
{
    static const double a[4][6] = {{10, 3, 17, 3.5, 1.7, 8},
                                   {0.05, 10, 17, 0.1, 8, 14},
                                   {3, 3.5, 1.7, 10, 17, 8},
                                   {17, 8, 0.05, 10, 0.1, 14}};
    static const double p[4][6] = {{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
                                   {0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
                                   {0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
                                   {0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381}};
    static const double weight[4] = {1, 1.2, 3, 3.2};
    double sum = 3.32236801141551;
    for (int i = 0; i < 4; i++) {
        double e = 0;
        for (int j = 0; j < 6; j++)
            e += a[i][j] * (x[j] - p[i][j]) * (x[j] - p[i][j]);
        sum -= weight[i] * exp(-e);
    }
    return sum;
}

/* Ackley's function of five switches and three numbers; 0 where all are 0. */
static double ackley_mixed(const double *x)
{
    double square = 0, wave = 0;
    for (int i = 0; i < 8; i++) {
        square += x[i] * x[i];
        wave += cos(2 * M_PI * x[i]);
    }
    return -20 * exp(-0.2 * sqrt(square / 8)) - exp(wave / 8) + 20 + M_E;
}

static const struct {
    const char *name, *space;
    objective f;
    size_t trials;
    double mark;
    size_t at_least; /* of the seeds reach it */
} problems[] = {
    {"branin", "x: {type: float, min: -5, max: 10}\ny: {type: float, min: 0, max: 15}\n", branin,
     30, 1e-2, SEEDS - 2},
    {"hartmann6",
     "a: {type: float, min: 0, max: 1}\nb: {type: float, min: 0, max: 1}\n"
     "c: {type: float, min: 0, max: 1}\nd: {type: float, min: 0, max: 1}\n"
     "e: {type: float, min: 0, max: 1}\nf: {type: float, min: 0, max: 1}\n",
     hartmann6, 60, 0.13 /* the second best minimum is at 0.119 */, SEEDS - 2},
    {"ackley_mixed",
     "a: {type: bool}\nb: {type: bool}\nc: {type: bool}\nd: {type: bool}\ne: {type: bool}\n"
     "x: {type: float, min: -1, max: 1.2}\ny: {type: float, min: -1, max: 1.2}\n"
     "z: {type: float, min: -1, max: 1.2}\n",
     ackley_mixed, 80, 0.05, SEEDS - 2},
};

/* Which trials fail, if any do. */
typedef enum failing { FAIL_NONE, FAIL_REGION, FAIL_FIFTH } failing;

static bool fails(failing how, const double *x, uint64_t seed, size_t trial)
{
    struct rng r;
    rng_init(&r, seed, trial);
    return how == FAIL_REGION ? x[0] + x[1] > 13 || x[0] < -4
                              : how == FAIL_FIFTH && rng_below(&r, 5) == 0;
}

static double run(const struct space *s, size_t problem, uint64_t seed, failing how)
{
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    double best = INFINITY, x[8];
    sweep_init(&w, s, seed, true);
    for (size_t t = 0; t < problems[problem].trials; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        for (size_t i = 0; i < s->n; i++)
            x[i] = sweep_number(&w, t, i);
        if (fails(how, x, seed, t)) {
            w.trials[t].state = OBSERVED_FAILED;
            continue;
        }
        double v = problems[problem].f(x);
        sweep_tell(&w, t, v);
        best = fmin(best, v);
    }
    return best;
}

START_TEST(finds_minima)
{
    for (size_t p = 0; p < AS_ARRAY_LEN(problems); p++) {
        AS_AUTO(space_freep) struct space *s = NULL;
        struct as_err err = {0};
        ck_ok(space_from_yaml(problems[p].space, &s, &err), err);
        size_t reached = 0;
        for (uint64_t seed = 0; seed < SEEDS; seed++)
            reached += run(s, p, 2000 + seed, FAIL_NONE) <= problems[p].mark;
        ck_assert_msg(reached >= problems[p].at_least, "%s: %zu of %d reached %g", problems[p].name,
                      reached, SEEDS, problems[p].mark);
    }
}
END_TEST

/* A third of the space fails, and two minima of Branin lie outside of it; or every fifth trial
 * fails, independent of its place. Three of four sweeps of the second kind reach the mark. */
START_TEST(finds_minima_among_failures)
{
    for (failing how = FAIL_REGION; how <= FAIL_FIFTH; how++) {
        AS_AUTO(space_freep) struct space *s = NULL;
        struct as_err err = {0};
        size_t reached = 0;
        ck_ok(space_from_yaml(problems[0].space, &s, &err), err);
        for (uint64_t seed = 0; seed < 2 * SEEDS; seed++)
            reached += run(s, 0, 2000 + seed, how) <= problems[0].mark;
        ck_assert_msg(reached > SEEDS, "failures %d: %zu of %d reached %g", how, reached, 2 * SEEDS,
                      problems[0].mark);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/gp");
    TCase *t = tcase_create("quality");
    tcase_add_test(t, finds_minima);
    tcase_add_test(t, finds_minima_among_failures);
    suite_add_tcase(s, t);
    return s;
}
