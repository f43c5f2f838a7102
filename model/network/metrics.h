/* Metrics of predictions against true values. Pure; computed in double for all inputs. The
 * definitions are those of scikit-learn's functions, with sample_weight where there are weights;
 * tests compare the values. search/score.h computes the same metrics of ensembles, with the share
 * that each row has in them; tests/model/network/test_score.c holds the two equal. */
#ifndef ASSAY_MODEL_NETWORK_METRICS_H
#define ASSAY_MODEL_NETWORK_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Predictions and what is true, borrowed. For classes: labels and probabilities; for numbers:
 * targets and numbers in their own unit. */
struct metric_input {
    size_t n, outputs;      /* rows; classes (two or more), or targets */
    const int32_t *labels;  /* [n], each in [0, outputs); NULL: numbers */
    const float *targets;   /* [n, outputs] of numbers */
    const float *predicted; /* [n, outputs]; may be NULL for metrics that need classes alone */
    const int32_t *predicted_class; /* [n]; NULL: the first of the largest outputs of each row. One
                                     * outside [0, outputs) is of no class */
    const float *weights;           /* [n], >= 0, their sum above 0; NULL: 1 each */
};

/* Compute a metric by the name that reports have.
 *
 *   val_error, val_accuracy  the share of rows whose class is predicted wrongly, rightly
 *   val_top5                 the share of rows whose class is among the five with the largest
 *                            probabilities; equal ones count if their class is lower
 *   val_balanced_accuracy    the mean over the classes that have rows of the share of their rows
 *                            that is predicted rightly (balanced_accuracy_score)
 *   val_f1                   two classes: of class 1, 0 if that is 0 / 0; more: the mean over the
 *                            classes that occur among labels or predictions
 *                            (f1_score(average="macro"))
 *   val_auc                  two classes: the area under the ROC curve of class 1; NaN if one class
 *                            has no row. More: the mean over the classes that have rows on both
 *                            sides, each against the rest (multi_class="ovr"); NaN without any
 *   val_average_precision    the sum over the distinct scores of (recall gained) x (precision):
 *                            average_precision_score. Two classes: of class 1, 0 if it has no row;
 *                            more: the mean over the classes that have rows, each against the rest
 *   val_brier                two classes: the mean of (p1 - y)^2; more: the mean of the sum over
 *                            the classes of (p - y)^2 (brier_score_loss)
 *   val_log_loss             the mean of -log p(label), p at least 2^-23 (log_loss of float32); see
 *                            metric_log_loss()
 *   val_rmse, val_mae, val_r2, val_mape, val_pinball_Q
 *                            the mean over the targets of each one's value, so rmse is a mean of
 *                            roots. A constant target has r2 1 if predicted exactly, else 0. mape
 *                            is the mean of |p - y| / max(|y|, 2^-52), a share and not per cent.
 *                            Q in 1..99: mean_pinball_loss(alpha=Q/100)
 *
 * NaN if a prediction that is needed is NaN. AS_E_INVAL: no such metric of classes (of numbers).
 * AS_E_NOMEM. O(n log n) for auc and average precision, for each class; else O(n outputs). */
AS_MUST_CHECK as_status metric_compute(const char *name, const struct metric_input *in, double *ret,
                                       struct as_err *err);

/* The mean of -log softmax(logits)[label], logits [n, classes]; with classes == 1, of the sigmoid.
 * It is not clipped: it is infinite if the probability of a label is too small for a double.
 *   weights  [n] or NULL */
double metric_log_loss(const float *logits, const int32_t *labels, const float *weights, size_t n,
                       size_t classes);

/* The squared error of numbers: the mean over rows and outputs. */
double metric_mse(const struct metric_input *in);

#endif
