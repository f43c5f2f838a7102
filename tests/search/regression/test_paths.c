/* Functions drawn from the posterior.
 *
 * The moments of many draws are compared with the mean and covariance of the long double reference.
 * Bounds follow from the number of draws. The other tests check that a draw is a function: its
 * values do not depend on the batch, and equal keys give equal draws. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/regression/paths.h"
#include "tests/support/check_main.h"
#include "tests/search/regression/gp_reference.h"

#define POINTS 6

static const uint32_t n_values[] = {5, 5, 5, 5};

static struct gp_model *model_of(const struct gp_case *g)
{
    struct as_err err = {0};
    struct gp_model *m = NULL;
    ck_ok(gp_model_create(&g->c, &m, &err), err);
    ck_ok(gp_model_build(m, g->theta, &g->rows, g->rows.n, &err), err);
    ck_ok(gp_model_observe(m, g->y, g->rows.n, &err), err);
    return m;
}

struct moments {
    double mean[POINTS], cov[POINTS * POINTS];
    double posterior_mean[POINTS]; /* the first path of the last key */
};

/* Mean and covariance of draws: `rounds` keys of S paths each, after the first. */
static void by_draws(const struct gp_case *g, const struct gp_model *m, const struct gp_rows *at,
                     size_t S, size_t features, size_t rounds, struct moments *ret)
{
    struct as_err err;
    size_t all = S + 1;
    double *v = calloc(at->n * all, sizeof *v), total = (double)(rounds * S);
    *ret = (struct moments){0};
    ck_assert_ptr_nonnull(v);
    for (uint64_t key = 0; key < rounds; key++) {
        AS_AUTO(gp_paths_freep) struct gp_paths *p = NULL;
        ck_ok(gp_paths_create(m, g->y, all, features, n_values, key, 16, &p, &err), err);
        gp_paths_evaluate(p, at, v);
        for (size_t i = 0; i < at->n; i++)
            ret->posterior_mean[i] = v[i * all];
        for (size_t s = 1; s < all; s++)
            for (size_t i = 0; i < at->n; i++) {
                ret->mean[i] += v[i * all + s] / total;
                for (size_t j = 0; j < at->n; j++)
                    ret->cov[i * at->n + j] += v[i * all + s] * v[j * all + s] / total;
            }
    }
    for (size_t i = 0; i < at->n * at->n; i++)
        ret->cov[i] -= ret->mean[i / at->n] * ret->mean[i % at->n];
    free(v);
}

/* Real and category columns, with inactive ones. 400 keys of 25 draws: the mean within 5 standard
 * errors, and covariances within 6 % of the geometric mean of their variances (the standard error
 * of a variance of 10,000 draws is 1.4 %) and a thousandth of the prior's (the share of what
 * 400 * 64 frequencies miss near the data). */
START_TEST(draws_have_the_moments_of_the_posterior)
{
    static const size_t shapes[][3] = {{8, 2, 0}, {1, 1, 0}, {12, 2, 2}, {10, 0, 2}, {20, 4, 1}};
    const size_t *s = shapes[_i / 2];
    struct gp_case *g = gp_case_create(s[0], s[1], s[2], 1);
    g->c.is_smooth = _i % 2;
    struct gp_case *at = gp_case_create(POINTS, s[1], s[2], 2);
    struct gp_model *m = model_of(g);
    struct moments got;
    double mean[POINTS], cov[POINTS * POINTS], constant;
    reference_posterior(g, g->rows.n, &at->rows, mean, cov, &constant);
    by_draws(g, m, &at->rows, 25, 64, 400, &got);
    for (size_t i = 0; i < POINTS; i++) {
        ck_assert_double_eq_tol(got.posterior_mean[i], mean[i], 1e-9);
        double error = sqrt(cov[i * POINTS + i] / 10000);
        ck_assert_msg(fabs(got.mean[i] - mean[i]) < 5 * error + 1e-6, "mean %zu: %g, not %g", i,
                      got.mean[i], mean[i]);
        for (size_t j = 0; j < POINTS; j++) {
            double scale = sqrt(cov[i * POINTS + i] * cov[j * POINTS + j]);
            double want = cov[i * POINTS + j], c = got.cov[i * POINTS + j];
            ck_assert_msg(fabs(c - want) < 0.06 * scale + 1e-3 * gp_model_signal(m),
                          "covariance %zu %zu: %g, not %g", i, j, c, want);
        }
    }
    gp_model_free(m);
    gp_case_free(g);
    gp_case_free(at);
}
END_TEST

/* Without data the draws are the prior's. With one real column and one category the covariance of
 * two points is k. */
START_TEST(draws_of_the_prior)
{
    struct as_err err;
    const double theta[] = {log(0.4), log(1.5), log(2.0), log(1e-4)};
    const double x[] = {0.1, 0.3, 0.3, 0.3, 0.9, 0.9};
    const int32_t z[] = {0, 0, 1, GP_INACTIVE, 4, 0};
    struct gp_columns c = {.n_real = 1, .n_cat = 1, .n_groups = 1};
    struct gp_rows none = {0}, at = {POINTS, x, z};
    struct gp_case empty = {.c = c};
    struct gp_model *m = NULL;
    struct moments got;
    ck_ok(gp_model_create(&c, &m, &err), err);
    ck_ok(gp_model_build(m, theta, &none, 0, &err), err);
    ck_ok(gp_model_observe(m, NULL, 0, &err), err);
    by_draws(&empty, m, &at, 25, 64, 400, &got);
    for (size_t i = 0; i < POINTS; i++)
        for (size_t j = 0; j < POINTS; j++) {
            double t = z[i] == z[j] ? 0 : z[i] < 0 || z[j] < 0 ? 0.5 : 1;
            double dx = (x[i] - x[j]) / 0.4, a = sqrt(5 * (dx * dx + t / 2.25));
            double want = 2 * (1 + a + a * a / 3) * exp(-a);
            ck_assert_double_eq_tol(got.cov[i * POINTS + j], want, 0.1);
            ck_assert_double_eq_tol(got.mean[i], 0, 0.08);
            ck_assert_double_eq(got.posterior_mean[i], 0);
        }
    gp_model_free(m);
}
END_TEST

/* Paths are functions: batches of any size give the same values, and equal keys give equal
 * functions. Different keys give different functions. With little noise the functions pass through
 * the data. */
START_TEST(paths_are_functions)
{
    struct as_err err;
    enum { n = 600, S = 5 };
    struct gp_case *g = gp_case_create(30, 3, 1, 3), *at = gp_case_create(n, 3, 1, 4);
    g->theta[gp_n_theta(&g->c) - 1] = log(1e-9);
    struct gp_model *m = model_of(g);
    double *v = calloc(3 * n * S, sizeof *v), *one = v + n * S, *other = one + n * S;
    struct gp_paths *p = NULL, *same = NULL, *another = NULL;
    ck_assert_ptr_nonnull(v);
    ck_ok(gp_paths_create(m, g->y, S, 100, n_values, 1, 16, &p, &err), err);
    ck_ok(gp_paths_create(m, g->y, S, 100, n_values, 1, 16, &same, &err), err);
    ck_ok(gp_paths_create(m, g->y, S, 100, n_values, 2, 16, &another, &err), err);
    gp_paths_evaluate(p, &at->rows, v);
    gp_paths_evaluate(same, &at->rows, one);
    ck_assert_mem_eq(v, one, n * S * sizeof *v);
    for (size_t i = 0; i < n; i++) {
        struct gp_rows row = {1, at->x + i * 3, at->z + i};
        gp_paths_evaluate(p, &row, one + i * S);
        for (size_t s = 0; s < S; s++)
            ck_assert_double_eq_tol(one[i * S + s], v[i * S + s], 1e-7);
    }
    gp_paths_evaluate(another, &at->rows, other);
    ck_assert_double_ne(other[1], v[1]);
    ck_assert_double_ne(v[1], v[2]);
    gp_paths_free(same);
    gp_paths_free(another);
    gp_paths_free(p);
    free(v);
    gp_model_free(m);
    gp_case_free(g);
    gp_case_free(at);
}
END_TEST

START_TEST(bad_input)
{
    struct as_err err;
    const uint32_t two[] = {2};
    struct gp_case *g = gp_case_create(30, 1, 1, 3);
    struct gp_model *m = model_of(g);
    struct gp_paths *p = NULL;
    ck_fails(gp_paths_create(m, g->y, 3, 10, two, 1, 16, &p, &err), AS_E_INVAL, err, "category");
    const uint32_t huge[] = {UINT32_MAX};
    ck_fails(gp_paths_create(m, g->y, 3, 10, huge, 1, 16, &p, &err), AS_E_TOO_LARGE, err,
             "categories");
    as_status st = AS_E_NOMEM;
    size_t nth = 0;
    while (st == AS_E_NOMEM) {
        as_mem_fail_nth(++nth);
        st = gp_paths_create(m, g->y, 3, 10, n_values, 1, 16, &p, &err);
    }
    as_mem_fail_nth(0);
    ck_ok(st, err);
    ck_assert_uint_gt(nth, 4);
    gp_paths_free(p);
    gp_model_free(m);
    gp_case_free(g);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search_paths");
    TCase *t = tcase_create("paths");
    tcase_add_loop_test(t, draws_have_the_moments_of_the_posterior, 0, 10);
    tcase_add_test(t, draws_of_the_prior);
    tcase_add_test(t, paths_are_functions);
    tcase_add_test(t, bad_input);
    suite_add_tcase(s, t);
    return s;
}
