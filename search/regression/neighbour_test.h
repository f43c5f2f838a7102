/* Do marked trials lie together, or anywhere? */
#ifndef ASSAY_SEARCH_REGRESSION_NEIGHBOUR_TEST_H
#define ASSAY_SEARCH_REGRESSION_NEIGHBOUR_TEST_H

#include <stdbool.h>
#include <stddef.h>

#include "search/regression/covariance.h"

#define SCATTER_ROWS 128       /* the last of them count */
#define SCATTER_DEVIATIONS 1.0 /* of what chance does */

/* Is the nearest neighbour of a row marked as the row is, more often than chance would do it? Under
 * chance all orders of the marks are equally likely, so the number of agreements has a known mean
 * and about the deviation of a binomial one, half as large again in variance, because most nearest
 * neighbours are mutual (after M. Schilling, "Multivariate two-sample tests based on nearest
 * neighbors", JASA 81, 1986). True in one of eight cases where the marks mean nothing, because
 * that costs less than to miss a region. O(n^2 d) for n <= SCATTER_ROWS. */
bool scatter_is_local(const struct gp_columns *c, const struct gp_rows *rows, const bool *marked);

#define SCATTER_AMID 4.0 /* of a squared distance */

/* Do marked rows have rows without a mark as near as those have each other? That is so where marks
 * come by chance, wherever the rows crowd; not where they lie apart from all others, even if they
 * are too few to be neighbours of each other. The median of their squared distances to the nearest
 * row without a mark is at most SCATTER_AMID times that of the rows without a mark. False where
 * nothing or everything is marked. Looks at the last SCATTER_ROWS rows; O(n^2 d). */
bool scatter_is_amid(const struct gp_columns *c, const struct gp_rows *rows, const bool *marked);

#endif
