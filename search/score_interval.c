#include "search/score_interval.h"

#include <math.h>
#include <string.h>

#define RANKED_ROWS 8 /* of the rarest class, by which AUC is bounded: see score_evidence() */

double score_half_width(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double d = b ? a[i] - b[i] : a[i];
        sum += d * d;
    }
    return SCORE_INTERVAL_QUANTILE * sqrt(sum) / (double)n;
}

/* ---- how many rows a metric is worth ---- */

/* Rows of a class, or of all with SIZE_MAX, as their weights count them. */
static double rows_of(const struct score_truth *t, size_t class)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < t->rows; i++) {
        double w = score_weight(t, i);
        if (class != SIZE_MAX && t->classes[i] != (int64_t) class)
            continue;
        sum += w;
        squares += w * w;
    }
    return squares > 0 ? sum * sum / squares : 0;
}

double score_evidence(score_metric m, const struct score_truth *t)
{
    bool of_rows = m == SCORE_ERROR || m == SCORE_ACCURACY || m == SCORE_TOP5;
    bool of_ranks = m == SCORE_AUC || m == SCORE_AVERAGE_PRECISION;
    if (!of_rows && !of_ranks && m != SCORE_F1 && m != SCORE_BALANCED_ACCURACY)
        return 0;
    double all = rows_of(t, SIZE_MAX);
    if (of_rows || t->outputs > 2)
        return all;
    double first = rows_of(t, 0), second = rows_of(t, 1), rare = fmin(first, second);
    if (rare <= 0)
        return all;
    if (of_ranks)
        return RANKED_ROWS * rare;
    return m == SCORE_F1 ? 2 * rare : 4 / (1 / first + 1 / second);
}

/* ---- the interval ---- */

void score_interval(score_metric m, double value, double half, double evidence, double *ret_low,
                    double *ret_high)
{
    double least = m == SCORE_R2 ? -INFINITY : 0, greatest = m == SCORE_R2 ? 1 : INFINITY;
    double low = value - half, high = value + half;
    if (evidence > 0 && !isnan(low)) {
        double z = SCORE_INTERVAL_QUANTILE, v = fmin(fmax(value, 0), 1), spread = v * (1 - v);
        double q = fmax(z * z / evidence, spread > 0 ? half * half / spread : 0);
        double reach = sqrt(q * spread + q * q / 4);
        low = fmin(v, (v + q / 2 - reach) / (1 + q)); /* v where rounding would leave it out */
        high = fmax(v, (v + q / 2 + reach) / (1 + q));
        greatest = 1;
    }
    *ret_low = low < least ? least : low;
    *ret_high = high > greatest ? greatest : high;
}
