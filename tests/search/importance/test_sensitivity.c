/* Sobol's indices by the pick-freeze estimators.
 *
 * The tested functions have known indices: Sobol's g, Ishigami, discrete inputs, and a triangle
 * whose inputs depend on each other. Bounds on the error hold for fixed scramblings. Further tests
 * cover resampling, many inputs, a narrow allowed part, and a function that fails. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "search/importance/sensitivity.h"
#include "tests/support/check_main.h"

#define PI 3.14159265358979323846
#define MAX_D 8

/* A function whose indices are known. */
struct known {
    const char *name;
    size_t d;
    double (*f)(const double *u);
    bool (*allowed)(void *ctx, const double *u);
    double first[MAX_D], total[MAX_D];
};

static double ishigami(const double *u)
{
    double x[3];
    for (size_t k = 0; k < 3; k++)
        x[k] = PI * (2 * u[k] - 1);
    return sin(x[0]) + 7 * sin(x[1]) * sin(x[1]) + 0.1 * x[2] * x[2] * x[2] * x[2] * sin(x[0]);
}

/* Sobol's g with a = 0, 1, 4.5, 9, 99, 99. */
static double g_function(const double *u)
{
    const double a[] = {0, 1, 4.5, 9, 99, 99};
    double product = 1;
    for (size_t k = 0; k < 6; k++)
        product *= (fabs(4 * u[k] - 2) + a[k]) / (1 + a[k]);
    return product;
}

static double linear(const double *u)
{
    return 1e6 + 3 * u[0] + 2 * u[1] + u[2] - 0.5 * u[3];
}

static double constant(const double *u)
{
    (void)u;
    return 0.1;
}

/* A two-valued and a three-valued input: (c == 1) v, with c fair and v in {0, 1, 2}. E = 1/2, E of
 * the square = 5/6, Var = 7/12. Given c: 0 or 1, variance 1/4. Given v: v/2, variance 1/6. */
static double switched(const double *u)
{
    return u[0] < 0.5 ? 0 : floor(3 * u[1]);
}

static double first_input(const double *u)
{
    return u[0];
}

static bool below_diagonal(void *ctx, const double *u)
{
    (void)ctx;
    return u[0] + u[1] <= 1;
}

/* u0 on the triangle u0 + u1 <= 1 has variance 1/18. Given u1 it is uniform on [0, 1 - u1], with
 * mean (1 - u1)/2, of variance 1/72, and variance (1 - u1)^2/12, of mean 1/24. u2 is free. */
static const struct known known[] = {
    {"ishigami", 3, ishigami, NULL, {0.3139, 0.4424, 0}, {0.5576, 0.4424, 0.2437}},
    {"g",
     6,
     g_function,
     NULL,
     {0.71634, 0.17909, 0.02368, 0.00716, 0.00007, 0.00007},
     {0.78726, 0.24223, 0.03432, 0.01046, 0.00010, 0.00010}},
    {"linear",
     5,
     linear,
     NULL,
     {9 / 14.25, 4 / 14.25, 1 / 14.25, 0.25 / 14.25, 0},
     {9 / 14.25, 4 / 14.25, 1 / 14.25, 0.25 / 14.25, 0}},
    {"constant", 2, constant, NULL, {0, 0}, {0, 0}},
    {"switched", 2, switched, NULL, {3.0 / 7, 2.0 / 7}, {5.0 / 7, 4.0 / 7}},
    {"triangle", 3, first_input, below_diagonal, {1, 0.25, 0}, {0.75, 0, 0}},
};

/* The functions of a problem are copies of one. */
struct run {
    const struct known *k;
    size_t copies, calls;
};

static as_status evaluate(void *ctx, const double *u, size_t n, double *ret, struct as_err *err)
{
    struct run *r = ctx;
    (void)err;
    r->calls++;
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < r->copies; c++)
            ret[i * r->copies + c] = r->k->f(u + i * r->k->d);
    return AS_OK;
}

static const size_t all[] = {0, 1, 2, 3, 4, 5, 6, 7};

static struct sensitivity_problem problem_of(struct run *r, size_t rows, uint64_t key)
{
    return (struct sensitivity_problem){.d = r->k->d,
                                        .n_functions = r->copies,
                                        .rows = rows,
                                        .key = key,
                                        .hi = 16,
                                        .evaluate = evaluate,
                                        .allowed = r->k->allowed,
                                        .ctx = r};
}

/* With 1,024 rows the error is below 0.03 on each of 20 fixed scramblings, and below 0.012 on
 * average. If inputs depend on each other, it is below 0.1 and 0.03. */
START_TEST(known_indices)
{
    struct run run = {&known[_i], 1, 0};
    double first[MAX_D], total[MAX_D], worst = 0, sum = 0;
    struct as_err err;
    for (uint64_t key = 0; key < 20; key++) {
        struct sensitivity_problem p = problem_of(&run, 1024, key);
        ck_ok(sensitivity_estimate(&p, all, p.d, first, total, &err), err);
        for (size_t j = 0; j < p.d; j++) {
            double off = fmax(fabs(first[j] - run.k->first[j]), fabs(total[j] - run.k->total[j]));
            worst = fmax(worst, off);
            sum += off / (double)p.d / 20;
        }
    }
    ck_assert_msg(worst < (run.k->allowed ? 0.1 : 0.03), "%s: off by %g", run.k->name, worst);
    ck_assert_msg(sum < (run.k->allowed ? 0.03 : 0.012), "%s: off by %g on average", run.k->name,
                  sum);
}
END_TEST

START_TEST(some_inputs_are_the_same_as_all)
{
    struct run run = {&known[1], 1, 0};
    double first[MAX_D], total[MAX_D], one_first, one_total;
    struct as_err err;
    struct sensitivity_problem p = problem_of(&run, 256, 3);
    ck_ok(sensitivity_estimate(&p, all, 6, first, total, &err), err);
    ck_assert_uint_eq(run.calls, 8);
    ck_ok(sensitivity_estimate(&p, all + 1, 1, &one_first, &one_total, &err), err);
    ck_assert_double_eq(one_first, first[1]);
    ck_assert_double_eq(one_total, total[1]);
}
END_TEST

/* Resampled copies vary by about the error of the estimate: at least 300 of 400 are within 0.1 of
 * the truth, and they are not all equal. */
START_TEST(resampling_spreads)
{
    enum { copies = 400 };
    struct run run = {&known[0], copies, 0};
    double *first = as_calloc(3 * copies, sizeof *first),
           *total = as_calloc(3 * copies, sizeof *total);
    struct as_err err;
    ck_assert(first && total);
    struct sensitivity_problem p = problem_of(&run, 512, 5);
    p.resample = true;
    ck_ok(sensitivity_estimate(&p, all, 3, first, total, &err), err);
    for (size_t j = 0; j < 3; j++) {
        double mean = 0, square = 0;
        size_t near = 0;
        for (size_t c = 0; c < copies; c++) {
            double v = first[j * copies + c];
            mean += v / copies;
            square += v * v / copies;
            near += fabs(v - run.k->first[j]) < 0.1;
        }
        double deviation = sqrt(square - mean * mean);
        ck_assert_msg(deviation > 0.003 && deviation < 0.08, "input %zu: %g", j, deviation);
        ck_assert_uint_ge(near, 300);
    }
    free(first);
    free(total);
}
END_TEST

static double sum_of_many(const double *u)
{
    double sum = 0;
    for (size_t k = 0; k < 256; k++)
        sum += (k % 50 == 7 ? 1 : 0) * u[k]; /* 7, 57, 107, 157, 207: 1/5 each */
    return sum;
}

START_TEST(many_inputs)
{
    const struct known wide = {"wide", 256, sum_of_many, NULL, {0}, {0}};
    struct run run = {&wide, 1, 0};
    const size_t inputs[] = {7, 8, 157, 200};
    double first[4], total[4];
    struct as_err err;
    struct sensitivity_problem p = problem_of(&run, 1024, 1);
    ck_ok(sensitivity_estimate(&p, inputs, 4, first, total, &err), err);
    for (size_t k = 0; k < 4; k++) {
        ck_assert_double_eq_tol(first[k], k % 2 ? 0 : 0.2, 0.05);
        ck_assert_double_eq_tol(total[k], k % 2 ? 0 : 0.2, 0.05);
    }
}
END_TEST

static bool nothing(void *ctx, const double *u)
{
    (void)ctx;
    (void)u;
    return false;
}

/* u0 == u1 as levels of three: each determines the other. */
static bool same_thirds(void *ctx, const double *u)
{
    (void)ctx;
    return floor(3 * u[0]) == floor(3 * u[1]);
}

static double thirds(const double *u)
{
    return floor(3 * u[0]);
}

START_TEST(what_is_allowed_may_be_narrow)
{
    const struct known tied = {"tied", 2, thirds, same_thirds, {1, 1}, {0, 0}};
    struct run run = {&tied, 1, 0};
    double first[2], total[2];
    struct as_err err;
    struct sensitivity_problem p = problem_of(&run, 512, 1);
    ck_ok(sensitivity_estimate(&p, all, 2, first, total, &err), err);
    for (size_t k = 0; k < 2; k++) {
        ck_assert_double_eq_tol(first[k], 1, 1e-9);
        ck_assert_double_eq_tol(total[k], 0, 1e-9);
    }
    p.allowed = nothing;
    ck_fails(sensitivity_estimate(&p, all, 2, first, total, &err), AS_E_EXHAUSTED, err, "allowed");
}
END_TEST

static as_status refuse(void *ctx, const double *u, size_t n, double *ret, struct as_err *err)
{
    (void)ctx;
    (void)u;
    (void)n;
    (void)ret;
    return as_fail(err, AS_E_NUMERIC, "no value");
}

START_TEST(failures_pass_through)
{
    struct run run = {&known[0], 1, 0};
    double first[MAX_D], total[MAX_D];
    struct as_err err;
    struct sensitivity_problem p = problem_of(&run, 16, 1);
    p.evaluate = refuse;
    ck_fails(sensitivity_estimate(&p, all, 3, first, total, &err), AS_E_NUMERIC, err, "no value");
    p.evaluate = evaluate;
    for (size_t nth = 1; nth <= 11; nth++) {
        as_mem_fail_nth(nth);
        ck_fails(sensitivity_estimate(&p, all, 3, first, total, &err), AS_E_NOMEM, err, "memory");
    }
    as_mem_fail_nth(0);
    ck_ok(sensitivity_estimate(&p, all, 3, first, total, &err), err);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search_sensitivity");
    TCase *t = tcase_create("sensitivity");
    tcase_add_loop_test(t, known_indices, 0, (int)AS_ARRAY_LEN(known));
    tcase_add_test(t, some_inputs_are_the_same_as_all);
    tcase_add_test(t, resampling_spreads);
    tcase_add_test(t, many_inputs);
    tcase_add_test(t, what_is_allowed_may_be_narrow);
    tcase_add_test(t, failures_pass_through);
    suite_add_tcase(s, t);
    return s;
}
