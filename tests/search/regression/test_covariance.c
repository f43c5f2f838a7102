/* Covariances of whole blocks.
 *
 * Blocks are compared with the formula term by term. The tests cover points of other sets, category
 * distances (equal, different, inactive), and sums over categories, which the fit's gradient needs.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "search/regression/buf.h"
#include "search/regression/covariance.h"
#include "tests/support/check_main.h"
#include "tests/search/regression/gp_reference.h"

static const size_t shapes[][3] = {{1, 1, 0},  {2, 0, 1},  {17, 1, 2},    {64, 5, 0},
                                   {65, 4, 3}, {40, 0, 3}, {33, 100, 100}};

/* Rows of a case, scaled under its theta, with the memory for it. */
struct scaled_case {
    struct gp_case *g;
    struct gp_kernel k;
    struct gp_scaled s;
    struct gp_buf x, norm, numbers, z;
};

static struct scaled_case scaled(size_t n, size_t n_real, size_t n_cat, bool is_smooth,
                                 uint64_t seed)
{
    struct as_err err = {0};
    struct scaled_case c = {.g = gp_case_create(n, n_real, n_cat, seed)};
    ck_ok(gp_buf_reserve(&c.x, n, gp_ld(n_real + 1), &err), err);
    ck_ok(gp_buf_reserve(&c.norm, n, 1, &err), err);
    ck_ok(gp_buf_reserve(&c.numbers, 1, n_real + n_cat, &err), err);
    c.g->c.is_smooth = is_smooth;
    ck_ok(gp_buf_reserve(&c.z, gp_ld(n), n_cat, &err), err);
    c.s = (struct gp_scaled){
        c.x.p, gp_ld(n_real + 1), c.norm.p, c.z.p, n, gp_category_any_inactive(c.g->z, n * n_cat)};
    c.k =
        (struct gp_kernel){.c = &c.g->c, .inv_length = c.numbers.p, .weight = c.numbers.p + n_real};
    gp_kernel_set(&c.k, c.g->theta);
    gp_scale(&c.k, &c.g->rows, 0, &c.s);
    return c;
}

static void scaled_done(struct scaled_case *c)
{
    c->k.c = NULL;
    gp_case_free(c->g);
    gp_buf_done(&c->x);
    gp_buf_done(&c->norm);
    gp_buf_done(&c->numbers);
    gp_buf_done(&c->z);
}

static void near(double got, double want, const char *what, size_t i, size_t j)
{
    if (!(fabs(got - want) <= 2e-12 * fmax(1, fabs(want))))
        ck_abort_msg("%s %zu,%zu: %.15g, not %.15g", what, i, j, got, want);
}

static double square_distance(const struct scaled_case *c, size_t i, size_t j)
{
    size_t d = c->g->c.n_real, n_cat = c->g->c.n_cat;
    double r2 = 0;
    for (size_t q = 0; q < d; q++) {
        double off = (c->g->x[i * d + q] - c->g->x[j * d + q]) / exp(c->g->theta[c->g->group[q]]);
        r2 += off * off;
    }
    for (size_t q = 0; q < n_cat; q++) {
        int32_t a = c->g->z[i * n_cat + q], b = c->g->z[j * n_cat + q];
        if (a != b)
            r2 += exp(-2 * c->g->theta[c->g->c.n_groups + q]) * ((a < 0) != (b < 0) ? 0.5 : 1);
    }
    return r2;
}

/* Without a matrix product, the same: the covariance, and the sums for its gradient. */
static void check_small(const struct scaled_case *c)
{
    size_t n = c->g->rows.n, d = c->g->c.n_real, ld = gp_ld(n);
    AS_AUTO(as_freep) double *k = calloc(n * ld, sizeof(double));
    AS_AUTO(as_freep) double *slope = calloc(n * ld, sizeof(double));
    AS_AUTO(as_freep) double *x = calloc(d * ld + 1, sizeof(double));
    AS_AUTO(as_freep) double *g = calloc(n * ld, sizeof(double));
    AS_AUTO(as_freep) double *sums = calloc(d + 1, sizeof(double));
    for (size_t i = 0; i < n; i++)
        for (size_t q = 0; q < d; q++)
            x[q * ld + i] = c->s.x[i * c->s.ld + q];
    const struct gp_real_columns columns = {x, d, ld};
    gp_gram_small(&c->k, &c->s, &columns, c->g->z, n, k, slope, ld);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < ld; j++) {
            double r2 = j <= i ? square_distance(c, i, j) : 0, a = sqrt(5 * r2);
            double slope_want = c->g->c.is_smooth ? exp(-r2 / 2) : 5.0 / 3 * (1 + a) * exp(-a);
            double want = j <= i ? gp_covariance(&c->k, &c->g->rows, i, j) : 0;
            near(k[i * ld + j], want, "small gram", i, j);
            if (j < i)
                near(slope[i * ld + j], c->k.s2 * slope_want, "small c", i, j);
            g[i * ld + j] = j < i ? sin((double)(i * n + j)) : 0;
        }
    gp_square_sums(&columns, n, g, ld, sums);
    for (size_t q = 0; q < d; q++) {
        double want = 0;
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < i; j++)
                want += g[i * ld + j] * pow(x[q * ld + i] - x[q * ld + j], 2);
        near(sums[q], want, "sum of squares", q, 0);
    }
}

START_TEST(blocks_match_the_formula)
{
    const size_t *s = shapes[_i / 2];
    bool is_smooth = _i % 2;
    struct scaled_case c = scaled(s[0], s[1], s[2], is_smooth, 1),
                       p = scaled(9, s[1], s[2], is_smooth, 2);
    size_t n = s[0], ld = gp_ld(n);
    AS_AUTO(as_freep) double *k = calloc(n * ld, sizeof(double));
    AS_AUTO(as_freep) double *slope = calloc(n * ld, sizeof(double));
    gp_gram(&c.k, &c.s, c.g->z, n, k, slope, ld);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            double r2 = square_distance(&c, i, j), a = sqrt(5 * r2);
            double want = is_smooth ? exp(-r2 / 2) : 5.0 / 3 * (1 + a) * exp(-a);
            near(k[i * ld + j], gp_covariance(&c.k, &c.g->rows, i, j), "gram", i, j);
            if (is_smooth)
                near(k[i * ld + j], c.k.s2 * want, "squared exponential", i, j);
            if (j < i)
                near(slope[i * ld + j], c.k.s2 * want, "c", i, j);
        }
    check_small(&c);
    /* Points of another case, under this one's kernel; without c the same. */
    gp_scale(&c.k, &p.g->rows, 0, &p.s);
    size_t m = n < 9 ? n : 9;
    gp_cross(&c.k, &c.s, n, &p.s, p.g->z, m, k, slope, ld);
    struct gp_rows both = {2, NULL, NULL};
    AS_AUTO(as_freep) double *x = calloc(2 * s[1] + 1, sizeof(double));
    AS_AUTO(as_freep) int32_t *z = calloc(2 * s[2] + 1, sizeof(int32_t));
    both.x = x, both.z = z;
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            memcpy(x, p.g->x + i * s[1], s[1] * sizeof(double));
            memcpy(x + s[1], c.g->x + j * s[1], s[1] * sizeof(double));
            memcpy(z, p.g->z + i * s[2], s[2] * sizeof(int32_t));
            memcpy(z + s[2], c.g->z + j * s[2], s[2] * sizeof(int32_t));
            near(k[i * ld + j], gp_covariance(&c.k, &both, 0, 1), "cross", i, j);
        }
    AS_AUTO(as_freep) double *alone = calloc(n * ld, sizeof(double));
    gp_cross(&c.k, &c.s, n, &p.s, p.g->z, m, alone, NULL, ld);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++)
            near(alone[i * ld + j], k[i * ld + j], "without c", i, j);
    scaled_done(&c);
    scaled_done(&p);
}
END_TEST

/* Steps: the formula by hand, whole blocks, and the slope by its differences. */
START_TEST(steps_match_the_formula)
{
    enum { N = 40 };
    struct scaled_case c = scaled(N, 3, 1, _i % 2, 4);
    double places[N], h = 1e-6;
    gp_case_set_kind(c.g, 2 + _i % 2);
    c.s.s = places;
    double *theta = c.g->theta, kept = theta[gp_n_theta(&c.g->c) - 2];
    AS_AUTO(as_freep) double *k = calloc(N * gp_ld(N), sizeof(double));
    AS_AUTO(as_freep) double *up = calloc(N * gp_ld(N), sizeof(double));
    AS_AUTO(as_freep) double *down = calloc(N * gp_ld(N), sizeof(double));
    AS_AUTO(as_freep) double *slope = calloc(N * gp_ld(N), sizeof(double));
    AS_AUTO(as_freep) double *cross = calloc(N * gp_ld(N), sizeof(double));
    double *const grams[3] = {up, down, k};
    for (int way = 0; way < 3; way++) {
        theta[gp_n_theta(&c.g->c) - 2] = kept + (way == 0 ? h : way == 1 ? -h : 0);
        gp_kernel_set(&c.k, theta);
        gp_scale(&c.k, &c.g->rows, 0, &c.s);
        gp_gram(&c.k, &c.s, c.g->z, N, grams[way], NULL, gp_ld(N));
    }
    gp_step_slopes(&c.k, &c.s, N, k, slope, gp_ld(N));
    gp_cross(&c.k, &c.s, N, &c.s, c.g->z, N, cross, NULL, gp_ld(N));
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j <= i; j++) {
            size_t at = i * gp_ld(N) + j;
            double s = c.g->steps[i], t = c.g->steps[j];
            struct gp_rows without = c.g->rows;
            without.s = NULL;
            double factor = exp(-fabs(s - t) / exp(kept)) + 8 * (1 - s) * (1 - t);
            double want =
                gp_covariance(&c.k, &without, i, j) * factor + c.k.course * (1 - fmax(s, t));
            double own = i == j ? 0.5 * c.k.s2 * (1 - s) : 0;
            near(k[at], want + own, "gram", i, j);
            near(k[at], gp_covariance(&c.k, &c.g->rows, i, j), "formula", i, j);
            near(cross[at], want, "cross", i, j);
            if (i == j)
                near(k[at], gp_variance(&c.k, &c.s, i), "variance", i, j);
            ck_assert_double_eq_tol(slope[at], (up[at] - down[at]) / (2 * h), 1e-7);
        }
    scaled_done(&c);
}
END_TEST

/* Equal, different, active against inactive, inactive twice: 0, 1, 1/2, 0. */
START_TEST(distances_of_categories)
{
    double theta[3] = {log(2), log(3), -50}, weight[1];
    struct gp_columns c = {.n_cat = 1};
    struct gp_kernel k = {.c = &c, .weight = weight};
    int32_t z[5] = {4, 4, 1, GP_INACTIVE, GP_INACTIVE};
    struct gp_rows rows = {5, NULL, z};
    gp_kernel_set(&k, theta);
    double one = sqrt(5 * 1.0) / 2, half = sqrt(5 * 0.5) / 2;
    near(gp_covariance(&k, &rows, 0, 1), 3, "equal", 0, 1);
    near(gp_covariance(&k, &rows, 3, 4), 3, "inactive", 3, 4);
    near(gp_covariance(&k, &rows, 0, 2), 3 * (1 + one + one * one / 3) * exp(-one), "other", 0, 2);
    near(gp_covariance(&k, &rows, 3, 2), 3 * (1 + half + half * half / 3) * exp(-half), "half", 3,
         2);
}
END_TEST

/* Sums over 300 rows (more than one piece of a row), of few and of many columns, of rows with and
 * without inactive categories. */
START_TEST(sums_of_categories)
{
    enum { N = 300 };
    const size_t n_cat = (size_t)(_i / 2 + 1);
    struct scaled_case c = scaled(N, 1, n_cat, false, 3);
    AS_AUTO(as_freep) double *g = calloc(N * gp_ld(N), sizeof(double));
    AS_AUTO(as_freep) double *got = calloc(n_cat, sizeof(double));
    for (size_t i = 0; i < N * n_cat; i++)
        if (_i % 2)
            c.g->z[i] += c.g->z[i] < 0;
    c.s.has_inactive = gp_category_any_inactive(c.g->z, N * n_cat);
    ck_assert(c.s.has_inactive == (_i % 2 == 0));
    gp_scale(&c.k, &c.g->rows, 0, &c.s);
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < i; j++)
            g[i * gp_ld(N) + j] = sin((double)(i * N + j));
    struct gp_categories categories = gp_categories_of(&c.k, &c.s);
    gp_category_sums(&categories, N, g, gp_ld(N), got);
    for (size_t col = 0; col < n_cat; col++) {
        double want = 0;
        for (size_t i = 0; i < N; i++)
            for (size_t j = 0; j < i; j++) {
                int32_t a = c.g->z[n_cat * i + col], b = c.g->z[n_cat * j + col];
                want += a == b ? 0 : g[i * gp_ld(N) + j] * ((a < 0) != (b < 0) ? 0.5 : 1);
            }
        near(got[col], want, "sum", col, 0);
    }
    scaled_done(&c);
}
END_TEST

/* A point with an inactive category is half as far from rows that have none. */
START_TEST(a_point_alone_is_inactive)
{
    double z[9] = {0, 1, 2, 0, 1, 2, 0, 1, 2}, weight = 3, r2[9] = {0};
    struct gp_categories rows = {z, 1, 9, false};
    gp_category_add(&rows, &(int32_t){GP_INACTIVE}, &weight, 9, r2);
    for (size_t j = 0; j < 9; j++)
        near(r2[j], 1.5, "half", j, 0);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("gp_covariance");
    TCase *t = tcase_create("covariance");
    tcase_add_loop_test(t, blocks_match_the_formula, 0, 2 * AS_ARRAY_LEN(shapes));
    tcase_add_loop_test(t, steps_match_the_formula, 0, 2);
    tcase_add_test(t, distances_of_categories);
    tcase_add_loop_test(t, sums_of_categories, 0, 12);
    tcase_add_test(t, a_point_alone_is_inactive);
    suite_add_tcase(s, t);
    return s;
}
