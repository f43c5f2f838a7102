/* A subset of rows that represents many: the best, the newest, and a spread of the rest.
 *
 * The exact process costs n^3. Past some n a subset is as good near the optimum, where accuracy
 * matters, and farthest points cover the rest of the space (T. Gonzalez, "Clustering to minimize
 * the maximum intercluster distance", 1985). */
#ifndef ASSAY_SEARCH_REGRESSION_SUBSET_H
#define ASSAY_SEARCH_REGRESSION_SUBSET_H

#include <stddef.h>

#include "base/status.h"
#include "search/regression/covariance.h"

struct gp_subset_size {
    size_t best, newest, spread;
};

/* Choose from `rows`, which are in the order of their age.
 *   y      what is small is good; borrowed
 *   ret    room for best + newest + spread indices, ascending
 *   ret_n  how many were chosen: all rows if there are fewer Distances are Euclidean over the real
 *          columns; different categories count 1. Ties go to the
 * older row, so the answer is a function of the input. O(n (newest + best + spread) columns).
 * AS_E_NOMEM */
AS_MUST_CHECK as_status gp_subset(const struct gp_columns *c, const struct gp_rows *rows,
                                  const double *y, const struct gp_subset_size *size, size_t *ret,
                                  size_t *ret_n, struct as_err *err);

#endif
