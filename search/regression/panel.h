/* Triangular solves and products of small matrices in registers. OpenBLAS 0.3.21 uses the kernels
 * of Haswell on processors that it does not know, at half of what AVX-512 does, and below a hundred
 * rows its calls cost more than the numbers.
 *
 * All matrices are row-major with rows on 64-byte boundaries (buf.h). A panel has right-hand sides
 * as columns; where a width is not a multiple of 8, the columns up to the next multiple are
 * computed too, so they must be finite. The bits of an entry depend on its row, its column and the
 * processor, not on what is computed beside it. Nothing is allocated. */
#ifndef ASSAY_SEARCH_REGRESSION_PANEL_H
#define ASSAY_SEARCH_REGRESSION_PANEL_H

#include <stddef.h>

#define GP_PANEL 32 /* right-hand sides that are solved together */

/* x (n x width, rows ldx apart) <- L^-1 x, for a lower triangle L. */
void gp_panel_solve(const double *l, size_t n, size_t ld, double *x, size_t width, size_t ldx);

/* c (width x width, lower triangle) -= x' x for x of n rows. Entries of c above the diagonal
 * become undefined in the columns up to the next multiple of 16. */
void gp_panel_subtract_square(const double *x, size_t n, size_t width, size_t ldx, double *c,
                              size_t ldc);

/* L <- L^-1, in place; the entries above the diagonal become 0 up to the next multiple of 16 or the
 * end of the row. */
void gp_panel_invert(double *l, size_t n, size_t ld);

/* m <- m' m, lower triangle, of a matrix that gp_panel_invert left. The entries above the diagonal
 * become undefined. */
void gp_panel_square(double *m, size_t n, size_t ld);

/* ret[i] = |L^-1 b_i|^2 for each of the m rows b_i of b (m x ldb). L is as gp_cholesky leaves it.
 *   panel  n x GP_PANEL doubles of scratch; the caller's memory */
void gp_lower_squares(const double *l, size_t n, size_t ld, const double *b, size_t m, size_t ldb,
                      double *panel, double *ret);

#endif
