/* Metrics of predictions, in double.
 *
 * AUC sorts the scores and then counts, for each set of equal scores, the negative rows below it:
 * O(n log n) instead of comparing all pairs. F1 needs three counts for each class.
 *
 * The log loss is computed from logits, not from probabilities: a probability that is rounded to 0
 * in float32 would make it infinite, while the logits still differ. Subtracting the largest logit
 * first keeps exp() from overflowing. */
#include "model/network/metrics.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"

/* ---- ranking ---- */

struct scored {
    float score;
    bool positive;
};

static int by_score(const void *a, const void *b)
{
    float x = ((const struct scored *)a)->score, y = ((const struct scored *)b)->score;
    return (x > y) - (x < y);
}

/* The number of pairs (positive, other) in the right order, ties counting half; rows are sorted. */
static double pairs_in_order(const struct scored *rows, size_t n)
{
    double pairs = 0, others_below = 0;
    for (size_t i = 0, end; i < n; i = end) {
        double positive = 0, others = 0;
        for (end = i; end < n && rows[end].score == rows[i].score; end++) {
            positive += rows[end].positive;
            others += !rows[end].positive;
        }
        pairs += positive * (others_below + others / 2);
        others_below += others;
    }
    return pairs;
}

as_status metric_auc(const float *scores, size_t stride, const int32_t *labels, int32_t positive,
                     size_t n, double *ret, struct as_err *err)
{
    AS_AUTO(as_freep) struct scored *rows = as_calloc(n, sizeof *rows);
    if (!rows)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu scores", n);
    double n_positive = 0;
    for (size_t i = 0; i < n; i++) {
        rows[i] = (struct scored){scores[i * stride], labels[i] == positive};
        if (isnan(rows[i].score)) {
            *ret = NAN;
            return AS_OK;
        }
        n_positive += rows[i].positive;
    }
    qsort(rows, n, sizeof *rows, by_score);
    double pairs = n_positive * ((double)n - n_positive);
    *ret = pairs > 0 ? pairs_in_order(rows, n) / pairs : NAN;
    return AS_OK;
}

as_status metric_auc_classes(const float *probs, size_t classes, const int32_t *labels, size_t n,
                             double *ret, struct as_err *err)
{
    double sum = 0, used = 0;
    if (classes == 2)
        return metric_auc(probs + 1, 2, labels, 1, n, ret, err);
    for (size_t c = 0; c < classes; c++) {
        double auc = NAN;
        as_status st = metric_auc(probs + c, classes, labels, (int32_t)c, n, &auc, err);
        if (st != AS_OK)
            return st;
        if (isnan(auc))
            continue;
        sum += auc;
        used++;
    }
    *ret = used > 0 ? sum / used : NAN;
    return AS_OK;
}

/* ---- classes ---- */

as_status metric_f1(const int32_t *predicted, const int32_t *labels, size_t n, size_t classes,
                    double *ret, struct as_err *err)
{
    /* for each class: number of rows predicted correctly, of rows predicted, of rows labelled */
    AS_AUTO(as_freep) size_t(*count)[3] = as_calloc(classes, sizeof *count);
    if (!count)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        /* a negative class becomes a huge index, which the comparisons reject */
        size_t p = (size_t)(int64_t)predicted[i], t = (size_t)(int64_t)labels[i];
        if (p < classes)
            count[p][1]++;
        if (t < classes)
            count[t][2]++;
        if (p == t && p < classes)
            count[p][0]++;
    }
    double sum = 0, used = 0;
    for (size_t c = classes == 2 ? 1 : 0; c < classes; c++) {
        double all = (double)(count[c][1] + count[c][2]); /* 2 tp + fp + fn */
        sum += all > 0 ? 2 * (double)count[c][0] / all : 0;
        used += all > 0 || classes == 2;
    }
    *ret = used > 0 ? sum / used : 0;
    return AS_OK;
}

static double row_log_loss(const float *logits, size_t label, size_t classes)
{
    if (classes == 1) { /* -log sigmoid(z) = log(1 + exp(-z)) */
        double z = label ? (double)logits[0] : -(double)logits[0];
        return (z < 0 ? -z : 0) + log1p(exp(-fabs(z)));
    }
    double top = -INFINITY, sum = 0;
    for (size_t c = 0; c < classes; c++)
        top = (double)logits[c] > top ? (double)logits[c] : top;
    for (size_t c = 0; c < classes; c++)
        sum += exp((double)logits[c] - top);
    return top + log(sum) - (double)logits[label];
}

double metric_log_loss(const float *logits, const int32_t *labels, size_t n, size_t classes)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += row_log_loss(logits + i * classes, (size_t)labels[i], classes);
    return sum / (double)n;
}

/* ---- numbers ---- */

static double r2_of(const float *want, size_t n, size_t stride, double squares)
{
    double mean = 0, spread = 0;
    for (size_t i = 0; i < n; i++)
        mean += (double)want[i * stride] / (double)n;
    for (size_t i = 0; i < n; i++)
        spread += ((double)want[i * stride] - mean) * ((double)want[i * stride] - mean);
    if (!isfinite(squares))
        return -squares;
    if (spread > 0)
        return 1 - squares / spread;
    return squares == 0 ? 1 : 0;
}

struct metric_errors metric_errors(const float *predicted, const float *want, size_t n,
                                   size_t outputs)
{
    struct metric_errors e = {0};
    for (size_t c = 0; c < outputs; c++) {
        double squares = 0, absolute = 0;
        for (size_t i = c; i < n * outputs; i += outputs) {
            double d = (double)predicted[i] - (double)want[i];
            squares += d * d;
            absolute += fabs(d);
        }
        e.mse += squares / (double)n / (double)outputs;
        e.rmse += sqrt(squares / (double)n) / (double)outputs;
        e.mae += absolute / (double)n / (double)outputs;
        e.r2 += r2_of(want + c, n, outputs, squares) / (double)outputs;
    }
    return e;
}
