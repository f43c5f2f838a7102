/* Expected improvement of the hypervolume.
 *
 * Values are compared with Monte Carlo draws and, without uncertainty, with the growth of the exact
 * hypervolume. Gradients are compared with central differences, also where the value underflows.
 * Further tests cover extreme means and deviations, very narrow boxes and fronts that must be
 * thinned. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "search/gp/ehvi.h"
#include "search/pareto/hypervolume.h"
#include "tests/support/check_main.h"

#define MAX_N 40
#define MAX_M 4

struct problem {
    size_t n, m;
    double costs[MAX_N * MAX_M], reference[MAX_M], mu[MAX_M], sigma[MAX_M];
};

/* Some points are dominated, tied, copied, or outside the reference. */
static void random_problem(struct rng *r, size_t m, struct problem *p)
{
    p->m = m;
    p->n = rng_below(r, MAX_N + 1);
    for (size_t i = 0; i < p->n * m; i++)
        p->costs[i] = rng_below(r, 4) ? rng_uniform(r) * 1.1 : (double)rng_below(r, 6) / 5;
    for (size_t k = 0; k < m; k++) {
        p->reference[k] = 1;
        p->mu[k] = 1.5 * rng_uniform(r) - 0.2;
        p->sigma[k] = exp(3 * rng_uniform(r) - 3);
    }
}

static struct gp_ehvi *create(const struct problem *p)
{
    struct gp_ehvi *e = NULL;
    struct as_err err;
    ck_ok(gp_ehvi_create(p->costs, p->n, p->m, p->reference, &e, &err), err);
    return e;
}

/* Mean and standard error of the hypervolume's growth over normal draws. */
static void by_draws(const struct problem *p, size_t draws, double *ret_mean, double *ret_error)
{
    struct rng r;
    struct as_err err;
    double with[(MAX_N + 1) * MAX_M], before, sum = 0, square = 0;
    rng_init(&r, 4, 4);
    memcpy(with, p->costs, p->n * p->m * sizeof *with);
    ck_ok(gp_hypervolume(p->costs, p->n, p->m, NULL, p->reference, &before, &err), err);
    for (size_t s = 0; s < draws; s++) {
        double after;
        for (size_t k = 0; k < p->m; k++)
            with[p->n * p->m + k] = p->mu[k] + p->sigma[k] * rng_normal(&r);
        ck_ok(gp_hypervolume(with, p->n + 1, p->m, NULL, p->reference, &after, &err), err);
        sum += after - before;
        square += (after - before) * (after - before);
    }
    *ret_mean = sum / (double)draws;
    *ret_error = sqrt(fmax(0, square / (double)draws - *ret_mean * *ret_mean) / (double)draws);
}

/* 60 problems, 4,000 draws each, five standard errors: a chance of 1 in 30,000 to fail by accident.
 * The draws are fixed, so the outcome never changes. */
START_TEST(equals_monte_carlo)
{
    struct rng r;
    struct problem p;
    rng_init(&r, 21, 1);
    for (size_t round = 0; round < 60; round++) {
        random_problem(&r, 2 + round % 3, &p);
        AS_AUTO(gp_ehvi_freep) struct gp_ehvi *e = create(&p);
        double mean, error, value = exp(gp_ehvi_log(e, p.mu, p.sigma, NULL, NULL));
        by_draws(&p, 4000, &mean, &error);
        ck_assert_msg(fabs(value - mean) <= 5 * error + 1e-6, "round %zu: %g, draws say %g +- %g",
                      round, value, mean, error);
    }
}
END_TEST

/* With almost no deviation it equals the growth of the hypervolume at the mean. */
START_TEST(equals_improvement_where_nothing_is_uncertain)
{
    struct rng r;
    struct problem p;
    struct as_err err;
    rng_init(&r, 22, 1);
    for (size_t round = 0; round < 300; round++) {
        random_problem(&r, 2 + round % 3, &p);
        for (size_t k = 0; k < p.m; k++)
            p.sigma[k] = 1e-9;
        double with[(MAX_N + 1) * MAX_M], before, after;
        memcpy(with, p.costs, p.n * p.m * sizeof *with);
        memcpy(with + p.n * p.m, p.mu, p.m * sizeof *with);
        ck_ok(gp_hypervolume(p.costs, p.n, p.m, NULL, p.reference, &before, &err), err);
        ck_ok(gp_hypervolume(with, p.n + 1, p.m, NULL, p.reference, &after, &err), err);
        AS_AUTO(gp_ehvi_freep) struct gp_ehvi *e = create(&p);
        double value = exp(gp_ehvi_log(e, p.mu, p.sigma, NULL, NULL));
        ck_assert_msg(fabs(value - (after - before)) < 1e-8, "round %zu: %g, wanted %g", round,
                      value, after - before);
    }
}
END_TEST

/* Central differences, also where the value itself is far below the smallest double. */
static void check_gradient(struct gp_ehvi *e, struct problem *p, double tolerance)
{
    double dmu[MAX_M], dsigma[MAX_M];
    double value = gp_ehvi_log(e, p->mu, p->sigma, dmu, dsigma);
    ck_assert(isfinite(value));
    ck_assert_double_eq(value, gp_ehvi_log(e, p->mu, p->sigma, NULL, NULL));
    for (size_t k = 0; k < 2 * p->m; k++) {
        double *v = k < p->m ? &p->mu[k] : &p->sigma[k - p->m], at = *v;
        double slope = k < p->m ? dmu[k] : dsigma[k - p->m];
        double step = 1e-5 * p->sigma[k % p->m];
        *v = at + step;
        double up = gp_ehvi_log(e, p->mu, p->sigma, NULL, NULL);
        *v = at - step;
        double down = gp_ehvi_log(e, p->mu, p->sigma, NULL, NULL);
        *v = at;
        double numeric = (up - down) / (2 * step);
        double noise = 4 * DBL_EPSILON * fabs(value) / step; /* of the difference itself */
        ck_assert_msg(fabs(slope - numeric) <= tolerance * (1 + fabs(slope)) + noise,
                      "slope %zu of %zu objectives is %.10g, differences say %.10g (value %g)", k,
                      p->m, slope, numeric, value);
    }
}

START_TEST(gradients)
{
    struct rng r;
    struct problem p;
    rng_init(&r, 23, 1);
    for (size_t round = 0; round < 300; round++) {
        random_problem(&r, 2 + round % 3, &p);
        AS_AUTO(gp_ehvi_freep) struct gp_ehvi *e = create(&p);
        check_gradient(e, &p, 1e-6);
    }
}
END_TEST

START_TEST(far_tails)
{
    struct rng r;
    struct problem p;
    rng_init(&r, 24, 1);
    for (size_t round = 0; round < 300; round++) {
        random_problem(&r, 2 + round % 3, &p);
        for (size_t k = 0; k < p.m; k++) {
            p.sigma[k] = 0.01 + 0.1 * rng_uniform(&r);
            p.mu[k] = 1 + p.sigma[k] * pow(10, 4 * rng_uniform(&r)); /* up to 10,000 deviations */
        }
        AS_AUTO(gp_ehvi_freep) struct gp_ehvi *e = create(&p);
        check_gradient(e, &p, 1e-5);
    }
}
END_TEST

/* The value is finite for extreme input, and does not change if a box is split into many narrow
 * ones. */
START_TEST(extremes_stay_finite)
{
    const double values[] = {-1e300, -1e9, -30, 0, 0.5, 1, 30, 1e9, 1e300};
    const double sigmas[] = {1e-300, 1e-9, 1, 1e9, 1e150};
    struct rng r;
    struct problem p;
    rng_init(&r, 25, 1);
    for (size_t m = 2; m <= 4; m++) {
        random_problem(&r, m, &p);
        AS_AUTO(gp_ehvi_freep) struct gp_ehvi *e = create(&p);
        for (size_t i = 0; i < AS_ARRAY_LEN(values); i++)
            for (size_t j = 0; j < AS_ARRAY_LEN(sigmas); j++) {
                double dmu[MAX_M], dsigma[MAX_M];
                for (size_t k = 0; k < m; k++) {
                    p.mu[k] = k == 0 ? values[i] : 0.3;
                    p.sigma[k] = k == 0 ? sigmas[j] : 0.1;
                }
                double v = gp_ehvi_log(e, p.mu, p.sigma, dmu, dsigma);
                ck_assert_msg(isfinite(v), "mean %g, deviation %g: %g", values[i], sigmas[j], v);
                for (size_t k = 0; k < m; k++)
                    ck_assert(!isnan(dmu[k]) && !isnan(dsigma[k]));
            }
    }
}
END_TEST

/* 1,000 points very close to each other change the value only by the volume that they cover. */
START_TEST(narrow_strips)
{
    enum { n = 500 };
    double costs[2 * n], one[] = {0.5, 0.5}, reference[] = {1, 1};
    struct gp_ehvi *many = NULL, *single = NULL;
    struct as_err err;
    for (size_t i = 0; i < n; i++) {
        costs[2 * i] = 0.5 + 1e-14 * (double)i;
        costs[2 * i + 1] = 0.5 + 1e-14 * (double)(n - i);
    }
    ck_ok(gp_ehvi_create(costs, n, 2, reference, &many, &err), err);
    ck_ok(gp_ehvi_create(one, 1, 2, reference, &single, &err), err);
    for (double at = -3; at < 60; at += 0.37) {
        double mu[] = {at, 0.6}, sigma[] = {0.3, 0.2}, d[4], want[4];
        double v = gp_ehvi_log(many, mu, sigma, d, d + 2);
        double w = gp_ehvi_log(single, mu, sigma, want, want + 2);
        ck_assert_double_eq_tol(v, w, 1e-9 * (1 + fabs(w)));
        for (size_t k = 0; k < 4; k++)
            ck_assert_double_eq_tol(d[k], want[k], 1e-8 * (1 + fabs(want[k])));
    }
    gp_ehvi_free(many);
    gp_ehvi_free(single);
}
END_TEST

/* Points on a sphere: nearly all on the front. */
START_TEST(large_fronts_are_thinned)
{
    struct rng r;
    struct as_err err;
    rng_init(&r, 26, 1);
    for (size_t m = 2; m <= 4; m++) {
        size_t n = 1500, limit = m == 4 ? GP_EHVI_MAX_FRONT_4 : GP_EHVI_MAX_FRONT;
        double *costs = as_calloc(n * m, sizeof *costs);
        double reference[] = {1.1, 1.1, 1.1, 1.1}, mu[] = {0.4, 0.5, 0.45, 0.5};
        double sigma[] = {0.2, 0.1, 0.2, 0.1}, dmu[4], dsigma[4];
        ck_assert_ptr_nonnull(costs);
        for (size_t i = 0; i < n; i++) {
            double norm = 0;
            for (size_t k = 0; k < m; k++) {
                costs[i * m + k] = fabs(rng_normal(&r));
                norm += costs[i * m + k] * costs[i * m + k];
            }
            for (size_t k = 0; k < m; k++)
                costs[i * m + k] = 1 - costs[i * m + k] / sqrt(norm);
        }
        AS_AUTO(gp_ehvi_freep) struct gp_ehvi *e = NULL;
        ck_ok(gp_ehvi_create(costs, n, m, reference, &e, &err), err);
        ck_assert_uint_eq(gp_ehvi_front(e), limit);
        ck_assert_uint_eq(gp_ehvi_objectives(e), m);
        ck_assert_uint_ge(gp_ehvi_boxes(e), limit + 1);
        if (m < 4)
            ck_assert_uint_le(gp_ehvi_boxes(e), (m - 1) * limit + 1);
        ck_assert(isfinite(gp_ehvi_log(e, mu, sigma, dmu, dsigma)));
        free(costs);
    }
}
END_TEST

START_TEST(bad_input)
{
    struct as_err err;
    struct gp_ehvi *e = NULL;
    double costs[] = {0, NAN}, reference[] = {1, 1};
    ck_fails(gp_ehvi_create(costs, 1, 2, reference, &e, &err), AS_E_INVAL, err, "point 0");
    costs[1] = 0;
    ck_fails(gp_ehvi_create(costs, 1, 1, reference, &e, &err), AS_E_INVAL, err, "1 objectives");
    reference[0] = INFINITY;
    ck_fails(gp_ehvi_create(costs, 1, 2, reference, &e, &err), AS_E_INVAL, err, "reference");
    reference[0] = 1;
    for (size_t nth = 1; nth <= 13; nth++) {
        as_mem_fail_nth(nth);
        ck_fails(gp_ehvi_create(costs, 1, 2, reference, &e, &err), AS_E_NOMEM, err, "memory");
    }
    as_mem_fail_nth(0);
    ck_assert_ptr_null(e);
    ck_ok(gp_ehvi_create(costs, 1, 2, reference, &e, &err), err);
    gp_ehvi_free(e);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search_ehvi");
    TCase *t = tcase_create("ehvi");
    tcase_add_test(t, equals_monte_carlo);
    tcase_add_test(t, equals_improvement_where_nothing_is_uncertain);
    tcase_add_test(t, gradients);
    tcase_add_test(t, far_tails);
    tcase_add_test(t, extremes_stay_finite);
    tcase_add_test(t, narrow_strips);
    tcase_add_test(t, large_fronts_are_thinned);
    tcase_add_test(t, bad_input);
    suite_add_tcase(s, t);
    return s;
}
