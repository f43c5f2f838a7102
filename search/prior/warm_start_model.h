/* A model of an earlier sweep: the value that it would have measured at a point.
 *
 * The values of the snapshot are fitted by a Gaussian process over the features of the sweep that
 * uses it. Its mean, mapped back to the unit of the earlier sweep, is the prediction. Values that
 * are half-rank warped (warp.h) before the fit predict the good ones finely; values that are only
 * standardised keep their distances everywhere, which a shift needs. Parameters that no trial of
 * the snapshot has are left out: the prediction does not depend on them. A pure function of the
 * snapshot and the space. */
#ifndef ASSAY_SEARCH_PRIOR_WARM_START_MODEL_H
#define ASSAY_SEARCH_PRIOR_WARM_START_MODEL_H

#include <stddef.h>

#include "search/prior/warm_start.h"
#include "search/regression/covariance.h"

#define WARM_START_MODEL_LEAST 5 /* trials of a snapshot, for a model */

typedef enum warm_start_values { WARM_START_WARPED, WARM_START_STANDARDISED } warm_start_values;

struct warm_start_model;

/* Fit a model to sweep k. e and columns are those of the sweep that uses it, and are copied as far
 * as they are needed. *ret stays NULL where there is nothing to fit: too few trials, values that
 * are equal or overflow, or a covariance that cannot be factored. O(n^3) for n <= WARM_START_TRIALS
 * trials, some milliseconds. AS_E_NOMEM. Owned by the caller. */
AS_MUST_CHECK as_status warm_start_model_create(const struct warm_start *w, size_t k,
                                                warm_start_values values, const struct encoding *e,
                                                const struct gp_columns *c,
                                                struct warm_start_model **ret, struct as_err *err);
void warm_start_model_free(struct warm_start_model *m);
AS_DEFINE_FREEP(struct warm_start_model, warm_start_model_free)
size_t warm_start_model_bytes(const struct warm_start_model *m);

/* Make room for batches of up to `batch` points. AS_E_NOMEM. */
AS_MUST_CHECK as_status warm_start_model_reserve(struct warm_start_model *m, size_t batch,
                                                 struct as_err *err);

/* The costs at p->n points, in the unit of the earlier sweep.
 *   p          features; p->n <= the reserved batch
 *   ret_slope  NULL, or [p->n x n_real]: the gradients by the real columns
 * Allocates nothing. One thread at a time. */
void warm_start_model_predict(struct warm_start_model *m, const struct gp_rows *p, double *ret,
                              double *ret_slope);

/* The same, of standardised values alone, with the covariance of the errors of p->n predictions:
 * ret_cov, [p->n x p->n], in the square of the unit. */
void warm_start_model_joint(struct warm_start_model *m, const struct gp_rows *p, double *ret,
                            double *ret_cov);

#endif
