/* The projected L-BFGS.
 *
 * The objectives have known minima: Rosenbrock's function, quadratics with a different centre for
 * each start, and functions with a wall of values that are not finite. The tests check that the
 * starts do not influence each other and that a result on a side of the box is exactly on it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "search/regression/lbfgs.h"
#include "tests/support/check_main.h"

/* What the objectives saw. */
struct seen {
    size_t n, calls, points, largest;
    const struct lbfgs_problem *p;
};

static void note(struct seen *s, const double *x, const size_t *start, size_t m)
{
    s->calls++;
    s->points += m;
    s->largest = m > s->largest ? m : s->largest;
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < s->n; j++) {
            size_t at = start[i] * s->p->bounds_stride + j;
            ck_assert(x[i * s->n + j] >= s->p->lower[at] && x[i * s->n + j] <= s->p->upper[at]);
        }
}

static double rosenbrock(const double *x, size_t n, double *g)
{
    double f = 0;
    memset(g, 0, n * sizeof(double));
    for (size_t i = 0; i + 1 < n; i++) {
        double a = x[i + 1] - x[i] * x[i], b = 1 - x[i];
        f += 100 * a * a + b * b;
        g[i] += -400 * a * x[i] - 2 * b;
        g[i + 1] += 200 * a;
    }
    return f;
}

static void rosenbrocks(void *ctx, const double *x, const size_t *start, size_t m, double *f,
                        double *g)
{
    struct seen *s = ctx;
    note(s, x, start, m);
    for (size_t i = 0; i < m; i++)
        f[i] = rosenbrock(x + i * s->n, s->n, g + i * s->n);
}

static struct lbfgs_work *work(size_t n, size_t starts)
{
    struct as_err err = {0};
    struct lbfgs_work *w = NULL;
    ck_ok(lbfgs_work_create(n, starts, &w, &err), err);
    return w;
}

START_TEST(rosenbrock_from_many_starts)
{
    enum { N = 6, STARTS = 9 };
    double lower[N], upper[N], x[STARTS * N], alone[N];
    struct lbfgs_result r[STARTS], one;
    struct rng g;
    rng_init(&g, 3, 0);
    for (size_t i = 0; i < N; i++)
        lower[i] = -3, upper[i] = 3;
    for (size_t i = 0; i < STARTS * N; i++)
        x[i] = 6 * rng_uniform(&g) - 3;
    memcpy(alone, x + 4 * N, sizeof(alone));
    struct seen s = {.n = N};
    struct lbfgs_problem p = {rosenbrocks, &s, N, lower, upper, 0, NULL};
    s.p = &p;
    struct lbfgs_opts o = {500, 1000, 1e-8, 1e-16};
    AS_AUTO(lbfgs_work_freep) struct lbfgs_work *w = work(N + 2, STARTS + 1);
    lbfgs_minimize(&p, &o, x, STARTS, r, w);
    size_t evals = 0;
    for (size_t k = 0; k < STARTS; k++) {
        /* Two minima: 0 at ones, and 3.97 with the first coordinate at -0.99. */
        ck_assert_msg(r[k].f < 1e-12 || fabs(r[k].f - 3.97394) < 1e-3, "start %zu: %g", k, r[k].f);
        ck_assert(r[k].end != LBFGS_LIMIT && r[k].end != LBFGS_BAD_START);
        evals += r[k].evals;
    }
    ck_assert(s.points == evals && s.largest == STARTS && s.calls < evals);
    /* Other starts do not change the result of one. */
    lbfgs_minimize(&p, &o, alone, 1, &one, w);
    ck_assert_mem_eq(alone, x + 4 * N, sizeof(alone));
    ck_assert(one.f == r[4].f && one.evals == r[4].evals);
}
END_TEST

/* (x - c)' A (x - c) with a condition number of 1e4 and a different c for each start. */
static void quadratics(void *ctx, const double *x, const size_t *start, size_t m, double *f,
                       double *g)
{
    struct seen *s = ctx;
    note(s, x, start, m);
    for (size_t i = 0; i < m; i++) {
        f[i] = 0;
        for (size_t j = 0; j < s->n; j++) {
            double a = pow(10, 4 * (double)j / (double)(s->n - 1));
            double off = x[i * s->n + j] - (double)start[i] + (double)j * 0.5;
            f[i] += 0.5 * a * off * off;
            g[i * s->n + j] = a * off;
        }
    }
}

/* With a box around each start, the minimum is the centre cut off at the box. */
static void downhill(void *ctx, const double *x, const size_t *start, size_t m, double *f,
                     double *g)
{
    struct seen *s = ctx;
    note(s, x, start, m);
    for (size_t i = 0; i < m * s->n; i++)
        g[i] = -100;
    for (size_t i = 0; i < m; i++) {
        f[i] = 0;
        for (size_t j = 0; j < s->n; j++)
            f[i] -= 100 * x[i * s->n + j];
    }
}

/* For any scale the result lies on the side of the box, to the last bit. */
START_TEST(ends_on_the_side)
{
    enum { N = 64 };
    double lower[N], upper[N], scale[N], x[N];
    struct rng g;
    rng_init(&g, 8, 0);
    for (size_t i = 0; i < N; i++) {
        lower[i] = 0;
        upper[i] = 1;
        scale[i] = 0.01 + rng_uniform(&g);
        x[i] = rng_uniform(&g);
    }
    struct seen s = {.n = N};
    struct lbfgs_problem p = {downhill, &s, N, lower, upper, 0, scale};
    s.p = &p;
    struct lbfgs_opts o = LBFGS_DEFAULTS;
    struct lbfgs_result r;
    AS_AUTO(lbfgs_work_freep) struct lbfgs_work *w = work(N, 1);
    lbfgs_minimize(&p, &o, x, 1, &r, w);
    for (size_t i = 0; i < N; i++)
        ck_assert(x[i] == 1);
}
END_TEST

START_TEST(bounds_of_each_start)
{
    enum { N = 5, STARTS = 4 };
    double lower[STARTS * N], upper[STARTS * N], x[STARTS * N] = {0};
    struct lbfgs_result r[STARTS];
    for (size_t i = 0; i < STARTS * N; i++) {
        lower[i] = i % 3 == 0 ? 0.25 : -1;
        upper[i] = i % 4 == 1 ? lower[i] : 1.5; /* some are fixed */
        x[i] = 9;                               /* out of the box */
    }
    lower[2] = -INFINITY, upper[2] = INFINITY;
    struct seen s = {.n = N};
    double scale[N] = {1, 0.3, 0.1, 0.03, 0.01};
    for (int scaled = 0; scaled < 2; scaled++) {
        struct lbfgs_problem p = {quadratics, &s, N, lower, upper, N, scaled ? scale : NULL};
        s.p = &p;
        struct lbfgs_opts o = {300, 600, 1e-9, 0};
        AS_AUTO(lbfgs_work_freep) struct lbfgs_work *w = work(N, STARTS);
        lbfgs_minimize(&p, &o, x, STARTS, r, w);
        for (size_t k = 0; k < STARTS; k++)
            for (size_t j = 0; j < N; j++) {
                double want = (double)k - 0.5 * (double)j;
                want = fmin(fmax(want, lower[k * N + j]), upper[k * N + j]);
                ck_assert_double_eq_tol(x[k * N + j], want, 1e-7);
            }
    }
}
END_TEST

/* A wall of values that are not finite beyond x = 0.7, and a start inside it. */
static void walled(void *ctx, const double *x, const size_t *start, size_t m, double *f, double *g)
{
    struct seen *s = ctx;
    note(s, x, start, m);
    for (size_t i = 0; i < m; i++) {
        f[i] = x[i] > 0.7 ? (start[i] ? NAN : INFINITY) : -x[i];
        g[i] = -100;
    }
}

/* The estimated curvature of a quadratic is right to an order of magnitude. */
START_TEST(inverse_hessian)
{
    enum { N = 5 };
    double lower[N], upper[N], x[N] = {3, 3, 3, 3, 3}, diagonal[N], scale[N];
    struct lbfgs_result r;
    struct seen s = {.n = N};
    struct lbfgs_problem p = {quadratics, &s, N, lower, upper, 0, scale};
    s.p = &p;
    for (size_t i = 0; i < N; i++)
        lower[i] = -9, upper[i] = 9, scale[i] = i % 2 ? 0.1 : 1;
    struct lbfgs_opts o = {300, 600, 1e-9, 0};
    AS_AUTO(lbfgs_work_freep) struct lbfgs_work *w = work(N, 1);
    lbfgs_minimize(&p, &o, x, 1, &r, w);
    ck_assert_uint_ge(lbfgs_inverse_hessian(&p, w, 0, diagonal), 5);
    for (size_t i = 0; i < N; i++)
        ck_assert_double_eq_tol(log10(diagonal[i]), -(double)i, 1);
    lbfgs_minimize(&p, &o, x, 1, &r, w);
    ck_assert_uint_eq(lbfgs_inverse_hessian(&p, w, 0, diagonal), 0);
}
END_TEST

START_TEST(values_that_are_not_finite)
{
    double lower = 0, upper = 1, x[3] = {0.1, 0.2, 0.9};
    struct lbfgs_result r[3];
    struct seen s = {.n = 1};
    struct lbfgs_problem p = {walled, &s, 1, &lower, &upper, 0, NULL};
    s.p = &p;
    AS_AUTO(lbfgs_work_freep) struct lbfgs_work *w = work(1, 3);
    struct lbfgs_opts o = LBFGS_DEFAULTS;
    lbfgs_minimize(&p, &o, x, 3, r, w);
    ck_assert(x[0] > 0.6 && x[0] <= 0.7 && r[0].f == -x[0]);
    ck_assert(x[1] > 0.6 && x[1] <= 0.7);
    ck_assert(r[2].end == LBFGS_BAD_START && x[2] == 0.9 && r[2].f == INFINITY);
}
END_TEST

START_TEST(limits)
{
    double lower[2] = {-5, -5}, upper[2] = {5, 5}, x[2] = {-1.2, 1};
    struct lbfgs_result r;
    struct seen s = {.n = 2};
    struct lbfgs_problem p = {rosenbrocks, &s, 2, lower, upper, 0, NULL};
    s.p = &p;
    AS_AUTO(lbfgs_work_freep) struct lbfgs_work *w = work(2, 1);
    struct lbfgs_opts o = {3, 1000, 0, 0};
    lbfgs_minimize(&p, &o, x, 1, &r, w);
    ck_assert(r.end == LBFGS_LIMIT && r.iters == 3 && r.f < 24.2);
    o = (struct lbfgs_opts){1000, 7, 0, 0};
    lbfgs_minimize(&p, &o, x, 1, &r, w);
    ck_assert(r.end == LBFGS_LIMIT && r.evals == 7);
    /* Nothing to move, and no variable at all. */
    double at[2] = {2, 2};
    struct lbfgs_problem fixed = {rosenbrocks, &s, 2, at, at, 0, NULL};
    s.p = &fixed;
    lbfgs_minimize(&fixed, &o, x, 1, &r, w);
    ck_assert(r.end == LBFGS_GRADIENT && r.evals == 1 && x[0] == 2);
    struct lbfgs_problem none = {rosenbrocks, &s, 0, NULL, NULL, 0, NULL};
    s.n = 0;
    lbfgs_minimize(&none, &o, x, 1, &r, w);
    ck_assert(r.end == LBFGS_GRADIENT);
    lbfgs_minimize(&none, &o, x, 0, &r, w);
}
END_TEST

START_TEST(out_of_memory)
{
    struct as_err err = {0};
    struct lbfgs_work *w = NULL;
    for (size_t nth = 1; nth <= 4; nth++) {
        as_mem_fail_nth(nth);
        ck_fails(lbfgs_work_create(3, 2, &w, &err), AS_E_NOMEM, err, "out of memory");
        ck_assert_ptr_null(w);
    }
    as_mem_fail_nth(0);
    ck_fails(lbfgs_work_create((size_t)1 << 62, 4, &w, &err), AS_E_NOMEM, err, "do not fit");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("gp_lbfgs");
    TCase *t = tcase_create("lbfgs");
    tcase_add_test(t, rosenbrock_from_many_starts);
    tcase_add_test(t, ends_on_the_side);
    tcase_add_test(t, bounds_of_each_start);
    tcase_add_test(t, inverse_hessian);
    tcase_add_test(t, values_that_are_not_finite);
    tcase_add_test(t, limits);
    tcase_add_test(t, out_of_memory);
    suite_add_tcase(s, t);
    return s;
}
