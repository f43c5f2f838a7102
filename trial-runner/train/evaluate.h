/* Metrics and predictions of members on the held-out rows. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_EVALUATE_H
#define ASSAY_TRIAL_RUNNER_TRAIN_EVALUATE_H

#include "model/network/metrics.h"
#include "trial-runner/train/lockstep.h"

/* The metrics of one member (model/network/metrics.h). Metrics of another task are NaN. If rows
 * have weights, so do all of these. Regression errors are in the targets' own unit. A member with
 * an average of weights is evaluated with that average. */
struct evaluation {
    double loss;            /* the training loss without label smoothing; see loss_unit() */
    double error, accuracy; /* classes: fractions of the rows (tokens) */
    double rmse, mae, r2;   /* regression: the mean over the outputs */
    double asked[TRAIN_MAX_EXTRA_METRICS]; /* those of spec.metrics, in their order */
};

/* All NaN: metrics are undefined if any prediction is not finite. */
void evaluation_clear(struct evaluation *e);

/* The value that reports have under a name: "val_loss", "val_error", …, or one of spec.metrics. NaN
 * if it is not among them. */
double evaluation_of(const struct evaluation *e, const struct train_spec *spec, const char *name);

/* Compute the metrics that are always reported and those that the member asks for, all but the
 * loss, from predictions of held-out rows. AS_E_NOMEM. */
AS_MUST_CHECK as_status evaluation_measure(const struct member *m, const struct metric_input *in,
                                           struct evaluation *ret, struct as_err *err);

/* Returns the factor from the loss as trained to the loss as reported. The mean squared error of
 * one target is reported in the target's own unit, squared. Other losses are reported as trained,
 * on standardised targets, and have factor 1. */
double loss_unit(const struct lockstep_setup *s);

/* Evaluate slots [first, first + n) together; ret[k] is for slot first + k. AS_E_NOMEM. */
AS_MUST_CHECK as_status evaluate_members(struct lockstep *ls, struct backend *lane, size_t first,
                                         size_t n, struct evaluation *ret, struct as_err *err);

/* The same for the only member of ls, whose ranks hold parts of the network: all of them call it
 * (strategy_ops.evaluate), and all get the same numbers. */
AS_MUST_CHECK as_status evaluate_together(struct lockstep *ls, struct backend *lane, struct coll *c,
                                          struct evaluation *ret, struct as_err *err);

/* Check that the held-out rows give every metric that the member reports a value. AS_E_INVAL: it
 * reports val_auc, and the held-out rows lack a class; the message names the class. AS_E_NOMEM. */
AS_MUST_CHECK as_status evaluate_check(const struct lockstep_setup *s, const struct member *m,
                                       struct as_err *err);

/* The columns of evaluate_predict: one for each class (two for bce over classes) or target. */
size_t evaluate_columns(const struct lockstep_setup *s);

/* Compute a member's predictions of the held-out rows, [n_val, evaluate_columns()]: probabilities,
 * or numbers in the targets' own unit. Not for text. Owned by the caller (free). AS_E_NOMEM. */
AS_MUST_CHECK as_status evaluate_predict(struct lockstep *ls, struct backend *lane, size_t slot,
                                         float **ret, struct as_err *err);

#endif
