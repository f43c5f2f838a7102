/* Metrics of predictions against true values. Pure; computed in double for all inputs. The
 * definitions are those of scikit-learn's functions of the same names; tests compare the values. */
#ifndef ASSAY_MODEL_NETWORK_METRICS_H
#define ASSAY_MODEL_NETWORK_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* The area under the ROC curve of scores[i * stride], for rows whose label is `positive` against
 * the other rows: the share of (positive, other) pairs in the right order, where a pair with equal
 * scores counts one half (Mann and Whitney 1947). NaN if one side has no row or a score is NaN.
 * O(n log n). AS_E_NOMEM. */
AS_MUST_CHECK as_status metric_auc(const float *scores, size_t stride, const int32_t *labels,
                                   int32_t positive, size_t n, double *ret, struct as_err *err);

/* The AUC of probabilities [n, classes]. With two classes it is metric_auc of class 1. With more,
 * it is the mean over the classes that have rows on both sides, each against the rest
 * (roc_auc_score(multi_class="ovr", average="macro")); NaN if there is no such class. */
AS_MUST_CHECK as_status metric_auc_classes(const float *probs, size_t classes,
                                           const int32_t *labels, size_t n, double *ret,
                                           struct as_err *err);

/* F1 = 2 tp / (2 tp + fp + fn), or 0 if that is 0 / 0. With two classes it is that of class 1. With
 * more, it is the mean over the classes that occur among labels or predictions
 * (f1_score(average="macro")). A prediction outside [0, classes) is of no class. AS_E_NOMEM. */
AS_MUST_CHECK as_status metric_f1(const int32_t *predicted, const int32_t *labels, size_t n,
                                  size_t classes, double *ret, struct as_err *err);

/* The mean of -log softmax(logits)[label], logits [n, classes]; with classes == 1, of the sigmoid.
 * It is not clipped: it is infinite if the probability of a label is too small for a double. */
double metric_log_loss(const float *logits, const int32_t *labels, size_t n, size_t classes);

/* Errors of numbers [n, outputs] in their own unit. Each is the mean over the outputs
 * (scikit-learn's uniform average), so rmse is a mean of roots. */
struct metric_errors {
    double mse, rmse, mae;
    double r2; /* a constant output counts 1 if predicted exactly, else 0; -Infinity or NaN if
                * predictions are not finite */
};

struct metric_errors metric_errors(const float *predicted, const float *want, size_t n,
                                   size_t outputs);

#endif
