/* Squared differences of real columns, without a matrix product: at a hundred rows the calls of
 * OpenBLAS cost more than the numbers. Columns are one after the other, d x stride. */
#ifndef ASSAY_SEARCH_REGRESSION_SQUARE_H
#define ASSAY_SEARCH_REGRESSION_SQUARE_H

#include <stddef.h>

/* Real columns of n rows, borrowed. */
struct gp_real_columns {
    const double *x; /* d x stride: column q of row j at x[q * stride + j] */
    size_t d, stride;
};

/* ret[i * ld + j] = sum_q (x_qi - x_qj)^2 for j <= i < n; other entries stay unchanged. */
void gp_square_gram(const struct gp_real_columns *c, size_t n, double *ret, size_t ld);

/* ret[q] = sum over the entries j < i of rows i < n of g_ij (x_qi - x_qj)^2.
 *   g  n x ld; of each row, the entries from the diagonal to the next multiple of 4 are 0
 *   stride of the columns and ld: multiples of 4 */
void gp_square_sums(const struct gp_real_columns *c, size_t n, const double *g, size_t ld,
                    double *ret);

#endif
