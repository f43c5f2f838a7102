/* The interval in which a metric lies, from its value on some rows and the influences of these rows
 * (score.h).
 *
 * value ± half is too narrow near the end of a metric's range, and has no width where every row is
 * right. A share (error, accuracy, AUC, F1, …) has the interval of E. B. Wilson, "Probable
 * Inference, the Law of Succession, and Statistical Inference", JASA 22 (1927), for the number of
 * rows whose share would vary as much (the effective sample size; E. L. Korn, B. I. Graubard,
 * "Confidence Intervals for Proportions With Small Expected Number of Positive Counts", Survey
 * Methodology 24 (1998)). That number has a bound, score_evidence(), because influences say nothing
 * where all rows agree. docs/decisions/9024 has how often such intervals cover. */
#ifndef ASSAY_SEARCH_SCORE_INTERVAL_H
#define ASSAY_SEARCH_SCORE_INTERVAL_H

#include "search/score.h"

#define SCORE_INTERVAL 0.9             /* the intervals' probability */
#define SCORE_INTERVAL_QUANTILE 1.6449 /* of the normal distribution, for it */

/* Half of the width of a normal interval: of the metric with influences a, or with b != NULL of the
 * difference of two metrics on the same rows.
 *   a, b  [n] influences; n >= 1 */
double score_half_width(const double *a, const double *b, size_t n);

/* How many rows of which a share is right the metric is worth, at most: of error and accuracy the
 * rows; of two classes of F1 twice those of the rare class, of balanced accuracy 4 / (1 / rows of
 * one + 1 / rows of the other), of AUC and average precision eight times those of the rare class
 * (decision 9024); of more classes the rows. Rows that have weights count (sum w)^2 / sum(w^2).
 * 0: the metric is no share. O(rows). */
double score_evidence(score_metric m, const struct score_truth *t);

/* The interval of a value: within the values that the metric can have.
 *   half      score_half_width() of its influences
 *   evidence  score_evidence(), 0 for none
 * NaN where value or half is. */
void score_interval(score_metric m, double value, double half, double evidence, double *ret_low,
                    double *ret_high);

#endif
