/* Losses and metrics from predictions: of a model of trees, and of several models together. The
 * definitions are those of networks (evaluate.h); a probability below FLT_EPSILON counts as
 * that, because a forest may say 0. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_TREE_METRICS_H
#define ASSAY_TRIAL_RUNNER_TRAIN_TREE_METRICS_H

#include "trial-runner/train/evaluate.h"

/* The weights of rows in the loss, from class_weights; *ret is NULL if all are 1, else [n], owned
 * by the caller.
 *   rows  row numbers [n] of the data set */
AS_MUST_CHECK as_status tree_row_weights(const struct lockstep_setup *s, const struct member *m,
                                         const int32_t *rows, size_t n, float **ret,
                                         struct as_err *err);

/* The mean loss over rows, as it is reported: of one standardised target with mse in its own unit,
 * squared.
 *   values  [n, evaluate_columns()]: probabilities, or standardised numbers
 *   rows    row numbers [n] of the data set
 *   weights [n] or NULL */
double tree_loss(const struct lockstep_setup *s, const struct member *m, const float *values,
                 const int32_t *rows, size_t n, const float *weights);

/* The same of values in the targets' own unit, which are left as they are. AS_E_NOMEM. */
AS_MUST_CHECK as_status tree_loss_own(const struct lockstep_setup *s, const struct member *m,
                                      const float *values, const int32_t *rows, size_t n,
                                      const float *weights, double *ret, struct as_err *err);

/* The metrics of the held-out rows; those of other tasks, and those not asked for, are NaN.
 *   values  [n_val, evaluate_columns()], as above; of numbers they are in the targets' own unit
 *           afterwards
 *   weights as of tree_loss
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status tree_evaluate(const struct lockstep_setup *s, const struct member *m,
                                      float *values, const float *weights, struct evaluation *ret,
                                      struct as_err *err);

/* The same of values in the targets' own unit. */
AS_MUST_CHECK as_status tree_evaluate_own(const struct lockstep_setup *s, const struct member *m,
                                          const float *values, const float *weights,
                                          struct evaluation *ret, struct as_err *err);

#endif
