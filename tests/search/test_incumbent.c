/* The best trial of noisy sweeps: luck does not count, and exact values do; noise that differs from
 * place to place; the repeat that a sweep makes when it has to know. */
#include "search/incumbent.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "search/regression/local_noise.h"
#include "search/sampling/sampler.h"
#include "tests/search/sweep.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define TRIALS 120
#define SEEDS 12

static const char line[] = "x: {type: float, min: 0, max: 1}\n";

/* A valley at 0.25 with little noise, and a shallower one at 0.75 with much. */
static double valleys(double x)
{
    return fmin(4 * (x - 0.25) * (x - 0.25), 0.12 + 2 * (x - 0.75) * (x - 0.75));
}

static double noise_at(double x)
{
    return 0.005 + 0.3 * exp(-(x - 0.75) * (x - 0.75) / (2 * 0.1 * 0.1));
}

static double place(const struct sweep *w, size_t trial)
{
    return w->trials[trial].config->entries[0].value.real;
}

/* Trials spread over the line, and the first one again. */
static void fill(struct sweep *w, const struct space *s, uint64_t seed, bool is_noisy)
{
    struct as_err err = {0};
    struct rng r;
    rng_init(&r, seed, 77);
    sweep_init(w, s, seed, false);
    for (size_t t = 0; t < TRIALS; t++) {
        AS_AUTO(config_freep) struct config *c = NULL;
        ck_ok(sampler_draw(s, SAMPLER_SOBOL, seed, t, &c, NULL, &err), err);
        double x = c->entries[0].value.real;
        sweep_add(w, c, valleys(x) + (is_noisy ? noise_at(x) * rng_normal(&r) : 0));
    }
    double x = place(w, 0);
    sweep_add(w, w->trials[0].config, valleys(x) + (is_noisy ? noise_at(x) * rng_normal(&r) : 0));
    w->trials[TRIALS].is_suggested = true;
}

static struct incumbent incumbent_of(const struct sweep *w)
{
    struct as_err err = {0};
    struct incumbent b = {0};
    const struct history h = {w->trials, w->n};
    ck_ok(incumbent_find(&w->spec, &h, &b, &err), err);
    return b;
}

/* The best value is nearly always a lucky one of the noisy valley; the incumbent is in the other
 * one, and its interval holds the mean. */
START_TEST(luck_does_not_count)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(line);
    size_t lucky = 0, right = 0, held = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        AS_AUTO(sweep_done) struct sweep w = {0};
        fill(&w, s, seed, true);
        struct incumbent b = incumbent_of(&w);
        ck_assert(b.is_known && b.is_by_model);
        ck_assert(b.value == w.trials[b.number].values[0]);
        lucky += place(&w, b.luckiest) > 0.5;
        right += fabs(place(&w, b.number) - 0.25) < 0.1;
        held += fabs(b.mean - valleys(place(&w, b.number))) < 3 * b.deviation;
    }
    ck_assert_msg(lucky >= SEEDS - 2, "%zu lucky", lucky);
    ck_assert_msg(right >= SEEDS - 1, "%zu right", right);
    ck_assert_msg(held >= SEEDS - 2, "%zu within three deviations", held);
}
END_TEST

START_TEST(a_metric_to_be_maximised_is_the_same_with_the_other_sign)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(line);
    AS_AUTO(sweep_done) struct sweep w = {0};
    fill(&w, s, 3, true);
    struct incumbent low = incumbent_of(&w);
    w.spec.maximize[0] = true;
    for (size_t t = 0; t < w.n; t++)
        w.trials[t].values[0] = -w.trials[t].values[0];
    struct incumbent high = incumbent_of(&w);
    ck_assert(high.number == low.number && high.mean == -low.mean && high.value == -low.value);
    ck_assert(high.deviation == low.deviation && high.noise == low.noise && low.noise > 0);
}
END_TEST

START_TEST(values_count_as_told_unless_they_are_known_to_be_noisy)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(line);
    AS_AUTO(sweep_done) struct sweep w = {0};
    fill(&w, s, 1, true);
    w.n = TRIALS; /* without the repeat */
    struct incumbent b = incumbent_of(&w);
    ck_assert(b.is_known && !b.is_by_model && b.number == b.luckiest);
    w.n = TRIALS + 1;
    ck_assert(incumbent_of(&w).is_by_model);
    w.spec.is_exact = true;
    b = incumbent_of(&w);
    ck_assert(!b.is_by_model && b.number == b.luckiest);
    sweep_done(&w);
    fill(&w, s, 1, false);
    ck_assert(!incumbent_of(&w).is_by_model);
    const size_t n = w.n;
    w.n = 0;
    ck_assert(!incumbent_of(&w).is_known);
    w.n = n; /* sweep_done() frees them */
    w.spec.n_objectives = 2;
    ck_assert(!incumbent_of(&w).is_known);
}
END_TEST

/* Factors of the noise follow the places; of noise that is the same everywhere there are none. */
START_TEST(noise_has_places)
{
    static double x[TRIALS], y[TRIALS], v[TRIALS];
    const struct gp_columns c = {.n_real = 1, .n_groups = 1};
    const struct gp_rows rows = {TRIALS, x, NULL, NULL, NULL};
    struct as_err err = {0};
    double theta[3];
    AS_AUTO(gp_fit_work_freep) struct gp_fit_work *w = gp_fit_work_create();
    for (int differs = 0; differs < 2; differs++) {
        struct rng r;
        rng_init(&r, 5, (uint64_t)differs);
        for (size_t i = 0; i < TRIALS; i++) {
            x[i] = ((double)i + 0.5) / TRIALS;
            y[i] = 2 * sin(6 * x[i]) + (differs && x[i] < 0.5 ? 0.03 : 0.9) * rng_normal(&r);
        }
        ck_ok(local_noise_fit(&c, &rows, y, w, theta, v, &err), err);
        double quiet = v[TRIALS / 4], loud = v[3 * TRIALS / 4];
        if (differs)
            ck_assert_msg(loud > 50 * quiet, "%g and %g", loud, quiet);
        for (size_t i = 0; i < TRIALS && !differs; i++)
            ck_assert(v[i] == 1);
    }
}
END_TEST

/* Ask and tell n trials. Returns how many were repeats by their reason. */
static size_t run(struct sweep *w, size_t n, double noise)
{
    struct as_err err = {0};
    struct rng r;
    size_t repeats = 0;
    rng_init(&r, 9, 9);
    for (size_t t = 0; t < n; t++) {
        ck_ok(sweep_ask(w, &err), err);
        const json_t *of = json_object_get(w->reason, "repeat");
        double x = place(w, t), v = valleys(x) + noise * rng_normal(&r);
        if (of) {
            repeats++;
            ck_assert(json_is_integer(of));
            size_t first = (size_t)json_integer_value(of);
            ck_assert(config_equal(w->spec.space, w->trials[first].config, w->trials[t].config));
        }
        sweep_tell(w, t, v);
    }
    return repeats;
}

START_TEST(a_sweep_that_may_be_noisy_repeats_its_best_trial_once)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(line);
    AS_AUTO(sweep_done) struct sweep noisy = {0};
    sweep_init(&noisy, s, 4, true);
    ck_assert_int_eq(run(&noisy, 40, 0.1), 1);
    ck_assert(incumbent_of(&noisy).is_by_model);
    AS_AUTO(sweep_done) struct sweep exact = {0};
    sweep_init(&exact, s, 4, true);
    ck_assert_int_eq(run(&exact, 30, 0), 0);
    AS_AUTO(sweep_done) struct sweep declared = {0};
    sweep_init(&declared, s, 4, true);
    declared.spec.is_exact = true;
    ck_assert_int_eq(run(&declared, 30, 0.1), 0);
}
END_TEST

/* The models of exact values go through them; those of others do not. */
START_TEST(exact_values_leave_no_noise_to_the_models)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(line);
    for (int exact = 0; exact < 2; exact++) {
        AS_AUTO(sweep_done) struct sweep w = {0};
        sweep_init(&w, s, 4, true);
        w.spec.is_exact = exact;
        (void)run(&w, 20, 0.1);
        const json_t *models = json_object_get(w.state, "models");
        const json_t *theta = json_object_get(json_object_get(models, "w0"), "theta");
        double noise = json_number_value(json_array_get(theta, 2));
        ck_assert_msg((exp(noise) < 1.1e-9) == exact, "ln %g", noise);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("incumbent");
    TCase *t = tcase_create("incumbent");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, luck_does_not_count);
    tcase_add_test(t, a_metric_to_be_maximised_is_the_same_with_the_other_sign);
    tcase_add_test(t, values_count_as_told_unless_they_are_known_to_be_noisy);
    tcase_add_test(t, noise_has_places);
    tcase_add_test(t, a_sweep_that_may_be_noisy_repeats_its_best_trial_once);
    tcase_add_test(t, exact_values_leave_no_noise_to_the_models);
    suite_add_tcase(s, t);
    return s;
}
