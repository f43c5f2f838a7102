/* Output transforms: the values that a Gaussian process is fitted to instead of the observed ones.
 *
 * Small is good here: callers negate a metric that is to be maximised. A value that is not finite
 * (a failed or diverged trial) is allowed, and becomes bad but finite.
 *   WARP_HALF_RANK  values better than the median are kept, worse ones get normal scores of their
 *                   rank; then a logarithm that spreads the good end. Failures lie half a range
 *                   below the worst. After Google Vizier's output warpers (X. Song et al., "The
 *                   Vizier Gaussian process bandit algorithm", arXiv 2408.11527)
 *   WARP_PLAIN      values above median + 5 (median - first quartile) are cut to there; failures
 *                   get the worst remaining value. The result has mean 0 and deviation 1 (all 0 if
 *                   all values are equal). Exact under multiplication of y by powers of two, and
 *                   safe for all finite values
 *   WARP_PLAIN_WIDE the same, but with 40 values or more the cut is not below q + 20 (q - best),
 *                   where q is the first quartile of the first 20 values */
#ifndef ASSAY_SEARCH_REGRESSION_WARP_H
#define ASSAY_SEARCH_REGRESSION_WARP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "base/status.h"

typedef enum gp_warp_kind { WARP_HALF_RANK, WARP_PLAIN, WARP_PLAIN_WIDE } gp_warp_kind;

/* Shift and scale n >= 1 values to mean 0 and deviation 1, in place. False, and v is untouched:
 * they are equal, or their squares overflow. */
bool gp_standardise(double *v, size_t n, double *ret_mean, double *ret_deviation);

struct gp_warp;

/* Learn the transform of n values, in the order of their trials, and apply it. y is borrowed. n = 0
 * is allowed. O(n log n). AS_E_NOMEM. */
AS_MUST_CHECK as_status gp_warp_create(gp_warp_kind kind, const double *y, size_t n,
                                       struct gp_warp **ret, struct as_err *err);
void gp_warp_free(struct gp_warp *w);
AS_DEFINE_FREEP(struct gp_warp, gp_warp_free)

/* The n transformed values, in the order of y, all finite. View of w. */
const double *gp_warp_values(const struct gp_warp *w);

/* Convert any finite value (a threshold, an incumbent) to its transformed place, and back. Both
 * maps are non-decreasing. The plain kinds are affine here and do not cut; WARP_HALF_RANK is linear
 * between neighbouring observations and continues with the outermost slope outside them. The way
 * back is for display: it is the inverse up to rounding, except where several values share a place.
 * With one distinct finite value both are constant; with none both are 0. */
double gp_warp_forward(const struct gp_warp *w, double y);
double gp_warp_inverse(const struct gp_warp *w, double v);

/* The slope of gp_warp_forward at y; at an observation, of the segment above it. */
double gp_warp_forward_slope(const struct gp_warp *w, double y);

/* The slope of gp_warp_inverse at v: turns a small deviation into the metric's own unit. */
double gp_warp_inverse_slope(const struct gp_warp *w, double v);

#endif
