/* Cholesky factors of covariance matrices: factor, invert, solve; all in place, row-major, lower
 * triangle only. Rows start at a + i * ld, each on a 64-byte boundary (buf.h): the same input then
 * gives the same bits, wherever the memory lies. Nothing is allocated.
 *
 * On one thread, dpotrf and dpotri of OpenBLAS 0.3.21, with its kernels for AVX2, reach 13 billion
 * operations a second at n = 100 and 38 at n = 1000; this code reaches 41 and 94 on a processor
 * with AVX-512 (docs/decisions/4003; panel.h). Solves multiply by the inverses of the diagonal
 * blocks, which are kept beside the factor: `inv` holds row i of the inverse of its block at
 * inv + i * GP_BLOCK. (J. Du Croz, N. Higham, "Stability of methods for matrix inversion", IMA J.
 * Numer. Anal. 12, 1992, for why blocks this small may be inverted.) */
#ifndef ASSAY_SEARCH_REGRESSION_CHOLESKY_H
#define ASSAY_SEARCH_REGRESSION_CHOLESKY_H

#include <stdbool.h>
#include <stddef.h>

#define GP_BLOCK 32

/* Doubles that `inv` must have for n rows. 64-byte aligned, as everything here. */
static inline size_t gp_inverse_size(size_t n)
{
    return (n + GP_BLOCK - 1) / GP_BLOCK * GP_BLOCK * GP_BLOCK;
}

/* If a covariance is numerically not positive definite, jitter is added to its diagonal: none at
 * first, then 1e-8 of its scale, and ten times more at each further step. */
#define GP_JITTER_STEPS 6
static inline double gp_jitter(int step, double scale)
{
    double jitter = step > 0 ? 1e-8 * scale : 0;
    for (int i = 1; i < step; i++)
        jitter *= 10;
    return jitter;
}

/* a = L L', and inv. The entries above the diagonal are overwritten. False if a is not positive
 * definite or not finite; a and inv are then undefined. */
bool gp_cholesky(double *a, size_t n, size_t ld, double *inv);

/* Append row i: l + i * ld holds row i of the covariance up to column i - 1 and becomes L_i; `own`
 * is its variance with noise. The remaining variance is at least `least` > 0. Updates row i of inv.
 * O(i^2).
 */
void gp_cholesky_append(double *l, size_t i, size_t ld, double *inv, double own, double least);

/* L becomes the lower triangle of (L L')^-1. The entries above the diagonal are overwritten. */
void gp_cholesky_invert(double *l, size_t n, size_t ld);

/* b <- L^-1 b and b <- L^-T b for each of the m rows of b (m x ldb). */
void gp_solve_lower(const double *l, size_t n, size_t ld, const double *inv, double *b, size_t m,
                    size_t ldb);
void gp_solve_upper(const double *l, size_t n, size_t ld, const double *inv, double *b, size_t m,
                    size_t ldb);

#endif
