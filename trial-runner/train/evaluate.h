/* How good members are on the rows held out. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_EVALUATE_H
#define ASSAY_TRIAL_RUNNER_TRAIN_EVALUATE_H

#include "trial-runner/train/lockstep.h"

/* Figures of one member. Those of the other task, and those that it did not ask for, are NaN.
 * Errors of regression are in the targets' own unit. With an average of weights they are of that.
 */
struct evaluation {
    double loss;            /* the loss trained with, without label smoothing; see loss_unit() */
    double error, accuracy; /* classes: shares of the rows (tokens) */
    double top5, auc, f1, log_loss; /* asked for */
    double rmse, mae, r2;           /* regression; of several outputs: the mean over them */
};

/* What a loss is multiplied with before it is reported: mean squared error of one output is
 * reported in its own unit, squared; everything else as it is trained with (of standardised
 * targets). */
double loss_unit(const struct lockstep_setup *s);

/* ret[k] of slot first + k, for slots [first, first + n): all in the same passes. AS_E_NOMEM. */
AS_MUST_CHECK as_status evaluate_members(struct lockstep *ls, struct backend *lane, size_t first,
                                         size_t n, struct evaluation *ret, struct as_err *err);

/* Columns of evaluate_predict: classes (two for bce over classes), or targets. */
size_t evaluate_columns(const struct lockstep_setup *s);

/* A member's predictions of the rows held out, [n_val, evaluate_columns()]: probabilities, or
 * numbers in the targets' own unit. Not for text. Owned by the caller (free). AS_E_NOMEM. */
AS_MUST_CHECK as_status evaluate_predict(struct lockstep *ls, struct backend *lane, size_t slot,
                                         float **ret, struct as_err *err);

#endif
