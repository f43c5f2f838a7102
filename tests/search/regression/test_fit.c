/* The fit of the hyperparameters.
 *
 * Value and gradient are compared with the long double reference and its differences, for shapes
 * that cover every kind of column and block size. The fit itself is tested by its result: no
 * neighbouring theta and no start may be better. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/regression/fit.h"
#include "tests/support/check_main.h"
#include "tests/search/regression/gp_reference.h"

/* n, real columns, category columns: one row, off every block size, one kind of column alone, many.
 */
static const size_t shapes[][3] = {
    {1, 1, 0},   {2, 1, 0},  {3, 2, 1}, {17, 1, 0},   {17, 3, 2},     {64, 5, 0}, {65, 4, 1},
    {65, 30, 0}, {40, 0, 3}, {1, 0, 1}, {33, 200, 0}, {33, 100, 100}, {130, 6, 2}};

START_TEST(value_matches_the_textbook)
{
    struct as_err err = {0};
    const size_t *s = shapes[_i / GP_CASE_KINDS];
    struct gp_case *g = gp_case_create(s[0], s[1], s[2], 1);
    gp_case_set_kind(g, _i % GP_CASE_KINDS);
    AS_AUTO(gp_fit_work_freep) struct gp_fit_work *w = gp_fit_work_create();
    double nll, want = reference_nll(g, g->theta);
    ck_ok(gp_fit_value(&g->c, &g->rows, g->y, g->theta, w, &nll, NULL, &err), err);
    ck_assert_msg(fabs(nll - want) <= 1e-9 * fmax(1, fabs(want)), "%.15g, not %.15g", nll, want);
    gp_case_free(g);
}
END_TEST

/* Central differences of the oracle, whose long doubles allow a small step. */
START_TEST(gradient_matches_differences)
{
    struct as_err err = {0};
    const size_t *s = shapes[_i / GP_CASE_KINDS];
    struct gp_case *g = gp_case_create(s[0], s[1], s[2], 2);
    gp_case_set_kind(g, _i % GP_CASE_KINDS);
    size_t n = gp_n_theta(&g->c), step = n > 40 ? 17 : 1;
    AS_AUTO(gp_fit_work_freep) struct gp_fit_work *w = gp_fit_work_create();
    AS_AUTO(as_freep) double *grad = calloc(n, sizeof(double));
    double nll, h = 3e-6, most = 1;
    ck_ok(gp_fit_value(&g->c, &g->rows, g->y, g->theta, w, &nll, grad, &err), err);
    for (size_t j = 0; j < n; j++)
        most = fmax(most, fabs(grad[j]));
    for (size_t j = 0; j < n; j += step) {
        double kept = g->theta[j], up, down;
        g->theta[j] = kept + h;
        up = reference_nll(g, g->theta);
        g->theta[j] = kept - h;
        down = reference_nll(g, g->theta);
        g->theta[j] = kept;
        double want = (up - down) / (2 * h);
        ck_assert_msg(fabs(grad[j] - want) <= 1e-6 * most, "theta %zu: %.12g, not %.12g", j,
                      grad[j], want);
    }
    gp_case_free(g);
}
END_TEST

/* The fit ends in a minimum: its value is below that of the starts and of steps in all
 * directions. */
START_TEST(fit_ends_in_a_minimum)
{
    struct as_err err = {0};
    const size_t *s = shapes[_i / GP_CASE_KINDS];
    struct gp_case *g = gp_case_create(s[0], s[1], s[2], 3);
    gp_case_set_kind(g, _i % GP_CASE_KINDS);
    size_t n = gp_n_theta(&g->c);
    AS_AUTO(gp_fit_work_freep) struct gp_fit_work *w = gp_fit_work_create();
    AS_AUTO(as_freep) double *theta = calloc(n, sizeof(double));
    AS_AUTO(as_freep) double *lower = calloc(n, sizeof(double));
    AS_AUTO(as_freep) double *upper = calloc(n, sizeof(double));
    struct gp_fit_result r, again;
    struct gp_fit_opts o = {.n_random = 1, .key = 7, .f_tol = 1e-12, .pg_tol = 1e-4};
    ck_ok(gp_fit(&g->c, &g->rows, g->y, &o, w, theta, &r, &err), err);
    ck_assert(r.converged && r.evals > 2);
    gp_theta_default(&g->c, lower);
    ck_assert_double_le(r.nll, reference_nll(g, lower) + 1e-9);
    gp_theta_bounds(&g->c, lower, upper);
    for (size_t j = 0; j < n; j++) {
        double kept = theta[j];
        ck_assert(theta[j] >= lower[j] && theta[j] <= upper[j]);
        for (int way = -1; way <= 1; way += 2) {
            theta[j] = fmin(fmax(kept + way * 0.01, lower[j]), upper[j]);
            ck_assert_double_ge(reference_nll(g, theta), r.nll - 1e-6);
        }
        theta[j] = kept;
    }
    /* A warm start reaches the same minimum in a few steps. */
    o = (struct gp_fit_opts){.warm = theta, .pg_tol = 1e-3};
    ck_ok(gp_fit(&g->c, &g->rows, g->y, &o, w, theta, &again, &err), err);
    ck_assert_uint_le(again.evals, 5);
    ck_assert_double_le(again.nll, r.nll + 1e-9);
    gp_case_free(g);
}
END_TEST

/* The curvature learnt by a fit makes the next one shorter and does not change the minimum. A scale
 * or a theta from a broken file does no harm. */
START_TEST(scale_of_an_earlier_fit)
{
    struct as_err err = {0};
    struct gp_case *g = gp_case_create(80, 6, 0, 21);
    struct gp_rows all = g->rows;
    double theta[8], next[8], scale[8], bad[8] = {NAN, 0, -1, INFINITY, 1e300, 1e-300, 1, 1};
    struct gp_fit_result plain, scaled;
    AS_AUTO(gp_fit_work_freep) struct gp_fit_work *w = gp_fit_work_create();
    ck_assert_uint_le(gp_n_theta(&g->c), 8);
    struct gp_fit_opts o = {.pg_tol = 1e-4, .f_tol = 1e-12};
    g->rows.n = 76;
    ck_ok(gp_fit(&g->c, &g->rows, g->y, &o, w, theta, NULL, &err), err);
    memcpy(scale, gp_fit_scale(w), gp_n_theta(&g->c) * sizeof(double));
    for (size_t j = 0; j < gp_n_theta(&g->c); j++)
        ck_assert(scale[j] >= 1e-2 && scale[j] <= 1);
    g->rows = all;
    o.warm = theta;
    ck_ok(gp_fit(&g->c, &g->rows, g->y, &o, w, next, &plain, &err), err);
    o.scale = scale;
    ck_ok(gp_fit(&g->c, &g->rows, g->y, &o, w, next, &scaled, &err), err);
    ck_assert_double_eq_tol(plain.nll, scaled.nll, 1e-6);
    ck_assert_uint_lt(scaled.evals, plain.evals);
    o.scale = o.warm = bad;
    ck_ok(gp_fit(&g->c, &g->rows, g->y, &o, w, next, &scaled, &err), err);
    ck_assert_double_eq_tol(plain.nll, scaled.nll, 1e-5);
    gp_case_free(g);
}
END_TEST

START_TEST(same_bits_again)
{
    struct as_err err = {0};
    struct gp_case *g = gp_case_create(60, 4, 1, 4), *big = gp_case_create(90, 5, 2, 4);
    double first[7], second[7], other[16];
    struct gp_fit_opts o = {.n_random = 2, .key = 11, .purpose = 3};
    struct gp_fit_result r, again;
    AS_AUTO(gp_fit_work_freep) struct gp_fit_work *w = gp_fit_work_create();
    AS_AUTO(gp_fit_work_freep) struct gp_fit_work *used = gp_fit_work_create();
    ck_assert_uint_eq(gp_n_theta(&g->c), 6);
    ck_ok(gp_fit(&g->c, &g->rows, g->y, &o, w, first, &r, &err), err);
    ck_ok(gp_fit(&big->c, &big->rows, big->y, &o, used, other, NULL, &err), err);
    ck_ok(gp_fit(&g->c, &g->rows, g->y, &o, used, second, &again, &err), err);
    ck_assert_mem_eq(first, second, 6 * sizeof(double));
    ck_assert(memcmp(&r.nll, &again.nll, sizeof(double)) == 0);
    ck_assert_uint_gt(gp_fit_work_bytes(used), 2 * 90 * 90 * sizeof(double));
    gp_case_free(g);
    gp_case_free(big);
}
END_TEST

/* Any finite y gives a result within the bounds. */
START_TEST(takes_any_values)
{
    struct as_err err = {0};
    static const double scales[] = {0, 1e-300, 1e-12, 1e6, 1e150};
    AS_AUTO(gp_fit_work_freep) struct gp_fit_work *w = gp_fit_work_create();
    for (size_t q = 0; q < AS_ARRAY_LEN(scales); q++) {
        struct gp_case *g = gp_case_create(30, 3, 0, 5);
        double theta[5];
        for (size_t i = 0; i < g->rows.n; i++)
            g->y[i] *= scales[q];
        struct gp_fit_opts o = {.n_random = 1};
        ck_ok(gp_fit(&g->c, &g->rows, g->y, &o, w, theta, NULL, &err), err);
        for (size_t j = 0; j < gp_n_theta(&g->c); j++)
            ck_assert(isfinite(theta[j]));
        gp_case_free(g);
    }
}
END_TEST

/* All rows the same, under the smallest noise and the longest lengthscale. */
START_TEST(takes_equal_rows)
{
    struct as_err err = {0};
    struct gp_case *g = gp_case_create(50, 2, 0, 6);
    AS_AUTO(gp_fit_work_freep) struct gp_fit_work *w = gp_fit_work_create();
    double lower[4], upper[4], theta[4], nll, grad[4];
    for (size_t i = 0; i < 2 * g->rows.n; i++)
        g->x[i] = 0.25;
    gp_theta_bounds(&g->c, lower, upper);
    memcpy(theta, upper, sizeof(theta));
    theta[3] = lower[3];
    ck_ok(gp_fit_value(&g->c, &g->rows, g->y, theta, w, &nll, grad, &err), err);
    ck_assert(isfinite(nll) && isfinite(grad[0]) && isfinite(grad[3]));
    struct gp_fit_opts o = {.warm = theta, .cold = true};
    ck_ok(gp_fit(&g->c, &g->rows, g->y, &o, w, theta, NULL, &err), err);
    gp_case_free(g);
}
END_TEST

START_TEST(refuses)
{
    struct as_err err = {0};
    struct gp_case *g = gp_case_create(10, 2, 1, 7);
    AS_AUTO(gp_fit_work_freep) struct gp_fit_work *w = gp_fit_work_create();
    double theta[5], nll = 5, kept;
    struct gp_fit_opts o = {.n_random = 1};
    struct gp_rows none = {0};
    ck_fails(gp_fit(&g->c, &none, g->y, &o, w, theta, NULL, &err), AS_E_INVAL, err,
             "no observations");
    kept = g->y[4], g->y[4] = NAN;
    ck_fails(gp_fit(&g->c, &g->rows, g->y, &o, w, theta, NULL, &err), AS_E_INVAL, err, "value 4");
    g->y[4] = kept, kept = g->x[7], g->x[7] = INFINITY;
    ck_fails(gp_fit(&g->c, &g->rows, g->y, &o, w, theta, NULL, &err), AS_E_INVAL, err,
             "row 3, column 1");
    g->x[7] = kept, g->z[9] = -2;
    ck_fails(gp_fit(&g->c, &g->rows, g->y, &o, w, theta, NULL, &err), AS_E_INVAL, err, "category");
    g->z[9] = 0;
    for (int j = 0; j < 5; j++) {
        memcpy(theta, g->theta, sizeof(theta));
        theta[j] = NAN;
        ck_fails(gp_fit_value(&g->c, &g->rows, g->y, theta, w, &nll, NULL, &err), AS_E_NUMERIC, err,
                 "not positive definite");
        ck_assert_double_eq(nll, 5);
    }
    gp_case_free(g);
}
END_TEST

START_TEST(survives_the_loss_of_any_allocation)
{
    struct as_err err = {0};
    struct gp_case *g = gp_case_create(20, 2, 1, 8);
    double theta[5];
    struct gp_fit_opts o = {.n_random = 1};
    as_status st = AS_E_NOMEM;
    for (size_t nth = 1; st == AS_E_NOMEM && nth < 100; nth++) {
        as_mem_fail_nth(nth);
        AS_AUTO(gp_fit_work_freep) struct gp_fit_work *w = gp_fit_work_create();
        st = w ? gp_fit(&g->c, &g->rows, g->y, &o, w, theta, NULL, &err) : AS_E_NOMEM;
        as_mem_fail_nth(0);
        if (w)
            ck_ok(gp_fit(&g->c, &g->rows, g->y, &o, w, theta, NULL, &err), err);
    }
    ck_ok(st, err);
    gp_case_free(g);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("gp_fit");
    TCase *t = tcase_create("fit");
    tcase_add_loop_test(t, value_matches_the_textbook, 0, GP_CASE_KINDS * AS_ARRAY_LEN(shapes));
    tcase_add_loop_test(t, gradient_matches_differences, 0, GP_CASE_KINDS * AS_ARRAY_LEN(shapes));
    tcase_add_loop_test(t, fit_ends_in_a_minimum, 0, 9 * GP_CASE_KINDS);
    tcase_add_test(t, scale_of_an_earlier_fit);
    tcase_add_test(t, same_bits_again);
    tcase_add_test(t, takes_any_values);
    tcase_add_test(t, takes_equal_rows);
    tcase_add_test(t, refuses);
    tcase_add_test(t, survives_the_loss_of_any_allocation);
    suite_add_tcase(s, t);
    return s;
}
