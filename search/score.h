/* Metrics of predictions on any set of rows: the value, and what each row contributes to it.
 *
 * The definitions are those of the trainer (model/network/metrics.h) and of scikit-learn, with
 * sample_weight where rows have weights. The
 * contribution of a row is its empirical influence, the first-order change of the metric as the row
 * gets more weight. The influences of all rows sum to 0, and sum(influence^2) / n^2 estimates the
 * variance of the metric (the infinitesimal jackknife: B. Efron, "The Jackknife, the Bootstrap and
 * Other Resampling Plans", SIAM 1982, chapter 6). For the AUC that is the estimate of E. DeLong,
 * D. DeLong, D. Clarke-Pearson, Biometrics 44 (1988); for an error rate it is McNemar's when the
 * influences of two models are subtracted. */
#ifndef ASSAY_SEARCH_SCORE_H
#define ASSAY_SEARCH_SCORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef enum score_metric {
    SCORE_ERROR,    /* classes: share of rows whose largest output is not the target */
    SCORE_LOG_LOSS, /* classes: mean -ln p(target), p clipped to [1e-7, 1] */
    SCORE_ACCURACY, /* classes: 1 - error */
    SCORE_TOP5,     /* classes: share of rows whose target is among the five largest outputs */
    SCORE_AUC,  /* two classes: of class 1; more: the mean over classes, each against the rest */
    SCORE_F1,   /* two classes: of class 1; more: the mean over the classes that occur */
    SCORE_MSE,  /* numbers: the mean over rows and outputs of the squared error */
    SCORE_RMSE, /* numbers: the mean over the outputs of the root of their squared error */
    SCORE_MAE,  /* numbers: mean absolute error */
    SCORE_R2,   /* numbers: the mean over the outputs of 1 - squared error / variance */
    SCORE_BALANCED_ACCURACY, /* classes: the mean over the classes that have rows of the share of
                              * their rows whose largest output is the target */
    SCORE_AVERAGE_PRECISION, /* two classes: of class 1; more: the mean over the classes that have
                              * rows, each against the rest */
    SCORE_BRIER, /* two classes: mean (p1 - y)^2; more: mean over rows of the sum of (p - y)^2 */
    SCORE_MAPE   /* numbers: the mean of |p - y| / max(|y|, 2^-52) */
} score_metric;
#define SCORE_METRICS 14

/* Beyond these: numbers: the pinball loss at the quantile of Q per cent, 1 <= Q <= 99. */
#define SCORE_PINBALL(q) ((score_metric)(SCORE_METRICS + (q)))
#define SCORE_PINBALL_MAX 99

/* "error", "log_loss", "accuracy", "top5", "auc", "f1", "mse", "rmse", "mae", "r2",
 * "balanced_accuracy", "average_precision", "brier", "mape", "pinball_1" … Never NULL. */
const char *score_format(score_metric m);
bool score_is_of_classes(score_metric m);
bool score_is_maximized(score_metric m);

/* What is true of all rows; borrowed. */
struct score_truth {
    size_t rows, outputs;
    const int64_t *classes; /* [rows], 0 <= class < outputs; NULL for numbers */
    const float *targets;   /* [rows, outputs]; NULL for classes */
    const float *weights;   /* [rows], finite and 0 or more; NULL: all alike */
};

/* The weight of a row; 1 if all are alike. */
double score_weight(const struct score_truth *t, size_t row);

/* Compute a metric over n of the rows.
 *   rows      [n] row numbers, or NULL for the first n
 *   p         [n, outputs]: the predictions times `members`, finite
 *   ret       the value; NaN if it has none (AUC without two classes; no row has weight)
 *   ret_influence  [n] or NULL; all 0 if the value is NaN
 * n >= 1. AS_E_NOMEM. O(n outputs), with AUC O(n outputs) too (radix sort in float32). */
AS_MUST_CHECK as_status score_compute(score_metric m, const struct score_truth *truth,
                                      const size_t *rows, size_t n, const double *p, double members,
                                      double *ret, double *ret_influence, struct as_err *err);

#endif
