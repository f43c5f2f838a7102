/* Metrics of predictions, in double.
 *
 * AUC and average precision sort the scores of a class and go through the sets of equal scores:
 * O(n log n) instead of comparing all pairs. F1 and balanced accuracy need three sums for each
 * class.
 *
 * The trainer computes the log loss from logits, not from probabilities: a probability that is
 * rounded to 0 in float32 would make it infinite, while the logits still differ. Subtracting the
 * largest logit first keeps exp() from overflowing. */
#include "model/network/metrics.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define PINBALL "val_pinball_"

static double weight_of(const float *weights, size_t i)
{
    return weights ? (double)weights[i] : 1;
}

static double weight_sum(const struct metric_input *in)
{
    double sum = 0;
    for (size_t i = 0; in->weights && i < in->n; i++)
        sum += (double)in->weights[i];
    return in->weights ? sum : (double)in->n;
}

/* ---- ranking: metrics of one class against the rest ---- */

struct scored {
    float score;
    bool positive;
    double weight;
};

static int by_score(const void *a, const void *b)
{
    float x = ((const struct scored *)a)->score, y = ((const struct scored *)b)->score;
    return (x > y) - (x < y);
}

/* The weights of a set of rows with equal scores, which ends before `end`. */
struct ties {
    size_t end;
    double positive, others;
};

static struct ties ties_from(const struct scored *rows, size_t n, size_t i)
{
    struct ties t = {.end = i};
    for (; t.end < n && rows[t.end].score == rows[i].score; t.end++)
        *(rows[t.end].positive ? &t.positive : &t.others) += rows[t.end].weight;
    return t;
}

/* The share of pairs (positive, other) in the right order, ties counting half (Mann and Whitney
 * 1947). NaN if one side has no weight. */
static double auc_of(const struct scored *rows, size_t n, double positive, double others)
{
    double pairs = 0, others_below = 0;
    for (size_t i = 0; i < n;) {
        struct ties t = ties_from(rows, n, i);
        pairs += t.positive * (others_below + t.others / 2);
        others_below += t.others;
        i = t.end;
    }
    return positive > 0 && others > 0 ? pairs / (positive * others) : NAN;
}

/* The sum over the sets of equal scores of their share of the positive rows times the precision of
 * all rows that score at least as much. Rows are sorted upwards, so what is at or above a set is
 * everything less what is below. */
static double precision_of(const struct scored *rows, size_t n, double positive, double others)
{
    double sum = 0, above[2] = {positive, others};
    for (size_t i = 0; positive > 0 && i < n;) {
        struct ties t = ties_from(rows, n, i);
        if (t.positive > 0)
            sum += t.positive / positive * (above[0] / (above[0] + above[1]));
        above[0] -= t.positive;
        above[1] -= t.others;
        i = t.end;
    }
    return sum;
}

typedef double ranking(const struct scored *rows, size_t n, double positive, double others);

/* The value for the scores of class c, and the weights of both sides. */
static as_status rank_class(const struct metric_input *in, size_t c, ranking *metric, double *ret,
                            double sides[2], struct as_err *err)
{
    AS_AUTO(as_freep) struct scored *rows = as_calloc(in->n, sizeof *rows);
    if (!rows)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu scores", in->n);
    bool any_nan = false;
    sides[0] = sides[1] = 0;
    for (size_t i = 0; i < in->n; i++) {
        rows[i] = (struct scored){in->predicted[i * in->outputs + c], (size_t)in->labels[i] == c,
                                  weight_of(in->weights, i)};
        any_nan = any_nan || isnan(rows[i].score);
        sides[!rows[i].positive] += rows[i].weight;
    }
    if (!any_nan)
        qsort(rows, in->n, sizeof *rows, by_score);
    *ret = any_nan ? NAN : metric(rows, in->n, sides[0], sides[1]);
    return AS_OK;
}

/* With two classes the value of class 1, else the mean over the classes that have one: for AUC
 * those with rows on both sides, for average precision those with rows. */
static as_status rank_classes(const struct metric_input *in, ranking *metric, double *ret,
                              struct as_err *err)
{
    double sum = 0, used = 0, sides[2];
    if (in->outputs == 2)
        return rank_class(in, 1, metric, ret, sides, err);
    for (size_t c = 0; c < in->outputs; c++) {
        double value = NAN;
        as_status st = rank_class(in, c, metric, &value, sides, err);
        if (st != AS_OK)
            return st;
        if (!(sides[0] > 0) || (metric == auc_of && !(sides[1] > 0)))
            continue;
        sum += value;
        used++;
    }
    *ret = used > 0 ? sum / used : NAN;
    return AS_OK;
}

static as_status compute_auc(const struct metric_input *in, double *ret, struct as_err *err)
{
    return rank_classes(in, auc_of, ret, err);
}

static as_status compute_average_precision(const struct metric_input *in, double *ret,
                                           struct as_err *err)
{
    return rank_classes(in, precision_of, ret, err);
}

/* ---- predicted classes ---- */

/* The class that is predicted for row i; SIZE_MAX or any other number out of range: none. */
static size_t class_predicted(const struct metric_input *in, size_t i)
{
    if (in->predicted_class) /* a negative one becomes a huge number */
        return (size_t)(int64_t)in->predicted_class[i];
    const float *p = in->predicted + i * in->outputs;
    size_t best = 0;
    if (in->outputs == 2) /* without a branch: either class is as likely as the other */
        return isunordered(p[0], p[1]) ? SIZE_MAX : (size_t)(p[1] > p[0]);
    for (size_t c = 0; c < in->outputs; c++) {
        if (isnan(p[c]))
            return SIZE_MAX;
        best = p[c] > p[best] ? c : best;
    }
    return best;
}

/* The weight of the rows that are predicted rightly, or of those that are not. Rows without weights
 * are counted without a branch: which of them are right is not to be foreseen. */
static double weight_where(const struct metric_input *in, bool right)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < in->n; i++) {
        bool is_counted = (class_predicted(in, i) == (size_t)in->labels[i]) == right;
        count += is_counted;
        if (in->weights && is_counted)
            sum += (double)in->weights[i];
    }
    return in->weights ? sum : (double)count;
}

static as_status compute_accuracy(const struct metric_input *in, double *ret, struct as_err *err)
{
    (void)err;
    *ret = weight_where(in, true) / weight_sum(in);
    return AS_OK;
}

static as_status compute_error(const struct metric_input *in, double *ret, struct as_err *err)
{
    (void)err;
    *ret = weight_where(in, false) / weight_sum(in);
    return AS_OK;
}

static bool in_top5(const struct metric_input *in, size_t i)
{
    const float *p = in->predicted + i * in->outputs;
    size_t label = (size_t)in->labels[i], before = 0;
    for (size_t c = 0; c < in->outputs; c++) {
        if (isnan(p[c]))
            return false;
        before += p[c] > p[label] || (p[c] == p[label] && c < label);
    }
    return before < 5;
}

static as_status compute_top5(const struct metric_input *in, double *ret, struct as_err *err)
{
    double right = 0;
    (void)err;
    for (size_t i = 0; i < in->n; i++)
        right += in_top5(in, i) ? weight_of(in->weights, i) : 0;
    *ret = right / weight_sum(in);
    return AS_OK;
}

/* Weights of a class's rows. */
struct class_sums {
    double right, predicted, labelled;
};

/* [outputs]; owned by the caller. */
static as_status sum_classes(const struct metric_input *in, struct class_sums **ret,
                             struct as_err *err)
{
    struct class_sums *of = as_calloc(in->outputs, sizeof *of);
    if (!of)
        return as_fail_nomem(err);
    for (size_t i = 0; i < in->n; i++) {
        size_t p = class_predicted(in, i), t = (size_t)in->labels[i];
        double w = weight_of(in->weights, i);
        if (p < in->outputs)
            of[p].predicted += w;
        if (t < in->outputs)
            of[t].labelled += w;
        if (p == t && p < in->outputs)
            of[p].right += w;
    }
    *ret = of;
    return AS_OK;
}

static as_status compute_f1(const struct metric_input *in, double *ret, struct as_err *err)
{
    AS_AUTO(as_freep) struct class_sums *of = NULL;
    as_status st = sum_classes(in, &of, err);
    if (st != AS_OK)
        return st;
    double sum = 0, used = 0;
    for (size_t c = in->outputs == 2 ? 1 : 0; c < in->outputs; c++) {
        double all = of[c].predicted + of[c].labelled; /* 2 tp + fp + fn */
        sum += all > 0 ? 2 * of[c].right / all : 0;
        used += all > 0 || in->outputs == 2;
    }
    *ret = used > 0 ? sum / used : 0;
    return AS_OK;
}

static as_status compute_balanced(const struct metric_input *in, double *ret, struct as_err *err)
{
    AS_AUTO(as_freep) struct class_sums *of = NULL;
    as_status st = sum_classes(in, &of, err);
    if (st != AS_OK)
        return st;
    double sum = 0, used = 0;
    for (size_t c = 0; c < in->outputs; c++) {
        sum += of[c].labelled > 0 ? of[c].right / of[c].labelled : 0;
        used += of[c].labelled > 0;
    }
    *ret = used > 0 ? sum / used : NAN;
    return AS_OK;
}

/* ---- probabilities ---- */

static double row_brier(const struct metric_input *in, size_t i)
{
    const float *p = in->predicted + i * in->outputs;
    double sum = 0;
    for (size_t c = in->outputs == 2 ? 1 : 0; c < in->outputs; c++) {
        double d = (double)p[c] - ((size_t)in->labels[i] == c ? 1 : 0);
        sum += d * d;
    }
    return sum;
}

static as_status compute_brier(const struct metric_input *in, double *ret, struct as_err *err)
{
    double sum = 0;
    (void)err;
    for (size_t i = 0; i < in->n; i++)
        sum += weight_of(in->weights, i) * row_brier(in, i);
    *ret = sum / weight_sum(in);
    return AS_OK;
}

static as_status compute_log_loss(const struct metric_input *in, double *ret, struct as_err *err)
{
    double sum = 0;
    (void)err;
    for (size_t i = 0; i < in->n; i++) {
        double p = (double)in->predicted[i * in->outputs + (size_t)in->labels[i]];
        p = p < (double)FLT_EPSILON ? (double)FLT_EPSILON : p; /* NaN stays */
        sum -= weight_of(in->weights, i) * log(p);
    }
    *ret = sum / weight_sum(in);
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

double metric_log_loss(const float *logits, const int32_t *labels, const float *weights, size_t n,
                       size_t classes)
{
    double sum = 0, of = 0;
    for (size_t i = 0; i < n; i++) {
        double w = weight_of(weights, i);
        if (w > 0) /* 0 * infinity is NaN */
            sum += w * row_log_loss(logits + i * classes, (size_t)labels[i], classes);
        of += w;
    }
    return sum / of;
}

/* ---- numbers: the mean over the targets of a value of each ---- */

/* The weighted mean over the rows of f(predicted, target, arg) of target c. */
static double mean_of(const struct metric_input *in, size_t c,
                      double (*f)(double p, double y, double arg), double arg)
{
    double sum = 0;
    for (size_t i = 0; i < in->n; i++) {
        size_t at = i * in->outputs + c;
        sum +=
            weight_of(in->weights, i) * f((double)in->predicted[at], (double)in->targets[at], arg);
    }
    return sum / weight_sum(in);
}

static double square(double p, double y, double arg)
{
    (void)arg;
    return (p - y) * (p - y);
}

static double absolute(double p, double y, double arg)
{
    (void)arg;
    return fabs(p - y);
}

static double share_of_target(double p, double y, double arg)
{
    (void)arg;
    return fabs(p - y) / fmax(fabs(y), DBL_EPSILON);
}

static double pinball(double p, double y, double quantile)
{
    return y >= p ? quantile * (y - p) : (1 - quantile) * (p - y); /* NaN stays */
}

/* The squared distance from `arg` of the target. */
static double spread(double p, double y, double arg)
{
    (void)p;
    return (y - arg) * (y - arg);
}

static double target_itself(double p, double y, double arg)
{
    (void)p;
    (void)arg;
    return y;
}

static double r2_of(const struct metric_input *in, size_t c)
{
    double squares = mean_of(in, c, square, 0);
    double around = mean_of(in, c, spread, mean_of(in, c, target_itself, 0));
    if (!isfinite(squares))
        return -squares;
    if (around > 0)
        return 1 - squares / around;
    return squares == 0 ? 1 : 0;
}

double metric_mse(const struct metric_input *in)
{
    double sum = 0;
    for (size_t c = 0; c < in->outputs; c++)
        sum += mean_of(in, c, square, 0) / (double)in->outputs;
    return sum;
}

static as_status compute_rmse(const struct metric_input *in, double *ret, struct as_err *err)
{
    (void)err;
    *ret = 0;
    for (size_t c = 0; c < in->outputs; c++)
        *ret += sqrt(mean_of(in, c, square, 0)) / (double)in->outputs;
    return AS_OK;
}

static as_status compute_mae(const struct metric_input *in, double *ret, struct as_err *err)
{
    (void)err;
    *ret = 0;
    for (size_t c = 0; c < in->outputs; c++)
        *ret += mean_of(in, c, absolute, 0) / (double)in->outputs;
    return AS_OK;
}

static as_status compute_mape(const struct metric_input *in, double *ret, struct as_err *err)
{
    (void)err;
    *ret = 0;
    for (size_t c = 0; c < in->outputs; c++)
        *ret += mean_of(in, c, share_of_target, 0) / (double)in->outputs;
    return AS_OK;
}

static as_status compute_r2(const struct metric_input *in, double *ret, struct as_err *err)
{
    (void)err;
    *ret = 0;
    for (size_t c = 0; c < in->outputs; c++)
        *ret += r2_of(in, c) / (double)in->outputs;
    return AS_OK;
}

static double pinball_at(const struct metric_input *in, double quantile)
{
    double sum = 0;
    for (size_t c = 0; c < in->outputs; c++)
        sum += mean_of(in, c, pinball, quantile) / (double)in->outputs;
    return sum;
}

/* ---- all of them ---- */

static const struct {
    const char *name;
    bool classes;
    as_status (*compute)(const struct metric_input *in, double *ret, struct as_err *err);
} metrics[] = {
    {"val_error", true, compute_error},
    {"val_accuracy", true, compute_accuracy},
    {"val_top5", true, compute_top5},
    {"val_balanced_accuracy", true, compute_balanced},
    {"val_f1", true, compute_f1},
    {"val_auc", true, compute_auc},
    {"val_average_precision", true, compute_average_precision},
    {"val_brier", true, compute_brier},
    {"val_log_loss", true, compute_log_loss},
    {"val_rmse", false, compute_rmse},
    {"val_mae", false, compute_mae},
    {"val_mape", false, compute_mape},
    {"val_r2", false, compute_r2},
};

as_status metric_compute(const char *name, const struct metric_input *in, double *ret,
                         struct as_err *err)
{
    bool classes = in->labels != NULL;
    for (size_t i = 0; i < AS_ARRAY_LEN(metrics); i++)
        if (metrics[i].classes == classes && as_streq(metrics[i].name, name))
            return metrics[i].compute(in, ret, err);
    if (!classes && strncmp(name, PINBALL, strlen(PINBALL)) == 0) {
        *ret = pinball_at(in, strtod(name + strlen(PINBALL), NULL) / 100);
        return AS_OK;
    }
    return as_fail(err, AS_E_INVAL, "there is no metric '%.60s' of %s", name,
                   classes ? "classes" : "numbers");
}
