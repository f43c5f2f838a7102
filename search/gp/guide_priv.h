/* Shared by guide.c and guide_shift.c. */
#ifndef ASSAY_SEARCH_GP_GUIDE_PRIV_H
#define ASSAY_SEARCH_GP_GUIDE_PRIV_H

#include "search/gp/guide.h"

/* a'b of n values. */
double guide_dot(const double *a, const double *b, size_t n);

/* Set the shift of guide k from the costs of the rows (guide_shift.c). *ret_gain: the logarithm of
 * the evidence of the guide there, less that of no guide; 0 without a model. O(n^3) for the best
 * SHIFT_ROWS rows, some milliseconds. AS_E_NOMEM. */
AS_MUST_CHECK as_status guide_find_shift(struct guides *g, size_t k, const struct gp_columns *c,
                                         const struct gp_rows *rows, const double *costs,
                                         double *ret_gain, struct as_err *err);

#endif
