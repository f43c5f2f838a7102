/* The posterior of a Gaussian process.
 *
 * Values are compared with the long double reference (gp_reference.h). The most important test
 * compares bits: a model that was built by appending, removing and growing must equal a new model,
 * because a suggestion must not depend on a cache. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/regression/fit.h"
#include "search/regression/model.h"
#include "tests/support/check_main.h"
#include "tests/search/regression/gp_reference.h"

static const size_t shapes[][3] = {{1, 1, 0},  {2, 1, 0},  {3, 2, 1},   {17, 1, 0}, {17, 3, 2},
                                   {64, 5, 0}, {65, 4, 1}, {65, 30, 0}, {40, 0, 3}, {33, 100, 100}};

static struct gp_model *model_of(const struct gp_case *g, size_t n_base, size_t n_observed)
{
    struct as_err err = {0};
    struct gp_model *m = NULL;
    ck_ok(gp_model_create(&g->c, &m, &err), err);
    ck_ok(gp_model_build(m, g->theta, &g->rows, n_base, &err), err);
    ck_ok(gp_model_observe(m, g->y, n_observed, &err), err);
    return m;
}

static struct gp_work *work_for(const struct gp_model *m, size_t batch)
{
    struct as_err err = {0};
    struct gp_work *w = gp_work_create();
    ck_assert_ptr_nonnull(w);
    ck_ok(gp_work_reserve(w, m, batch, &err), err);
    return w;
}

static void near(double got, double want, double tolerance, const char *what, size_t i)
{
    ck_assert_msg(fabs(got - want) <= tolerance * fmax(1, fabs(want)), "%s %zu: %.15g, not %.15g",
                  what, i, got, want);
}

/* Mean, variance and covariance, with some rows appended and some of those pending. */
START_TEST(posterior_matches_the_textbook)
{
    struct as_err err = {0};
    const size_t *s = shapes[_i / GP_CASE_KINDS], points = 9;
    struct gp_case *g = gp_case_create(s[0], s[1], s[2], 1);
    struct gp_case *p = gp_case_create(points, s[1], s[2], 2);
    gp_case_set_kind(g, _i % GP_CASE_KINDS);
    for (int pending = 0; pending <= 3 && (size_t)pending < s[0]; pending += 3) {
        size_t observed = s[0] - (size_t)pending;
        struct gp_model *m = model_of(g, s[0] / 2, observed);
        struct gp_work *w = work_for(m, points);
        double mean[9], var[9], cov[81], want[9], want_cov[81], constant, only[9], joint[9];
        reference_posterior(g, observed, &p->rows, want, want_cov, &constant);
        gp_predict(m, w, &p->rows, mean, var);
        gp_predict(m, w, &p->rows, only, NULL);
        gp_predict_joint(m, w, &p->rows, joint, cov);
        near(gp_model_constant(m), constant, 1e-9, "constant", 0);
        for (size_t i = 0; i < points; i++) {
            near(mean[i], want[i], 1e-9, "mean", i);
            near(only[i], want[i], 1e-9, "mean alone", i);
            near(joint[i], want[i], 1e-9, "joint mean", i);
            near(var[i], want_cov[i * points + i], 1e-9, "variance", i);
        }
        for (size_t i = 0; i < points * points; i++)
            near(cov[i], want_cov[i], 1e-9, "covariance", i);
        ck_ok(gp_model_observe(m, g->y, 0, &err), err);
        gp_predict(m, w, &p->rows, mean, var);
        ck_assert(mean[0] == 0 && fabs(var[0] - want_cov[0]) < 1e-9);
        gp_work_free(w);
        gp_model_free(m);
    }
    gp_case_free(g);
    gp_case_free(p);
}
END_TEST

/* A pending row changes no mean and increases no variance. */
START_TEST(pending_rows_shrink_the_deviation_alone)
{
    struct gp_case *g = gp_case_create(30, 3, 1, 3), *p = gp_case_create(20, 3, 1, 4);
    struct gp_rows all = g->rows;
    struct gp_model *with = model_of(g, 20, 24);
    g->rows.n = 24;
    struct gp_model *without = model_of(g, 20, 24);
    g->rows = all;
    struct gp_work *w = work_for(with, 20);
    double mean[20], var[20], mean0[20], var0[20];
    gp_predict(with, w, &p->rows, mean, var);
    gp_predict(without, w, &p->rows, mean0, var0);
    for (size_t i = 0; i < 20; i++) {
        near(mean[i], mean0[i], 1e-13, "mean", i);
        ck_assert_double_le(var[i], var0[i] + 1e-12);
    }
    gp_work_free(w);
    gp_model_free(with);
    gp_model_free(without);
    gp_case_free(g);
    gp_case_free(p);
}
END_TEST

START_TEST(gradients_match_differences)
{
    const size_t *s = shapes[_i / GP_CASE_KINDS], points = 5;
    struct gp_case *g = gp_case_create(s[0], s[1], s[2], 5);
    struct gp_case *p = gp_case_create(points, s[1], s[2], 6);
    gp_case_set_kind(g, _i % GP_CASE_KINDS);
    size_t d = s[1], observed = s[0] > 4 ? s[0] - 2 : s[0];
    struct gp_model *m = model_of(g, s[0] / 3, observed);
    struct gp_work *w = work_for(m, points);
    AS_AUTO(as_freep) double *dmean = calloc(points * d + 1, sizeof(double));
    AS_AUTO(as_freep) double *dvar = calloc(points * d + 1, sizeof(double));
    double mean[5], var[5], mean0[5], var0[5], up[5], down[5], vup[5], vdown[5], h = 1e-5;
    gp_predict_grad(m, w, &p->rows, mean, var, dmean, dvar);
    gp_predict(m, w, &p->rows, mean0, var0);
    for (size_t i = 0; i < points; i++) {
        near(mean[i], mean0[i], 1e-13, "mean", i);
        near(var[i], var0[i], 1e-13, "variance", i);
    }
    for (size_t j = 0; j < d; j++) {
        for (size_t i = 0; i < points; i++)
            p->x[i * d + j] += h;
        gp_predict(m, w, &p->rows, up, vup);
        for (size_t i = 0; i < points; i++)
            p->x[i * d + j] -= 2 * h;
        gp_predict(m, w, &p->rows, down, vdown);
        for (size_t i = 0; i < points; i++) {
            p->x[i * d + j] += h;
            near(dmean[i * d + j], (up[i] - down[i]) / (2 * h), 2e-6, "d mean", i * d + j);
            near(dvar[i * d + j], (vup[i] - vdown[i]) / (2 * h), 2e-6, "d variance", i * d + j);
        }
    }
    gp_work_free(w);
    gp_model_free(m);
    gp_case_free(g);
    gp_case_free(p);
}
END_TEST

static void same_bits(const struct gp_model *a, const struct gp_model *b)
{
    size_t lda, ldb;
    const double *la = gp_model_lower(a, &lda), *lb = gp_model_lower(b, &ldb);
    ck_assert_uint_eq(gp_model_rows(a), gp_model_rows(b));
    for (size_t i = 0; i < gp_model_rows(a); i++)
        ck_assert_mem_eq(la + i * lda, lb + i * ldb, (i + 1) * sizeof(double));
    ck_assert_mem_eq(gp_model_alpha(a), gp_model_alpha(b), gp_model_observed(a) * sizeof(double));
    double ca = gp_model_constant(a), cb = gp_model_constant(b);
    ck_assert_mem_eq(&ca, &cb, sizeof(double));
}

/* A model with a history of appends, pending rows that come and go, growth and changes of theta
 * equals a new model, bit for bit; so does one with steps (_i), some rows of which go to a higher
 * one. */
START_TEST(cached_is_cold_bit_for_bit)
{
    struct as_err err = {0};
    struct gp_case *g = gp_case_create(300, 4, 2, 7), *other = gp_case_create(300, 4, 2, 8);
    struct gp_case *p = gp_case_create(33, 4, 2, 9);
    struct gp_model *kept = NULL;
    struct rng r;
    rng_init(&r, 12, 0);
    gp_case_set_kind(g, 2 * _i);
    ck_ok(gp_model_create(&g->c, &kept, &err), err);
    size_t base = 10;
    for (size_t round = 0; round < 60; round++) {
        size_t observed = 12 + 4 * round, pending = rng_below(&r, 8);
        if (round % 13 == 12)
            base = observed - 1;
        if (round % 20 == 19)
            g->theta[1] += 0.1;
        /* The pending rows differ each time. */
        size_t d = g->c.n_real, from = observed * d;
        if (g->steps && round % 3 == 0)
            g->steps[rng_below(&r, observed)] = 1;
        struct gp_rows rows = {observed + pending, g->x, g->z, g->steps};
        AS_AUTO(as_freep) double *x = malloc((rows.n + 1) * d * sizeof(double));
        memcpy(x, g->x, rows.n * d * sizeof(double));
        memcpy(x + from, other->x + rng_below(&r, 50) * d, pending * d * sizeof(double));
        rows.x = x;
        ck_ok(gp_model_build(kept, g->theta, &rows, base, &err), err);
        ck_ok(gp_model_observe(kept, g->y, observed, &err), err);
        struct gp_model *cold = NULL;
        ck_ok(gp_model_create(&g->c, &cold, &err), err);
        ck_ok(gp_model_build(cold, g->theta, &rows, base, &err), err);
        ck_ok(gp_model_observe(cold, g->y, observed, &err), err);
        same_bits(kept, cold);
        struct gp_work *w = work_for(kept, 33), *w2 = work_for(cold, 33);
        double mean[33], var[33], mean2[33], var2[33], dm[132], dv[132], dm2[132], dv2[132];
        gp_predict_grad(kept, w, &p->rows, mean, var, dm, dv);
        gp_predict_grad(cold, w2, &p->rows, mean2, var2, dm2, dv2);
        ck_assert_mem_eq(mean, mean2, sizeof(mean));
        ck_assert_mem_eq(var, var2, sizeof(var));
        ck_assert_mem_eq(dm, dm2, sizeof(dm));
        ck_assert_mem_eq(dv, dv2, sizeof(dv));
        gp_work_free(w);
        gp_work_free(w2);
        gp_model_free(cold);
    }
    ck_assert_uint_gt(gp_model_bytes(kept), 200 * 200 * sizeof(double));
    gp_model_free(kept);
    gp_case_free(g);
    gp_case_free(other);
    gp_case_free(p);
}
END_TEST

/* Of two configurations with equal values at the highest step, the one whose curve fell there is
 * expected to end lower, and so is a new one beside it. */
START_TEST(a_curve_that_falls_goes_on_falling)
{
    static double x[] = {0.1, 0.1, 0.9, 0.9}, steps[] = {0.3, 0.6, 0.3, 0.6};
    static const double y[] = {2, 1, 1, 1}, at[] = {0.1, 0.9, 0.15, 0.85};
    double theta[5], mean[4];
    struct gp_case g = {.c = {.n_real = 1, .n_groups = 1, .has_steps = true},
                        .rows = {.n = 4, .x = x, .s = steps},
                        .y = (double *)y,
                        .theta = theta};
    const struct gp_rows points = {.n = 4, .x = at};
    gp_theta_default(&g.c, theta);
    theta[0] = log(0.2);
    struct gp_model *m = model_of(&g, 4, 4);
    struct gp_work *w = work_for(m, 4);
    gp_predict(m, w, &points, mean, NULL);
    ck_assert_msg(mean[0] < 0.8 && mean[0] < mean[1] - 0.15, "%g and %g", mean[0], mean[1]);
    ck_assert_msg(mean[2] < mean[3] - 0.1, "%g and %g beside them", mean[2], mean[3]);
    gp_work_free(w);
    gp_model_free(m);
}
END_TEST

/* b <- K^-1 b against the covariances that gp_model_cross gives. */
START_TEST(cross_and_solve)
{
    struct gp_case *g = gp_case_create(21, 2, 1, 10);
    struct gp_model *m = model_of(g, 15, 21);
    struct gp_work *w = work_for(m, 21);
    double k[21 * 21], b[2 * 21], product[21];
    gp_model_cross(m, w, &g->rows, 21, k);
    for (size_t i = 0; i < 42; i++)
        b[i] = sin((double)i);
    gp_model_solve(m, b, 2, 21);
    for (size_t q = 0; q < 2; q++)
        for (size_t i = 0; i < 21; i++) {
            product[i] = gp_model_noise(m) * b[q * 21 + i];
            for (size_t j = 0; j < 21; j++)
                product[i] += k[i * 21 + j] * b[q * 21 + j];
            near(product[i], sin((double)(q * 21 + i)), 1e-9, "K K^-1 b", i);
        }
    gp_work_free(w);
    gp_model_free(m);
    gp_case_free(g);
}
END_TEST

/* Compared with models that never saw the row. Their constants differ a little from the constant of
 * the whole model. */
START_TEST(leave_one_out)
{
    struct as_err err = {0};
    struct gp_case *g = gp_case_create(18, 2, 0, 11);
    struct gp_model *m = model_of(g, 18, 18);
    double mean[18], var[18];
    ck_ok(gp_model_loo(m, g->y, mean, var, &err), err);
    for (size_t out = 0; out < 18; out++) {
        struct gp_case *less = gp_case_create(18, 2, 0, 11);
        double x[2] = {g->x[2 * out], g->x[2 * out + 1]}, want, want_var, constant;
        struct gp_rows point = {1, x, less->z};
        memmove(less->x + 2 * out, less->x + 2 * (out + 1), (17 - out) * 2 * sizeof(double));
        memmove(less->y + out, less->y + out + 1, (17 - out) * sizeof(double));
        less->rows.n = 17;
        reference_posterior(less, 17, &point, &want, &want_var, &constant);
        near(var[out], want_var + gp_model_noise(m), 1e-9, "variance", out);
        near(mean[out], want, 0.2 * sqrt(var[out]), "mean", out);
        gp_case_free(less);
    }
    gp_model_free(m);
    gp_case_free(g);
}
END_TEST

START_TEST(empty_and_any_batch)
{
    struct gp_case *g = gp_case_create(70, 3, 1, 12);
    struct gp_rows all = g->rows;
    g->rows.n = 0;
    struct gp_model *m = model_of(g, 5, 0);
    struct gp_work *w = work_for(m, 70);
    g->rows = all;
    double mean[70], var[70], dm[210], dv[210], one, one_var;
    gp_predict_grad(m, w, &g->rows, mean, var, dm, dv);
    ck_assert(mean[3] == 0 && var[3] == gp_model_signal(m) && dm[5] == 0 && dv[7] == 0);
    gp_work_free(w);
    gp_model_free(m);
    m = model_of(g, 60, 65);
    w = work_for(m, 70);
    for (size_t n = 0; n <= 70; n++) {
        struct gp_rows p = {n, g->x, g->z};
        gp_predict(m, w, &p, mean, var);
        for (size_t i = 0; i < n; i++) {
            struct gp_rows q = {1, g->x + 3 * i, g->z + i};
            gp_predict(m, w, &q, &one, &one_var);
            near(mean[i], one, 1e-12, "mean", i);
            near(var[i], one_var, 1e-12, "variance", i);
        }
    }
    ck_assert_uint_gt(gp_work_bytes(w), 70 * 70 * sizeof(double));
    ck_assert_double_eq_tol(log(gp_model_length(m, 2)), g->theta[1], 1e-14); /* its group */
    gp_work_free(w);
    gp_model_free(m);
    gp_case_free(g);
}
END_TEST

/* Hundreds of equal rows under the least noise, base and appended. */
START_TEST(equal_rows)
{
    struct as_err err = {0};
    struct gp_case *g = gp_case_create(200, 2, 0, 13);
    for (size_t i = 0; i < 400; i++)
        g->x[i] = 0.125 + 1e-13 * (double)(i % 5);
    g->theta[0] = g->theta[1] = log(100);
    g->theta[2] = log(100), g->theta[3] = log(1e-9);
    struct gp_model *m = model_of(g, 90, 190);
    struct gp_work *w = work_for(m, 200);
    double mean[200], var[200];
    gp_predict(m, w, &g->rows, mean, var);
    for (size_t i = 0; i < 200; i++)
        ck_assert(isfinite(mean[i]) && var[i] >= 1e-12 && var[i] < 1e-4);
    ck_ok(gp_model_build(m, g->theta, &g->rows, 200, &err), err);
    gp_work_free(w);
    gp_model_free(m);
    gp_case_free(g);
}
END_TEST

START_TEST(refuses)
{
    struct as_err err = {0};
    struct gp_case *g = gp_case_create(12, 3, 1, 14);
    struct gp_model *m = NULL;
    struct gp_columns bad = g->c;
    uint32_t groups[3] = {0, 7, 1}, gap[3] = {0, 0, 0};
    bad.group = groups;
    ck_fails(gp_model_create(&bad, &m, &err), AS_E_INVAL, err, "column 1 is of group 7");
    bad.group = gap;
    ck_fails(gp_model_create(&bad, &m, &err), AS_E_INVAL, err, "group 1 has no column");
    ck_assert_ptr_null(m);
    m = model_of(g, 12, 12);
    ck_fails(gp_model_observe(m, g->y, 13, &err), AS_E_INVAL, err, "13 values for 12 rows");
    double kept = g->y[2];
    g->y[2] = INFINITY;
    ck_fails(gp_model_observe(m, g->y, 12, &err), AS_E_INVAL, err, "value 2");
    g->y[2] = kept;
    g->theta[2] = NAN;
    ck_fails(gp_model_build(m, g->theta, &g->rows, 12, &err), AS_E_NUMERIC, err,
             "not positive definite");
    ck_assert_uint_eq(gp_model_rows(m), 0);
    g->theta[2] = 0;
    kept = g->x[4], g->x[4] = NAN;
    ck_fails(gp_model_build(m, g->theta, &g->rows, 12, &err), AS_E_INVAL, err, "row 1, column 1");
    g->x[4] = kept;
    ck_ok(gp_model_build(m, g->theta, &g->rows, 12, &err), err);
    gp_model_free(m);
    gp_case_free(g);
}
END_TEST

static as_status whole_life(const struct gp_case *g, struct as_err *err)
{
    AS_AUTO(gp_model_freep) struct gp_model *m = NULL;
    AS_AUTO(gp_work_freep) struct gp_work *w = gp_work_create();
    struct gp_rows few = g->rows;
    double mean[40], var[40];
    as_status st;
    few.n = 10;
    if (!w)
        return AS_E_NOMEM;
    if ((st = gp_model_create(&g->c, &m, err)) < 0 ||
        (st = gp_model_build(m, g->theta, &few, 5, err)) < 0 ||
        (st = gp_model_build(m, g->theta, &g->rows, 5, err)) < 0 ||
        (st = gp_model_observe(m, g->y, 40, err)) < 0 || (st = gp_work_reserve(w, m, 40, err)) < 0)
        return st;
    gp_predict(m, w, &g->rows, mean, var);
    return gp_model_loo(m, g->y, mean, var, err);
}

START_TEST(survives_the_loss_of_any_allocation)
{
    struct as_err err = {0};
    struct gp_case *g = gp_case_create(40, 2, 1, 15);
    as_status st = AS_E_NOMEM;
    for (size_t nth = 1; st == AS_E_NOMEM && nth < 100; nth++) {
        as_mem_fail_nth(nth);
        st = whole_life(g, &err);
    }
    as_mem_fail_nth(0);
    ck_ok(st, err);
    gp_case_free(g);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("gp_model");
    TCase *t = tcase_create("model");
    tcase_add_loop_test(t, posterior_matches_the_textbook, 0, GP_CASE_KINDS * AS_ARRAY_LEN(shapes));
    tcase_add_loop_test(t, gradients_match_differences, 0, GP_CASE_KINDS * AS_ARRAY_LEN(shapes));
    tcase_add_test(t, pending_rows_shrink_the_deviation_alone);
    tcase_add_loop_test(t, cached_is_cold_bit_for_bit, 0, 2);
    tcase_add_test(t, a_curve_that_falls_goes_on_falling);
    tcase_add_test(t, cross_and_solve);
    tcase_add_test(t, leave_one_out);
    tcase_add_test(t, empty_and_any_batch);
    tcase_add_test(t, equal_rows);
    tcase_add_test(t, refuses);
    tcase_add_test(t, survives_the_loss_of_any_allocation);
    suite_add_tcase(s, t);
    return s;
}
