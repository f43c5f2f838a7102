/* The hypervolume of a set of points: the volume that they dominate, up to a reference point.
 *
 * Exact, for 1 to 4 objectives. Two: a sum of strips. Three: a sweep along the third objective that
 * keeps the front of the first two as a list (C. Fonseca, L. Paquete, M. Lopez-Ibanez, "An improved
 * dimension-sweep algorithm for the hypervolume indicator", CEC 2006). Four: a sum of exclusive
 * contributions (L. While, L. Bradstreet, L. Barone, "A fast way of calculating exact
 * hypervolumes", IEEE TEC 16, 2012) whose limit sets are swept in three. */
#ifndef ASSAY_SEARCH_PARETO_HYPERVOLUME_H
#define ASSAY_SEARCH_PARETO_HYPERVOLUME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* The hypervolume of n points of m objectives, dominated ones and copies allowed.
 *   values      n x m, row-major; borrowed
 *   maximize    [m], each objective's goal; NULL: all are minimised
 *   reference   [m]; a point that is not strictly better in every objective adds nothing
 *   ret         not negative; 0 for n == 0; untouched on failure
 * AS_E_INVAL    m is not 1..4, or a value is not finite
 * AS_E_NOMEM
 * With f points on the front: O(n log n) for m <= 2, O(n log n + f^2) at worst for 3, O(f^3) at
 * worst for 4 (1,000 on the front: well below a second). */
AS_MUST_CHECK as_status gp_hypervolume(const double *values, size_t n, size_t m,
                                       const bool *maximize, const double *reference, double *ret,
                                       struct as_err *err);

#endif
