/* Non-dominated sets, and the reference point of their hypervolume.
 *
 * Values are in the metrics' own units. `maximize` [m] gives each objective's goal; NULL: all are
 * minimised. A point dominates another when it is no worse in every objective and better in one;
 * so equal points do not dominate each other, and all copies of a good one are kept. */
#ifndef ASSAY_SEARCH_PARETO_PARETO_H
#define ASSAY_SEARCH_PARETO_PARETO_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

#define GP_PARETO_MAX_OBJECTIVES 4

/* Does a dominate b? Both are [m]. False where either has a NaN. */
bool gp_pareto_dominates(const double *a, const double *b, size_t m, const bool *maximize);

/* Find the non-dominated points among n points.
 *   values      n x m, row-major; borrowed
 *   ret_front   [n], caller's: filled with the indices of the non-dominated points, ascending
 *   ret_n       how many they are; 0 only for n == 0
 * AS_E_INVAL    m is not 1..GP_PARETO_MAX_OBJECTIVES, or a value is not finite (names its row)
 * AS_E_NOMEM
 * O(n log n) for m <= 2; else O(n (log n + front m)). This takes seconds only if tens of thousands
 * of points with three or more objectives are nearly all on the front. */
AS_MUST_CHECK as_status gp_pareto_front(const double *values, size_t n, size_t m,
                                        const bool *maximize, size_t *ret_front, size_t *ret_n,
                                        struct as_err *err);

/* The reference point of a front: in each objective the front's worst value, made worse by a tenth
 * of its range there. Where that range is 0 (a front of one point), by a tenth of the range of all
 * n values; where that is 0 too, by a tenth of the value's magnitude, at least 0.1. front and
 * n_front are as gp_pareto_front returned them, n_front > 0; borrowed. ret_reference is [m]. */
void gp_pareto_reference(const double *values, size_t n, size_t m, const bool *maximize,
                         const size_t *front, size_t n_front, double *ret_reference);

#endif
