/* The targets of a regression between their own unit and the one that a model is trained on.
 *
 *   none      y
 *   log       ln y, for targets above 0
 *   log1p     ln(1 + y), for targets above -1
 *   quantile  the normal score of y: its rank among the training targets, from 0 to 1 (between two
 *             of them by a straight line, outside of them as the nearest one, equal targets by
 *             their mean rank, the smallest 0 and the largest 1), through the inverse of the
 *             standard normal distribution. As QuantileTransformer(output_distribution="normal") of
 *             scikit-learn, with the same limits: at most 1,000 quantiles, ranks from 1e-7 to 1 -
 *             1e-7
 *
 * The result is standardised with the mean and the deviation of the transformed training targets.
 * Each step is undone for predictions, so that metrics and predictions are in the targets' own
 * unit. */
#ifndef ASSAY_DATA_PREPROCESS_TARGET_UNIT_H
#define ASSAY_DATA_PREPROCESS_TARGET_UNIT_H

#include <stddef.h>

#include "data/preprocess/preprocess.h"
#include "base/status.h"

#define TARGET_MAX_QUANTILES ((size_t)1000)
#define TARGET_MAX_ALL_QUANTILES ((size_t)65536) /* of all targets */

/* Learn the quantiles (if the transformation has them), mean and scale from the training rows.
 * p->n_targets, target_mean and target_scale are there. AS_E_INVAL: a target of any row that the
 * transformation does not take; AS_E_NOMEM. */
AS_MUST_CHECK as_status target_unit_fit(const struct dataset *set,
                                        const struct preprocess_rows *rows, struct preprocess *p,
                                        struct as_err *err);

/* Target t of a row, from its own unit to that of the model and back. Results are finite if the
 * argument is. */
double target_unit_forward(const struct preprocess *p, size_t t, double y);
double target_unit_back(const struct preprocess *p, size_t t, double z);

#endif
