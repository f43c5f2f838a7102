/* Results far beyond all others, such as 1e300, do not stop any method: neither one of them, early
 * or late, on the good side or the bad, nor when every second result is one. Seeds are fixed, so
 * the outcome is fixed on one machine. False alarms: a bound is on the mean over 8 seeds. With
 * these seeds no mean is more than 0.37 above its reference, and with three other sets of seeds 3
 * of 252 were more than 0.6 above it. */
#include <math.h>

#include "base/str.h"
#include "tests/search/sweep.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define SEEDS 8
#define FLOOR 1e-4 /* of a regret */
#define LOSS 0.6   /* of the mean log10 regret */
#define TRIALS 40
#define TRIALS_POPULATION 80
#define ABSURD 1e300

static double branin(const double *x)
{
    double a = x[1] - 5.1 / (4 * M_PI * M_PI) * x[0] * x[0] + 5 / M_PI * x[0] - 6;
    return a * a + 10 * (1 - 1 / (8 * M_PI)) * cos(x[0]) + 10 - 0.397887357729739;
}

static double sphere(const double *x)
{
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (x[i] - 0.3) * (x[i] - 0.3);
    return sum;
}

static double mixed(const double *x)
{
    static const double kinds[4] = {0.4, 0.1, 0.3, 0};
    double off = x[1] - 0.2 - 0.2 * x[0];
    return kinds[(int)x[0]] + off * off + 0.5 * fabs(x[2] - 0.7);
}

#define UNIT(name) name ": {type: float, min: 0, max: 1}\n"

static const struct {
    const char *name, *space;
    double (*value)(const double *x);
} problems[] = {
    {"branin", "x: {type: float, min: -5, max: 10}\ny: {type: float, min: 0, max: 15}\n", branin},
    {"sphere", UNIT("a") UNIT("b") UNIT("c") UNIT("d"), sphere},
    {"mixed", "k: {type: categorical, values: [a, b, c, d]}\n" UNIT("x") UNIT("y"), mixed},
};

/* Without `coordinate`: in so few trials, a line that lacks every second place is another line. */
static const char *const methods[] = {"gp", "tpe", "forest", "cmaes", "evolution", "mcmc"};

/* Among every second result, those whose place leaves remainder 0 have the first value, and
 * so on. */
static const struct {
    const char *name;
    double at;       /* the share of the sweep at which one result is absurd; 0: every second */
    double value[3]; /* in turn */
    enum { ALL_TRIALS, HALF_OF_THEM, EVERY_SECOND_NAN } reference;
} disturbances[] = {
    {"good, early", 0.05, {-ABSURD}, ALL_TRIALS},
    {"bad, early", 0.05, {ABSURD}, ALL_TRIALS},
    {"good, late", 0.7, {-ABSURD}, ALL_TRIALS},
    {"bad, late", 0.7, {ABSURD}, ALL_TRIALS},
    {"every second good", 0, {-ABSURD, -ABSURD, -ABSURD}, HALF_OF_THEM},
    {"every second bad", 0, {ABSURD, ABSURD, ABSURD}, HALF_OF_THEM},
    {"every second anything", 0, {ABSURD, NAN, -ABSURD}, EVERY_SECOND_NAN},
};

/* What is told instead of v. d: the index of a disturbance; -1: none; -2: every second is NaN. */
static double disturb(int d, size_t trial, size_t trials, double v)
{
    if (d == -1)
        return v;
    if (d == -2)
        return trial % 2 ? NAN : v;
    if (disturbances[d].at > 0)
        return trial == (size_t)(disturbances[d].at * (double)trials) ? disturbances[d].value[0]
                                                                      : v;
    return trial % 2 ? disturbances[d].value[trial / 2 % 3] : v;
}

struct run {
    size_t problem, trials;
    const char *method;
    int disturbance;
    bool maximize, no_cache;
};

/* Run it; returns log10 of the least value that was told as it was. */
static double run_sweep(const struct run *r, uint64_t seed, struct sweep *w, const struct space *s)
{
    struct as_err err = {0};
    double best = INFINITY;
    sweep_init(w, s, seed, !r->no_cache);
    ck_ok(search_method_parse(r->method, "", &w->spec.method, &err), err);
    w->spec.maximize[0] = r->maximize;
    for (size_t t = 0; t < r->trials; t++) {
        double x[8];
        ck_ok(sweep_ask(w, &err), err);
        for (size_t i = 0; i < s->n; i++)
            x[i] = sweep_number(w, t, i);
        double v = problems[r->problem].value(x);
        double told = disturb(r->disturbance, t, r->trials, v);
        sweep_tell(w, t, r->maximize ? -told : told);
        best = told == v ? fmin(best, v) : best;
    }
    return log10(fmax(best, FLOOR));
}

static double mean_of(const struct run *r)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(problems[r->problem].space);
    double sum = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AS_AUTO(sweep_done) struct sweep w = {0};
        sum += run_sweep(r, seed, &w, s);
    }
    return sum / SEEDS;
}

START_TEST(regret_stays)
{
    const char *method = methods[_i];
    size_t trials = as_streq(method, "gp") ? TRIALS : TRIALS_POPULATION;
    for (size_t p = 0; p < AS_ARRAY_LEN(problems); p++) {
        struct run r = {p, trials, method, -1, false, false};
        double reference[3];
        reference[ALL_TRIALS] = mean_of(&r);
        r.trials = trials / 2;
        reference[HALF_OF_THEM] = mean_of(&r);
        r.trials = trials;
        r.disturbance = -2;
        reference[EVERY_SECOND_NAN] = mean_of(&r);
        for (int d = 0; d < (int)AS_ARRAY_LEN(disturbances); d++) {
            r.disturbance = d;
            double mean = mean_of(&r), was = reference[disturbances[d].reference];
            ck_assert_msg(mean <= was + LOSS, "%s, %s, %s: %.2f, undisturbed %.2f", method,
                          problems[p].name, disturbances[d].name, mean, was);
        }
    }
}
END_TEST

static void check_same(const struct run *a, const struct run *b)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(problems[a->problem].space);
    AS_AUTO(sweep_done) struct sweep v = {0};
    AS_AUTO(sweep_done) struct sweep w = {0};
    run_sweep(a, 7, &v, s);
    run_sweep(b, 7, &w, s);
    for (size_t t = 0; t < a->trials; t++)
        ck_assert_msg(config_equal(s, v.trials[t].config, w.trials[t].config), "%s, %s: trial %zu",
                      a->method, problems[a->problem].name, t);
}

/* Both goals, both signs, and no cache: the same suggestions. */
START_TEST(signs_and_caches)
{
    for (size_t p = 0; p < AS_ARRAY_LEN(problems); p++)
        for (int d = 0; d < (int)AS_ARRAY_LEN(disturbances); d++) {
            const struct run r = {p, 25, methods[_i], d, false, false};
            struct run other = r;
            other.maximize = true;
            check_same(&r, &other);
            other = r;
            other.no_cache = true;
            check_same(&r, &other);
            other = r;
            other.disturbance = d ^ 1;
            if (d < 6)
                check_same(&r, &other);
        }
}
END_TEST

/* Where every second result is lost, those that count are of each kind of model in turn, and not of
 * the one whose turns are even. */
START_TEST(no_model_is_left_without_results)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(problems[2].space);
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    size_t warped = 0, smooth = 0;
    sweep_init(&w, s, 3, true);
    for (size_t t = 0; t < 60; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        const char *model = json_string_value(json_object_get(w.reason, "model"));
        warped += t % 2 == 0 && as_streq(model, "warped");
        smooth += t % 2 == 0 && as_streq(model, "smooth");
        double x[] = {sweep_number(&w, t, 0), sweep_number(&w, t, 1), sweep_number(&w, t, 2)};
        sweep_tell(&w, t, t % 2 ? ABSURD : mixed(x));
    }
    ck_assert_msg(warped >= 5 && smooth >= 5, "%zu warped, %zu smooth", warped, smooth);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/absurd_values");
    TCase *t = tcase_create("methods");
    tcase_add_loop_test(t, regret_stays, 0, AS_ARRAY_LEN(methods));
    tcase_add_loop_test(t, signs_and_caches, 0, AS_ARRAY_LEN(methods));
    tcase_add_test(t, no_model_is_left_without_results);
    suite_add_tcase(s, t);
    return s;
}
