/* Factor, append, invert and solve; sums of squares of solutions.
 *
 * Each result is compared with a textbook factorisation, for sizes around every border of the
 * blocks. Another test repeats the work at other addresses and leading
 * dimensions and compares bits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "search/regression/buf.h"
#include "search/regression/cholesky.h"
#include "search/regression/panel.h"
#include "tests/support/check_main.h"

/* Sizes around the borders of blocks and of the kernels' groups of rows. */
static const size_t sizes[] = {1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 65, 96, 97, 128, 200, 257, 450};

struct matrix {
    struct gp_buf a, inv;
    size_t n, ld;
};

/* A covariance of n points on a line, with noise; below the diagonal only, arbitrary values
 * above. */
static struct matrix covariance(size_t n, size_t ld)
{
    struct as_err err = {0};
    struct matrix m = {.n = n, .ld = ld};
    ck_ok(gp_buf_reserve(&m.a, n, ld, &err), err);
    ck_ok(gp_buf_reserve(&m.inv, 1, gp_inverse_size(n), &err), err);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < ld; j++)
            m.a.p[i * ld + j] = j > i ? 1e30
                                      : exp(-0.1 * fabs((double)i - (double)j)) +
                                            (i == j ? 0.01 + 1e-3 * (double)(i % 5) : 0);
    return m;
}

static void matrix_done(struct matrix *m)
{
    gp_buf_done(&m->a);
    gp_buf_done(&m->inv);
}

/* The textbook's, in place. */
static void plain_cholesky(double *a, size_t n, size_t ld)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            double sum = a[i * ld + j];
            for (size_t k = 0; k < j; k++)
                sum -= a[i * ld + k] * a[j * ld + k];
            a[i * ld + j] = i == j ? sqrt(sum) : sum / a[j * ld + j];
        }
}

static void near(double got, double want, double tolerance, const char *what, size_t i, size_t j)
{
    if (!(fabs(got - want) <= tolerance * fmax(1, fabs(want))))
        ck_abort_msg("%s %zu,%zu: %.15g, not %.15g", what, i, j, got, want);
}

START_TEST(factor_and_inverse)
{
    size_t n = sizes[_i], ld = gp_ld(n);
    struct matrix m = covariance(n, ld), plain = covariance(n, ld), again = covariance(n, ld);
    ck_assert(gp_cholesky(m.a.p, n, ld, m.inv.p));
    plain_cholesky(plain.a.p, n, ld);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++)
            near(m.a.p[i * ld + j], plain.a.p[i * ld + j], 1e-12, "L", i, j);
    gp_cholesky_invert(m.a.p, n, ld);
    for (size_t i = 0; i < n; i += 5)
        for (size_t j = 0; j < n; j += 3) {
            double sum = 0;
            for (size_t k = 0; k < n; k++)
                sum += (i >= k ? m.a.p[i * ld + k] : m.a.p[k * ld + i]) *
                       (k >= j ? again.a.p[k * ld + j] : again.a.p[j * ld + k]);
            near(sum, i == j ? 1 : 0, 1e-10, "K^-1 K", i, j);
        }
    matrix_done(&m);
    matrix_done(&plain);
    matrix_done(&again);
}
END_TEST

/* L (L^-1 b) = b and L' (L^-T b) = b, for numbers of right-hand sides that take each path, in rows
 * that are not aligned. */
START_TEST(solves)
{
    size_t n = sizes[_i], ld = gp_ld(n), ldb = n + 3;
    struct matrix m = covariance(n, ld);
    ck_assert(gp_cholesky(m.a.p, n, ld, m.inv.p));
    for (size_t count = 0; count <= 70; count += count < 10 ? 1 : 20) {
        AS_AUTO(as_freep) double *b = malloc((count * ldb + 1) * sizeof(double));
        AS_AUTO(as_freep) double *lower = malloc((count * ldb + 1) * sizeof(double));
        AS_AUTO(as_freep) double *upper = malloc((count * ldb + 1) * sizeof(double));
        for (size_t i = 0; i < count * ldb; i++)
            b[i] = lower[i] = upper[i] = sin((double)i);
        gp_solve_lower(m.a.p, n, ld, m.inv.p, lower, count, ldb);
        gp_solve_upper(m.a.p, n, ld, m.inv.p, upper, count, ldb);
        for (size_t q = 0; q < count; q++) {
            for (size_t i = 0; i < n; i++) {
                double down = 0, up = 0;
                for (size_t k = 0; k <= i; k++)
                    down += m.a.p[i * ld + k] * lower[q * ldb + k];
                for (size_t k = i; k < n; k++)
                    up += m.a.p[k * ld + i] * upper[q * ldb + k];
                near(down, b[q * ldb + i], 1e-11, "lower", q, i);
                near(up, b[q * ldb + i], 1e-11, "upper", q, i);
            }
            for (size_t i = n; i < ldb; i++)
                ck_assert(lower[q * ldb + i] == b[q * ldb + i] &&
                          upper[q * ldb + i] == b[q * ldb + i]);
        }
    }
    matrix_done(&m);
}
END_TEST

/* |L^-1 b|^2 as the solve gives it, and the same bits for a right-hand side alone and among
 * others. */
START_TEST(squares)
{
    enum { MOST = 70 };
    struct as_err err = {0};
    size_t n = sizes[_i], ld = gp_ld(n), ldb = n + 3;
    struct matrix m = covariance(n, ld);
    struct gp_buf panel = {0};
    AS_AUTO(as_freep) double *b = malloc(MOST * ldb * sizeof(double));
    AS_AUTO(as_freep) double *solved = malloc(MOST * ldb * sizeof(double));
    double all[MOST], some[MOST];
    ck_ok(gp_buf_reserve(&panel, n, GP_PANEL, &err), err);
    ck_assert(gp_cholesky(m.a.p, n, ld, m.inv.p));
    for (size_t i = 0; i < MOST * ldb; i++)
        b[i] = solved[i] = sin((double)i);
    gp_solve_lower(m.a.p, n, ld, m.inv.p, solved, MOST, ldb);
    gp_lower_squares(m.a.p, n, ld, b, MOST, ldb, panel.p, all);
    for (size_t q = 0; q < MOST; q++) {
        double want = 0;
        for (size_t i = 0; i < n; i++)
            want += solved[q * ldb + i] * solved[q * ldb + i];
        near(all[q], want, 1e-11, "square", q, 0);
    }
    for (size_t from = 0; from < MOST; from += 9)
        for (size_t count = 1; from + count <= MOST && count < 30; count += 7) {
            gp_lower_squares(m.a.p, n, ld, b + from * ldb, count, ldb, panel.p, some);
            ck_assert_mem_eq(some, all + from, count * sizeof(double));
        }
    gp_buf_done(&panel);
    matrix_done(&m);
}
END_TEST

/* Rows that are appended, over block borders; and a factor that is cut back and appended to again.
 */
START_TEST(appends)
{
    size_t n = 150, ld = gp_ld(n);
    struct matrix m = covariance(n, ld), whole = covariance(n, ld), k = covariance(n, ld);
    ck_assert(gp_cholesky(whole.a.p, n, ld, whole.inv.p));
    ck_assert(gp_cholesky(m.a.p, 45, ld, m.inv.p));
    for (size_t i = 45; i < n; i++)
        gp_cholesky_append(m.a.p, i, ld, m.inv.p, k.a.p[i * ld + i], 0.01);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++)
            near(m.a.p[i * ld + j], whole.a.p[i * ld + j], 1e-12, "L", i, j);
        for (size_t j = 0; j < GP_BLOCK; j++)
            near(m.inv.p[i * GP_BLOCK + j], whole.inv.p[i * GP_BLOCK + j], 1e-11, "inverse", i, j);
    }
    AS_AUTO(as_freep) double *before = malloc(n * ld * sizeof(double));
    memcpy(before, m.a.p, n * ld * sizeof(double));
    for (size_t i = 60; i < n; i++) {
        memcpy(m.a.p + i * ld, k.a.p + i * ld, i * sizeof(double));
        gp_cholesky_append(m.a.p, i, ld, m.inv.p, k.a.p[i * ld + i], 0.01);
        ck_assert_mem_eq(m.a.p + i * ld, before + i * ld, (i + 1) * sizeof(double));
    }
    /* The remaining variance has a floor despite rounding. */
    memcpy(m.a.p + 100 * ld, k.a.p + 100 * ld, 100 * sizeof(double));
    gp_cholesky_append(m.a.p, 100, ld, m.inv.p, 0, 1e-8);
    ck_assert(m.a.p[100 * ld + 100] == sqrt(1e-8));
    matrix_done(&m);
    matrix_done(&whole);
    matrix_done(&k);
}
END_TEST

/* The bits do not depend on the address of the memory or on the leading dimension. */
START_TEST(bits_do_not_depend_on_the_memory)
{
    size_t n = 321;
    struct matrix m = covariance(n, gp_ld(n)), other = covariance(n, gp_ld(n + 200));
    ck_assert(gp_cholesky(m.a.p, n, m.ld, m.inv.p));
    ck_assert(gp_cholesky(other.a.p, n, other.ld, other.inv.p));
    for (size_t i = 0; i < n; i++)
        ck_assert_mem_eq(m.a.p + i * m.ld, other.a.p + i * other.ld, (i + 1) * sizeof(double));
    ck_assert_mem_eq(m.inv.p, other.inv.p, n * GP_BLOCK * sizeof(double));
    gp_cholesky_invert(m.a.p, n, m.ld);
    gp_cholesky_invert(other.a.p, n, other.ld);
    for (size_t i = 0; i < n; i++)
        ck_assert_mem_eq(m.a.p + i * m.ld, other.a.p + i * other.ld, (i + 1) * sizeof(double));
    matrix_done(&m);
    matrix_done(&other);
}
END_TEST

START_TEST(not_positive_definite)
{
    for (size_t q = 0; q < AS_ARRAY_LEN(sizes); q++) {
        size_t n = sizes[q], ld = gp_ld(n);
        for (int kind = 0; kind < 3; kind++) {
            struct matrix m = covariance(n, ld);
            m.a.p[(n - 1) * ld + n - 1] = kind == 0 ? -1e-3 : kind == 1 ? NAN : INFINITY;
            ck_assert(!gp_cholesky(m.a.p, n, ld, m.inv.p));
            matrix_done(&m);
        }
    }
    ck_assert(gp_jitter(0, 5) == 0 && gp_jitter(1, 5) == 5e-8);
    ck_assert_double_eq_tol(gp_jitter(GP_JITTER_STEPS - 1, 1), 1e-4, 1e-15);
}
END_TEST

START_TEST(buffers)
{
    struct as_err err = {0};
    struct gp_buf b = {0};
    for (size_t n = 0; n < 3000; n += 7) {
        ck_ok(gp_buf_reserve(&b, n, 3, &err), err);
        ck_assert(b.cap >= 3 * n && (uintptr_t)b.p % 64 == 0);
    }
    ck_fails(gp_buf_reserve(&b, SIZE_MAX / 2, 5, &err), AS_E_NOMEM, err, "do not fit");
    as_mem_fail_nth(1);
    ck_fails(gp_buf_reserve(&b, 100000, 3, &err), AS_E_NOMEM, err, "out of memory");
    as_mem_fail_nth(0);
    ck_assert(b.cap >= 3 * 2996);
    gp_buf_done(&b);
    for (size_t n = 0; n < 5000; n++)
        ck_assert(gp_ld(n) >= n && gp_ld(n) % 8 == 0 && gp_ld(n) / 8 % 2 == 1);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("gp_cholesky");
    TCase *t = tcase_create("cholesky");
    tcase_add_loop_test(t, factor_and_inverse, 0, AS_ARRAY_LEN(sizes));
    tcase_add_loop_test(t, solves, 0, AS_ARRAY_LEN(sizes));
    tcase_add_loop_test(t, squares, 0, AS_ARRAY_LEN(sizes));
    tcase_add_test(t, appends);
    tcase_add_test(t, bits_do_not_depend_on_the_memory);
    tcase_add_test(t, not_positive_definite);
    tcase_add_test(t, buffers);
    suite_add_tcase(s, t);
    return s;
}
