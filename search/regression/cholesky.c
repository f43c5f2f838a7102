/* Cholesky factor, inverse and solves for small matrices.
 *
 * The factor goes by blocks of GP_BLOCK rows: the kernels of panel.h do the part before the
 * diagonal, and the block itself is plain loops that gcc vectorises. The inverses of the diagonal
 * blocks are kept, so that a solve is a chain of small products without division. With few
 * right-hand sides a solve reads L once from memory for all of them; with many it is halved until a
 * block remains, and matrix products join the halves.
 *
 * The order of all operations is fixed by n and the layout alone. So the same input gives the same
 * bits (docs/decisions/4003), and an appended row equals the row of a new factor with the same
 * base. */
#include "search/regression/cholesky.h"

#include <math.h>
#include <string.h>

#include "search/regression/blas_thread_priv.h"
#include "search/regression/panel.h"
#include "search/regression/vec_exp.h"

/* up to this many right-hand sides a solve streams L; with more it multiplies matrices */
#define FEW 8

/* The row at which n rows are cut in two: a multiple of GP_BLOCK, so that no block crosses the
 * cut. */
static size_t half_of(size_t n)
{
    return ((n + GP_BLOCK - 1) / GP_BLOCK + 1) / 2 * GP_BLOCK;
}

/* c (m x n) += sign a (m x k) b (k x n), or b' where b is n x k. */
static void multiply_add(double *c, size_t ldc, double sign, const double *a, size_t lda,
                         const double *b, size_t ldb, bool transpose, size_t m, size_t n, size_t k)
{
    if (m > 0 && n > 0 && k > 0)
        blas_need()->dgemm(CblasRowMajor, CblasNoTrans, transpose ? CblasTrans : CblasNoTrans,
                           (int)m, (int)n, (int)k, sign, a, (int)lda, b, (int)ldb, 1, c, (int)ldc);
}

/* Row i of the inverse of a diagonal block, from its factor and the rows before. Row i of the
 * factor is `l`, its diagonal entry l[i]. */
CPU_INLINE void invert_row(const double *restrict l, double diagonal, size_t i,
                           double *restrict inv)
{
    double x[GP_BLOCK] __attribute__((aligned(64))) = {0};
    double reciprocal = 1 / diagonal;
    x[i] = 1;
    for (size_t k = 0; k < i; k++)
        for (size_t j = 0; j < (k + 8) / 8 * 8; j++) /* whole vectors; above the diagonal is 0 */
            x[j] -= l[k] * inv[k * GP_BLOCK + j];
    for (size_t j = 0; j < GP_BLOCK; j++)
        inv[i * GP_BLOCK + j] = x[j] * reciprocal;
}

/* Factor a diagonal block of n <= GP_BLOCK rows. It works by columns in a transposed copy, so that
 * the update of a column is a loop over adjacent entries. */
CPU_CLONES static bool factor_block(double *restrict a, size_t n, size_t ld, double *restrict inv)
{
    double c[GP_BLOCK * GP_BLOCK] __attribute__((aligned(64)));
    size_t rows = (n + 7) / 8 * 8;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            c[j * GP_BLOCK + i] = j <= i ? a[i * ld + j] : 0;
    for (size_t j = 0; j < n; j++) {
        for (size_t i = n; i < rows; i++)
            c[j * GP_BLOCK + i] = 0;
        double *column = c + j * GP_BLOCK, square = column[j];
        if (!(square > 0) || !isfinite(square))
            return false;
        double reciprocal = 1 / sqrt(square);
        for (size_t i = j / 8 * 8; i < rows; i++)
            column[i] *= reciprocal;
        column[j] = sqrt(square);
        for (size_t k = j + 1; k < n; k++)
            for (size_t i = k / 8 * 8; i < rows; i++)
                c[k * GP_BLOCK + i] -= column[k] * column[i];
    }
    for (size_t i = 0; i < n; i++) {
        double *row = a + i * ld;
        for (size_t j = 0; j <= i; j++)
            row[j] = c[j * GP_BLOCK + i];
        invert_row(row, row[i], i, inv);
    }
    return true;
}

/* b (m x n) <- b times the inverse of a block, n <= GP_BLOCK wide; or times its transpose. It works
 * in strips whose copy stays in the cache. */
static void apply_inverse(double *b, size_t m, size_t n, size_t ldb, const double *inv,
                          bool transpose)
{
    enum { STRIP = 64 };
    double copy[STRIP * GP_BLOCK] __attribute__((aligned(64)));
    for (size_t from = 0; from < m; from += STRIP) {
        size_t rows = m - from < STRIP ? m - from : STRIP;
        for (size_t i = 0; i < rows; i++)
            memcpy(copy + i * GP_BLOCK, b + (from + i) * ldb, n * sizeof(double));
        blas_need()->dgemm(CblasRowMajor, CblasNoTrans, transpose ? CblasTrans : CblasNoTrans,
                           (int)rows, (int)n, (int)n, 1, copy, GP_BLOCK, inv, GP_BLOCK, 0,
                           b + from * ldb, (int)ldb);
    }
}

/* b (m x n) <- b L^-T: each row becomes L^-1 b. */
static void solve_lower(double *b, size_t m, size_t n, size_t ldb, const double *l, size_t ld,
                        const double *inv)
{
    if (n <= GP_BLOCK) {
        apply_inverse(b, m, n, ldb, inv, true);
        return;
    }
    size_t h = half_of(n);
    solve_lower(b, m, h, ldb, l, ld, inv);
    multiply_add(b + h, ldb, -1, b, ldb, l + h * ld, ld, true, m, n - h, h);
    solve_lower(b + h, m, n - h, ldb, l + h * ld + h, ld, inv + h * GP_BLOCK);
}

/* b (m x n) <- b L^-1: each row becomes L^-T b. */
static void solve_upper(double *b, size_t m, size_t n, size_t ldb, const double *l, size_t ld,
                        const double *inv)
{
    if (n <= GP_BLOCK) {
        apply_inverse(b, m, n, ldb, inv, false);
        return;
    }
    size_t h = half_of(n);
    solve_upper(b + h, m, n - h, ldb, l + h * ld + h, ld, inv + h * GP_BLOCK);
    multiply_add(b, ldb, -1, b + h, ldb, l + h * ld, ld, false, m, h, n - h);
    solve_upper(b, m, h, ldb, l, ld, inv);
}

/* A block of rows at a time. The block's transpose, above the diagonal, is a panel of right-hand
 * sides for the rows before. */
bool gp_cholesky(double *a, size_t n, size_t ld, double *inv)
{
    for (size_t s = 0; s < n; s += GP_BLOCK) {
        size_t width = n - s < GP_BLOCK ? n - s : GP_BLOCK;
        double *rows = a + s * ld, *panel = a + s;
        for (size_t k = 0; k < s; k++)
            for (size_t r = 0; r < (width + 7) / 8 * 8; r++)
                panel[k * ld + r] = r < width ? rows[r * ld + k] : 0;
        gp_panel_solve(a, s, ld, panel, width, ld);
        gp_panel_subtract_square(panel, s, width, ld, rows + s, ld);
        for (size_t r = 0; r < width; r++)
            for (size_t k = 0; k < s; k++)
                rows[r * ld + k] = panel[k * ld + r];
        if (!factor_block(rows + s, width, ld, inv + s * GP_BLOCK))
            return false;
    }
    return true;
}

void gp_cholesky_invert(double *l, size_t n, size_t ld)
{
    gp_panel_invert(l, n, ld);
    gp_panel_square(l, n, ld);
}

/* Eight doubles at any address. gcc compiles it to the vector instructions of the clone's
 * target. */
typedef double vec8 __attribute__((vector_size(64), aligned(8)));

CPU_INLINE double sum8(const vec8 *v)
{
    return (((*v)[0] + (*v)[4]) + ((*v)[2] + (*v)[6])) +
           (((*v)[1] + (*v)[5]) + ((*v)[3] + (*v)[7]));
}

/* b[q][i] -= L_i b[q] over the first k columns (a multiple of 8), for `rows` rows from i on: each
 * entry of L that is read from memory is used for all m right-hand sides. */
CPU_INLINE void subtract_dots(const double *l, size_t ld, size_t k, double *b, size_t ldb, size_t i,
                              size_t rows, size_t m)
{
    vec8 sum[2][4];
    for (size_t q = 0; q < m; q++)
        sum[0][q] = sum[1][q] = (vec8){0};
    for (size_t j = 0; j < k; j += 8)
        for (size_t r = 0; r < rows; r++) {
            vec8 own = *(const vec8 *)(l + (i + r) * ld + j);
            for (size_t q = 0; q < m; q++)
                sum[r][q] += own * *(const vec8 *)(b + q * ldb + j);
        }
    for (size_t r = 0; r < rows; r++)
        for (size_t q = 0; q < m; q++)
            b[q * ldb + i + r] -= sum8(&sum[r][q]);
}

/* b <- inverse of a diagonal block of n rows times b, for one right-hand side. */
CPU_INLINE void apply_block(const double *inv, double *b, size_t n)
{
    double x[GP_BLOCK] __attribute__((aligned(64))) = {0};
    for (size_t i = 0; i < n; i++)
        x[i] = b[i];
    for (size_t i = 0; i < n; i++) {
        vec8 sum = {0};
        for (size_t j = 0; j < GP_BLOCK; j += 8)
            sum += *(const vec8 *)(inv + i * GP_BLOCK + j) * *(const vec8 *)(x + j);
        b[i] = sum8(&sum);
    }
}

CPU_INLINE void lower_few(const double *l, size_t n, size_t ld, const double *inv, double *b,
                          size_t m, size_t ldb)
{
    for (size_t s = 0; s < n; s += GP_BLOCK) {
        size_t end = n - s < GP_BLOCK ? n : s + GP_BLOCK, i = s;
        for (; i + 2 <= end; i += 2)
            subtract_dots(l, ld, s, b, ldb, i, 2, m);
        if (i < end)
            subtract_dots(l, ld, s, b, ldb, i, 1, m);
        for (size_t q = 0; q < m; q++)
            apply_block(inv + s * GP_BLOCK, b + q * ldb + s, end - s);
    }
}

/* b[q] -= the sum of x[q][r] L_(i+r) over the first k columns (a multiple of 8), for four rows. */
CPU_INLINE void subtract_rows(const double *l, size_t ld, size_t k, const double *x, double *b,
                              size_t ldb, size_t m)
{
    for (size_t j = 0; j < k; j += 8) {
        vec8 row[4];
        for (size_t r = 0; r < 4; r++)
            row[r] = *(const vec8 *)(l + r * ld + j);
        for (size_t q = 0; q < m; q++) {
            vec8 *to = (vec8 *)(b + q * ldb + j);
            *to -= (row[0] * x[q * GP_BLOCK] + row[1] * x[q * GP_BLOCK + 1]) +
                   (row[2] * x[q * GP_BLOCK + 2] + row[3] * x[q * GP_BLOCK + 3]);
        }
    }
}

/* x <- the transpose of the inverse of a diagonal block times b. */
CPU_INLINE void apply_block_transposed(const double *inv, const double *b, size_t n, double *x)
{
    vec8 sum[GP_BLOCK / 8];
    for (size_t j = 0; j < GP_BLOCK / 8; j++)
        sum[j] = (vec8){0};
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < GP_BLOCK / 8; j++)
            sum[j] += *(const vec8 *)(inv + i * GP_BLOCK + 8 * j) * b[i];
    for (size_t j = 0; j < GP_BLOCK / 8; j++)
        *(vec8 *)(x + 8 * j) = sum[j];
}

CPU_INLINE void upper_few(const double *l, size_t n, size_t ld, const double *inv, double *b,
                          size_t m, size_t ldb)
{
    double x[4 * GP_BLOCK] __attribute__((aligned(64)));
    for (size_t s = (n - 1) / GP_BLOCK * GP_BLOCK;; s -= GP_BLOCK) {
        size_t rows = n - s < GP_BLOCK ? n - s : GP_BLOCK, r = 0;
        for (size_t q = 0; q < m; q++) {
            apply_block_transposed(inv + s * GP_BLOCK, b + q * ldb + s, rows, x + q * GP_BLOCK);
            memcpy(b + q * ldb + s, x + q * GP_BLOCK, rows * sizeof(double));
        }
        for (; r + 4 <= rows; r += 4)
            subtract_rows(l + (s + r) * ld, ld, s, x + r, b, ldb, m);
        for (; r < rows; r++)
            for (size_t q = 0; q < m; q++)
                for (size_t j = 0; j < s; j++)
                    b[q * ldb + j] -= x[q * GP_BLOCK + r] * l[(s + r) * ld + j];
        if (s == 0)
            break;
    }
}

CPU_CLONES static void lower_up_to_four(const double *l, size_t n, size_t ld, const double *inv,
                                        double *b, size_t m, size_t ldb)
{
#define CALL(constant) lower_few(l, n, ld, inv, b, constant, ldb)
    GP_WITH_CONSTANT(m, CALL);
#undef CALL
}

CPU_CLONES static void upper_up_to_four(const double *l, size_t n, size_t ld, const double *inv,
                                        double *b, size_t m, size_t ldb)
{
#define CALL(constant) upper_few(l, n, ld, inv, b, constant, ldb)
    GP_WITH_CONSTANT(m, CALL);
#undef CALL
}

void gp_solve_lower(const double *l, size_t n, size_t ld, const double *inv, double *b, size_t m,
                    size_t ldb)
{
    if (n == 0 || m == 0)
        return;
    if (m > FEW) {
        solve_lower(b, m, n, ldb, l, ld, inv);
        return;
    }
    for (size_t q = 0; q < m; q += 4)
        lower_up_to_four(l, n, ld, inv, b + q * ldb, m - q, ldb);
}

void gp_solve_upper(const double *l, size_t n, size_t ld, const double *inv, double *b, size_t m,
                    size_t ldb)
{
    if (n == 0 || m == 0)
        return;
    if (m > FEW) {
        solve_upper(b, m, n, ldb, l, ld, inv);
        return;
    }
    for (size_t q = 0; q < m; q += 4)
        upper_up_to_four(l, n, ld, inv, b + q * ldb, m - q, ldb);
}

CPU_CLONES static double square_norm(const double *v, size_t n)
{
    vec8 sum = {0};
    size_t j = 0;
    for (; j + 8 <= n; j += 8)
        sum += *(const vec8 *)(v + j) * *(const vec8 *)(v + j);
    double rest = 0;
    for (; j < n; j++)
        rest += v[j] * v[j];
    return sum8(&sum) + rest;
}

CPU_CLONES static void extend_inverse(const double *l, double diagonal, size_t i, double *inv)
{
    invert_row(l, diagonal, i, inv);
}

void gp_cholesky_append(double *l, size_t i, size_t ld, double *inv, double own, double least)
{
    double *row = l + i * ld;
    size_t block = i / GP_BLOCK * GP_BLOCK;
    gp_solve_lower(l, i, ld, inv, row, 1, ld);
    double rest = own - square_norm(row, i);
    row[i] = sqrt(rest > least ? rest : least);
    extend_inverse(row + block, row[i], i - block, inv + block * GP_BLOCK);
}
