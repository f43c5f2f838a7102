/* The category columns of rows: what they add to squared distances, and the sums that the gradients
 * by their lengthscales need. The distance t of two categories is 0 if they are equal, 1/2 if
 * exactly one of them is inactive (below 0), 1 otherwise (covariance.h). */
#ifndef ASSAY_SEARCH_REGRESSION_CATEGORY_H
#define ASSAY_SEARCH_REGRESSION_CATEGORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Categories of rows, column after column, as doubles: a comparison of vectors then has as many
 * entries as a sum. Borrowed. */
struct gp_categories {
    const double *z; /* n_cat x stride */
    size_t n_cat, stride;
    bool has_inactive; /* false promises that no category of these rows is inactive */
};

/* Is one of these n categories inactive? */
bool gp_category_any_inactive(const int32_t *z, size_t n);

/* r2[j] += weight_c t(own_c, z_cj) for each row j < n and column c, in the order of the columns.
 *   own, weight  n_cat values each */
void gp_category_add(const struct gp_categories *rows, const int32_t *own, const double *weight,
                     size_t n, double *r2);

/* ret[c] = sum over the entries j < i of rows i < n of g_ij t_ij in column c.
 *   g  n x ld; of each row, the entries from the diagonal to the next multiple of 4 are 0
 *   stride of the columns and ld: multiples of 4 */
void gp_category_sums(const struct gp_categories *rows, size_t n, const double *g, size_t ld,
                      double *ret);

#endif
