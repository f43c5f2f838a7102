/* Figures of predictions against what is true. Pure; in double whatever the inputs. Definitions are
 * those of scikit-learn's functions of the same names, and tests hold them to its values. */
#ifndef ASSAY_MODEL_NETWORK_METRICS_H
#define ASSAY_MODEL_NETWORK_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Area under the ROC curve of scores[i * stride] for rows whose label is `positive` against the
 * others: the share of (positive, other) pairs in the right order, equal scores counting one half
 * (Mann and Whitney 1947). NaN when one side has no row or a score is NaN. O(n log n). AS_E_NOMEM.
 */
AS_MUST_CHECK as_status metric_auc(const float *scores, size_t stride, const int32_t *labels,
                                   int32_t positive, size_t n, double *ret, struct as_err *err);

/* Of probabilities [n, classes]: two classes: metric_auc of class 1; more: the mean over the
 * classes, each against the rest (roc_auc_score(multi_class="ovr", average="macro")), over those
 * that have rows on both sides; NaN when there is none. */
AS_MUST_CHECK as_status metric_auc_classes(const float *probs, size_t classes,
                                           const int32_t *labels, size_t n, double *ret,
                                           struct as_err *err);

/* F1 = 2 tp / (2 tp + fp + fn), 0 when that is 0 / 0. Two classes: of class 1; more: the mean over
 * classes that occur among labels or predictions (f1_score(average="macro")). A prediction outside
 * [0, classes) counts as none of them. AS_E_NOMEM. */
AS_MUST_CHECK as_status metric_f1(const int32_t *predicted, const int32_t *labels, size_t n,
                                  size_t classes, double *ret, struct as_err *err);

/* Mean of -log softmax(logits)[label], logits [n, classes]; with classes == 1: of the sigmoid. Not
 * clipped, so infinite where the label's probability is 0 beyond double. */
double metric_log_loss(const float *logits, const int32_t *labels, size_t n, size_t classes);

/* Errors of numbers [n, outputs], in their unit; each the mean over the outputs (scikit-learn's
 * uniform average; so rmse is a mean of roots). */
struct metric_errors {
    double mse, rmse, mae;
    double r2; /* of a constant output 1 when exact, else 0; -Infinity or NaN when predictions are
                * not finite */
};

struct metric_errors metric_errors(const float *predicted, const float *want, size_t n,
                                   size_t outputs);

#endif
