/* The adaptation alone, on functions that the tutorial names: as many evaluations as published are
 * enough, with the full covariance and with the diagonal. */
#include "search/cmaes/distribution.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/check_main.h"

#define MOST 64

static double sphere(const double *x, size_t d)
{
    double sum = 0;
    for (size_t j = 0; j < d; j++)
        sum += (x[j] - 0.4) * (x[j] - 0.4);
    return sum;
}

/* Axes from 1 to 1000 in length. */
static double ellipsoid(const double *x, size_t d)
{
    double sum = 0;
    for (size_t j = 0; j < d; j++)
        sum += pow(1e6, (double)j / (double)(d - 1)) * (x[j] - 0.4) * (x[j] - 0.4);
    return sum;
}

/* The same, turned: every variable depends on its neighbour. */
static double turned(const double *x, size_t d)
{
    double y[MOST];
    for (size_t j = 0; j < d; j++)
        y[j] = 0.4 + 0.8 * (x[j] - 0.4) + 0.6 * (x[(j + 1) % d] - 0.4);
    return ellipsoid(y, d);
}

struct drawn {
    double x[MOST], value;
};

static int compare(const void *a, const void *b)
{
    double x = ((const struct drawn *)a)->value, y = ((const struct drawn *)b)->value;
    return x < y ? -1 : x > y;
}

/* Evaluations until the value is at most 1e-10; `most` if it never is. */
static size_t minimise(double (*f)(const double *, size_t), size_t d, bool is_full, uint64_t seed,
                       size_t most)
{
    static struct drawn all[200];
    AS_AUTO(distribution_done) struct distribution s = {0};
    double mean[MOST], least[MOST] = {0}, best[100 * MOST];
    struct rng r;
    struct as_err err = {0};
    for (size_t j = 0; j < d; j++)
        mean[j] = 0.7;
    rng_init(&r, seed, 1);
    ck_ok(distribution_make(d, is_full, distribution_lambda(d), 0.2, mean, &s, &err), err);
    for (size_t n = 0; n < most; n += s.lambda) {
        for (size_t i = 0; i < s.lambda; i++) {
            distribution_draw(&s, &r, least, all[i].x);
            all[i].value = f(all[i].x, d);
        }
        qsort(all, s.lambda, sizeof *all, compare);
        if (all[0].value <= 1e-10)
            return n;
        for (size_t i = 0; i < s.mu; i++)
            memcpy(best + i * d, all[i].x, d * sizeof *best);
        distribution_update(&s, best);
    }
    return most;
}

/* Hansen and Ostermeier 2001 need about 1500 (sphere) and 5000 (ellipsoid) in 10 dimensions. */
START_TEST(evaluations)
{
    size_t n = minimise(sphere, 10, true, (uint64_t)_i, 20000);
    ck_assert_msg(n < 2500, "sphere: %zu", n);
    n = minimise(ellipsoid, 10, true, (uint64_t)_i, 20000);
    ck_assert_msg(n < 8000, "ellipsoid: %zu", n);
    n = minimise(turned, 10, true, (uint64_t)_i, 20000);
    ck_assert_msg(n < 9000, "turned ellipsoid: %zu", n);
    n = minimise(ellipsoid, 10, false, (uint64_t)_i, 20000);
    ck_assert_msg(n < 5000, "ellipsoid, diagonal: %zu", n);
}
END_TEST

/* The diagonal cannot learn what turns: a control of the test above. */
START_TEST(diagonal_does_not_turn)
{
    ck_assert_uint_gt(minimise(turned, 10, false, 1, 9000), 8999);
}
END_TEST

/* A far point, as a user may add one, does not blow the step up. */
START_TEST(injected)
{
    AS_AUTO(distribution_done) struct distribution s = {0};
    double mean[4] = {0.5, 0.5, 0.5, 0.5}, best[16 * 4];
    struct as_err err = {0};
    ck_ok(distribution_make(4, true, 8, 1e-3, mean, &s, &err), err);
    for (size_t i = 0; i < s.mu * 4; i++)
        best[i] = 1;
    distribution_update(&s, best);
    ck_assert(s.sigma < 3e-3 && s.mean[0] < 0.51);
    for (size_t j = 0; j < 4; j++)
        ck_assert(isfinite(s.mean[j]) && distribution_deviation(&s, j) > 0);
}
END_TEST

/* A first run may be narrower in a dimension than in the others. */
START_TEST(scales_a_dimension)
{
    for (int full = 0; full < 2; full++) {
        AS_AUTO(distribution_done) struct distribution s = {0};
        const double mean[3] = {0.5, 0.5, 0.5}, least[3] = {0};
        double sum[3] = {0}, x[3];
        struct rng r;
        struct as_err err = {0};
        rng_init(&r, 3, 1);
        ck_ok(distribution_make(3, full, 8, 0.2, mean, &s, &err), err);
        distribution_scale(&s, 1, 0.1);
        ck_assert_double_eq_tol(distribution_deviation(&s, 1), 0.02, 1e-12);
        ck_assert_double_eq_tol(distribution_deviation(&s, 2), 0.2, 1e-12);
        for (size_t i = 0; i < 4000; i++) {
            distribution_draw(&s, &r, least, x);
            for (size_t j = 0; j < 3; j++)
                sum[j] += (x[j] - 0.5) * (x[j] - 0.5) / 4000;
        }
        ck_assert_double_eq_tol(sqrt(sum[1]), 0.02, 0.002);
        ck_assert_double_eq_tol(sqrt(sum[2]), 0.2, 0.02);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/distribution");
    TCase *t = tcase_create("distribution");
    tcase_add_loop_test(t, evaluations, 0, 3);
    tcase_add_test(t, diagonal_does_not_turn);
    tcase_add_test(t, injected);
    tcase_add_test(t, scales_a_dimension);
    suite_add_tcase(s, t);
    return s;
}
