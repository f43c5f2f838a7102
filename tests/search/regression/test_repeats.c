/* What trials of one configuration say of the noise. */
#include "search/regression/repeats.h"

#include <math.h>

#include "search/sampling/sampler.h"
#include "tests/search/sweep.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

/* Two trials at one place, four elsewhere. */
static void fill(struct sweep *w, const struct space *s, double first, double second)
{
    struct as_err err = {0};
    sweep_init(w, s, 1, false);
    for (size_t t = 0; t < 5; t++) {
        AS_AUTO(config_freep) struct config *c = NULL;
        ck_ok(sampler_draw(s, SAMPLER_SOBOL, 3, t, &c, NULL, &err), err);
        sweep_add(w, c, t == 2 ? first : 1);
    }
    sweep_add(w, w->trials[2].config, second);
    w->trials[5].is_suggested = true;
}

static struct repeats judge(const struct sweep *w)
{
    struct as_err err = {0};
    struct repeats r;
    ck_ok(repeats_judge(&w->spec, w->trials, w->n, &r, &err), err);
    return r;
}

START_TEST(values_that_differ_are_noise)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("x: {type: float, min: 0, max: 1}\n"
                                    "n: {type: int, min: 0, max: 9}\n");
    AS_AUTO(sweep_done) struct sweep w = {0};
    fill(&w, s, 0.5, 0.6);
    ck_assert(judge(&w).noise == NOISE_SEEN && judge(&w).n == 1);
    w.trials[5].is_suggested = false; /* whoever made the trial */
    ck_assert(judge(&w).noise == NOISE_SEEN && judge(&w).n == 0);
    w.trials[5].state = OBSERVED_PENDING;
    ck_assert(judge(&w).noise == NOISE_UNKNOWN);
    w.trials[5].state = OBSERVED_COMPLETED;
    w.trials[5].values[0] = NAN;
    ck_assert(judge(&w).noise == NOISE_UNKNOWN);
    w.trials[5].values[0] = 0.6;
    w.spec.is_exact = true; /* the document decides */
    ck_assert(judge(&w).noise == NOISE_NONE);
}
END_TEST

START_TEST(equal_values_are_exact_if_they_were_measured_twice)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml("x: {type: float, min: 0, max: 1}\n");
    AS_AUTO(sweep_done) struct sweep w = {0};
    fill(&w, s, 0.5, 0.5);
    ck_assert(judge(&w).noise == NOISE_NONE);
    w.trials[5].is_suggested = false; /* perhaps one result that was added twice */
    ck_assert(judge(&w).noise == NOISE_UNKNOWN);
    w.n = 0;
    ck_assert(judge(&w).noise == NOISE_UNKNOWN && judge(&w).n == 0);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("repeats");
    TCase *t = tcase_create("repeats");
    tcase_add_test(t, values_that_differ_are_noise);
    tcase_add_test(t, equal_values_are_exact_if_they_were_measured_twice);
    suite_add_tcase(s, t);
    return s;
}
