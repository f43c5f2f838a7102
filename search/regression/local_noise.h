/* Noise that differs from place to place.
 *
 * One variance of the noise for all rows believes a lucky value at a noisy place too much, and its
 * exact neighbours at a quiet one too little. So each row may have a factor of its own
 * (gp_rows.v), which comes from how far the values around it lie from what the others predict, as
 * in K. Kersting et al., "Most likely heteroscedastic Gaussian process regression", ICML 2007: the
 * squared leave-one-out residuals over their variances, averaged over the nearest rows, change the
 * factors; the hyperparameters are fitted under them, and both take turns. The first residuals are
 * of a model with little noise: one that was fitted has explained all as noise already. The factors
 * count only where the fit under them explains the values clearly better than one variance does. */
#ifndef ASSAY_SEARCH_REGRESSION_LOCAL_NOISE_H
#define ASSAY_SEARCH_REGRESSION_LOCAL_NOISE_H

#include <stddef.h>

#include "base/status.h"
#include "search/regression/fit.h"

/* From so many rows on. */
#define LOCAL_NOISE_ROWS 12

/* Fit hyperparameters and factors to rows->n values.
 *   rows       its v is ignored; borrowed
 *   ret_theta  gp_n_theta(c)
 *   ret_v      rows->n factors; all 1: one variance explains the values as well
 * Errors as those of gp_fit(). A first fit, and if it finds noise, four more. */
AS_MUST_CHECK as_status local_noise_fit(const struct gp_columns *c, const struct gp_rows *rows,
                                        const double *y, struct gp_fit_work *w, double *ret_theta,
                                        double *ret_v, struct as_err *err);

#endif
