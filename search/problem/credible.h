/* Which values of a metric are credible. A program that divides by zero, or writes the largest
 * number for "did not work", reports values that are far beyond all others. A sum, a mean or a
 * distance that includes one such value says nothing of the others. So a value that is not credible
 * counts as none: its trial counts as failed, and ranks behind all that completed. */
#ifndef ASSAY_SEARCH_PROBLEM_CREDIBLE_H
#define ASSAY_SEARCH_PROBLEM_CREDIBLE_H

#include <stddef.h>

#include "base/status.h"

#define CREDIBLE_FIRST 20   /* values: the design of a sweep, before it converges */
#define CREDIBLE_SHARE 0.25 /* of them are credible, even if every second value is absurd */
#define CREDIBLE_FACTOR 1e9 /* from one magnitude to the next */

/* The largest credible magnitude among n values, in the order of their trials. A value is credible
 * if |value| is at most this. Values that are not finite are ignored, and never credible.
 *   v          borrowed
 *   n_first    the scale comes from the first of them: CREDIBLE_FIRST, or n if the order says
 *              nothing
 *   ret_limit  INFINITY: all are credible
 * The magnitudes are credible from the smallest up to the first gap: the next one is more than
 * CREDIBLE_FACTOR times as large. No gap counts below the scale, which is the CREDIBLE_SHARE
 * quantile of the first magnitudes, or 1 if that is larger. So heavy tails, which leave no such
 * gap, and all values up to CREDIBLE_FACTOR are credible. O(n), and O(n log n) if a value is above
 * that. AS_E_NOMEM. */
AS_MUST_CHECK as_status credible_limit(const double *v, size_t n, size_t n_first, double *ret_limit,
                                       struct as_err *err);

#endif
