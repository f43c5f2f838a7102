/* The acquisitions as functions of means and deviations.
 *
 * No model is needed: an acquisition depends on a point only through these few numbers. Gradients
 * are compared with central differences, and values with closed forms. */
#include <math.h>

#include "base/rng.h"
#include "search/gp/acquisition.h"
#include "tests/support/check_main.h"

#define MODELS 4

/* Central differences with a step that suits the size of the argument. */
static void check_gradient(const struct acquisition *a, const double *mean, const double *sd)
{
    double d_mean[MODELS], d_sd[MODELS], m[MODELS], s[MODELS];
    size_t n = a->n_objectives + a->n_limits;
    double v = acquisition_value(a, mean, sd, d_mean, d_sd);
    ck_assert(isfinite(v));
    ck_assert(v == acquisition_value(a, mean, sd, NULL, NULL));
    for (size_t k = 0; k < 2 * n; k++) {
        double lo = 0, hi = 0, h = 0;
        for (int side = -1; side <= 1; side += 2) {
            for (size_t i = 0; i < n; i++) {
                m[i] = mean[i];
                s[i] = sd[i];
            }
            double *x = k < n ? &m[k] : &s[k - n];
            h = 1e-6 * (k < n ? fmax(fabs(*x), sd[k]) : *x);
            *x += side * h;
            *(side < 0 ? &lo : &hi) = acquisition_value(a, m, s, NULL, NULL);
        }
        double want = (hi - lo) / (2 * h), got = k < n ? d_mean[k] : d_sd[k - n];
        /* differences cannot resolve the rounding of the values divided by the step */
        double blur = 4e-16 * fabs(v) / h;
        ck_assert_msg(fabs(got - want) <= 1e-6 * fmax(1, fabs(want)) + 8 * blur,
                      "kind %d, derivative %zu: %.17g, differences %.17g", (int)a->kind, k, got,
                      want);
    }
}

static double pick(struct rng *r, double lo, double hi)
{
    return lo + (hi - lo) * rng_uniform(r);
}

static void check_at_random(struct acquisition *a, uint64_t seed)
{
    struct rng r;
    rng_init(&r, seed, 1);
    for (int i = 0; i < 400; i++) {
        double mean[MODELS], sd[MODELS];
        for (size_t k = 0; k < MODELS; k++) {
            mean[k] = pick(&r, -3, 3);
            sd[k] = exp(pick(&r, -5, 1));
        }
        check_gradient(a, mean, sd);
    }
}

START_TEST(gradients_match_differences)
{
    static const acquisition_kind kinds[] = {ACQUISITION_UCB, ACQUISITION_LOGEI, ACQUISITION_PE};
    for (size_t k = 0; k < 3; k++) {
        struct acquisition a = {.kind = kinds[k],
                                .n_objectives = 1,
                                .beta = 1.8,
                                .best = -1.1,
                                .threshold = 0.2137,
                                .n_limits = 3,
                                .limits = {{-INFINITY, 0.3}, {0.1, INFINITY}, {-0.5, 0.7}}};
        check_at_random(&a, k);
        a.n_limits = 0;
        check_at_random(&a, 10 + k);
    }
}
END_TEST

START_TEST(feasibility_is_the_limits_alone)
{
    struct acquisition a = {
        .kind = ACQUISITION_FEASIBILITY,
        .n_limits = 4,
        .limits = {{-INFINITY, 0.3}, {0.1, INFINITY}, {-0.5, 0.7}, {-INFINITY, INFINITY}}};
    check_at_random(&a, 20);
    /* P(c <= 0.3) for a standard normal c */
    double mean = 0, sd = 1;
    a.n_limits = 1;
    ck_assert_double_eq_tol(acquisition_value(&a, &mean, &sd, NULL, NULL), log(0.617911422188953),
                            1e-14);
}
END_TEST

/* The last limit is that of failures. However little is to be gained near the best trials, a place
 * where most trials fail is not better. */
START_TEST(nothing_outweighs_a_likely_failure)
{
    struct acquisition a = {.kind = ACQUISITION_LOGEI,
                            .n_objectives = 1,
                            .best = -1.1,
                            .n_limits = 1,
                            .failure_weight = 15,
                            .limits = {{-INFINITY, 0}}};
    double known_mean[] = {20, -3}, unknown_mean[] = {-1, 1}, sd[] = {1, 1};
    ck_assert_double_gt(acquisition_value(&a, known_mean, sd, NULL, NULL),
                        acquisition_value(&a, unknown_mean, sd, NULL, NULL));
    check_at_random(&a, 30);
    a.failure_weight = 1; /* without penalty, a failure only costs its trial */
    ck_assert_double_lt(acquisition_value(&a, known_mean, sd, NULL, NULL),
                        acquisition_value(&a, unknown_mean, sd, NULL, NULL));
    check_at_random(&a, 31);
}
END_TEST

START_TEST(hypervolume_gradients_match_differences)
{
    static const double costs[] = {-1.2, 0.9, -0.4, -0.1, 0.8, -1.3};
    static const double reference[] = {1.2, 1.3};
    struct as_err err = {0};
    AS_AUTO(gp_ehvi_freep) struct gp_ehvi *e = NULL;
    ck_ok(gp_ehvi_create(costs, 3, 2, reference, &e, &err), err);
    struct acquisition a = {.kind = ACQUISITION_EHVI,
                            .n_objectives = 2,
                            .ehvi = e,
                            .n_limits = 1,
                            .limits = {{-INFINITY, 0.3}}};
    struct rng r;
    rng_init(&r, 5, 1);
    for (int i = 0; i < 200; i++) {
        double mean[] = {pick(&r, -2, 2), pick(&r, -2, 2), pick(&r, -2, 2)};
        double sd[] = {exp(pick(&r, -2, 1)), exp(pick(&r, -2, 1)), exp(pick(&r, -2, 1))};
        check_gradient(&a, mean, sd);
    }
}
END_TEST

/* Far from the limits the logarithm stays finite and its slope points back; both ends may be
 * close. */
START_TEST(stays_finite_far_away)
{
    struct acquisition a = {.kind = ACQUISITION_LOGEI,
                            .n_objectives = 1,
                            .best = -3,
                            .n_limits = 2,
                            .limits = {{-INFINITY, 0}, {1, 1 + 1e-9}}};
    for (double far = 2; far < 1e6; far *= 10) {
        double mean[] = {far, far, 1 + far}, sd[] = {1, 1, 1}, dm[3], ds[3];
        ck_assert(isfinite(acquisition_value(&a, mean, sd, dm, ds)));
        ck_assert_msg(dm[0] < 0 && dm[1] < 0 && dm[2] < 0, "%g: %g %g %g", far, dm[0], dm[1],
                      dm[2]);
        ck_assert(ds[1] > 0 && ds[2] > 0);
    }
}
END_TEST

START_TEST(known_values)
{
    struct acquisition a = {.kind = ACQUISITION_UCB, .n_objectives = 1, .beta = 1.8};
    double mean = 0.5, sd = 2;
    ck_assert_double_eq(acquisition_value(&a, &mean, &sd, NULL, NULL), -0.5 + 3.6);
    a = (struct acquisition){.kind = ACQUISITION_PE, .n_objectives = 1, .threshold = -1};
    ck_assert_double_eq_tol(acquisition_value(&a, &mean, &sd, NULL, NULL), 2 - 10 * 0.5, 1e-15);
    /* EI of a standard normal below 0: 1 / sqrt(2 pi) */
    a = (struct acquisition){.kind = ACQUISITION_LOGEI, .n_objectives = 1};
    mean = 0;
    sd = 1;
    ck_assert_double_eq_tol(acquisition_value(&a, &mean, &sd, NULL, NULL), -0.91893853320467274178,
                            1e-15);
    ck_assert_str_eq(acquisition_name(ACQUISITION_EHVI), "ehvi");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/gp/acquisition");
    TCase *t = tcase_create("acquisition");
    tcase_add_test(t, gradients_match_differences);
    tcase_add_test(t, feasibility_is_the_limits_alone);
    tcase_add_test(t, hypervolume_gradients_match_differences);
    tcase_add_test(t, nothing_outweighs_a_likely_failure);
    tcase_add_test(t, stays_finite_far_away);
    tcase_add_test(t, known_values);
    suite_add_tcase(s, t);
    return s;
}
