/* Metrics and their influences.
 *
 * Each metric is a function of means over rows. Its influence is the derivative by those means times
 * the row's deviation from them; the formulas stand at the functions. AUC is the only one that is not
 * a function of means of rows: its influence is made of the shares of the other side's rows that lie
 * below (DeLong's structural components).
 *
 * AUC sorts its rows for each class, and an ensemble is compared with AUC hundreds of times, so the
 * sort is a radix sort of float32 keys. The trainer's outputs are float32 too, so single models have
 * the trainer's ties. */
#include "search/score.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

#define MIN_PROBABILITY 1e-7
#define DIGIT_BITS 11
#define DIGITS ((size_t)1 << DIGIT_BITS)

static const struct {
    const char *name;
    bool classes, maximize;
} metrics[SCORE_METRICS] = {
    [SCORE_ERROR] = {"error", true, false},      [SCORE_LOG_LOSS] = {"log_loss", true, false},
    [SCORE_ACCURACY] = {"accuracy", true, true}, [SCORE_TOP5] = {"top5", true, true},
    [SCORE_AUC] = {"auc", true, true},           [SCORE_F1] = {"f1", true, true},
    [SCORE_MSE] = {"mse", false, false},         [SCORE_RMSE] = {"rmse", false, false},
    [SCORE_MAE] = {"mae", false, false},         [SCORE_R2] = {"r2", false, true},
};

const char *score_format(score_metric m)
{
    return metrics[m].name;
}

bool score_is_of_classes(score_metric m)
{
    return metrics[m].classes;
}

bool score_is_maximized(score_metric m)
{
    return metrics[m].maximize;
}

/* One computation: its input, and the influences. */
struct score {
    const struct score_truth *truth;
    const size_t *rows;
    size_t n;
    const double *p; /* [n, outputs], times members */
    double members;
    double *influence; /* [n], never NULL */
};

static size_t row_of(const struct score *s, size_t i)
{
    return s->rows ? s->rows[i] : i;
}

static size_t class_of(const struct score *s, size_t i)
{
    return (size_t)s->truth->classes[row_of(s, i)];
}

/* ---- means over rows ---- */

static size_t largest_output(const struct score *s, size_t i)
{
    const double *p = s->p + i * s->truth->outputs;
    size_t best = 0;
    for (size_t c = 1; c < s->truth->outputs; c++)
        best = p[c] > p[best] ? c : best;
    return best;
}

/* The number of outputs that rank before the target's; equal ones count if they come first. */
static size_t outputs_before(const struct score *s, size_t i)
{
    const double *p = s->p + i * s->truth->outputs;
    size_t target = class_of(s, i), before = 0;
    for (size_t c = 0; c < s->truth->outputs; c++)
        before += p[c] > p[target] || (p[c] == p[target] && c < target);
    return before;
}

static double row_of_classes(const struct score *s, score_metric m, size_t i)
{
    size_t target = class_of(s, i);
    if (m == SCORE_LOG_LOSS) {
        double p = s->p[i * s->truth->outputs + target] / s->members;
        return -log(fmin(fmax(p, MIN_PROBABILITY), 1));
    }
    if (m == SCORE_TOP5)
        return outputs_before(s, i) < 5;
    bool right = largest_output(s, i) == target;
    return m == SCORE_ACCURACY ? right : !right;
}

static double row_of_numbers(const struct score *s, score_metric m, size_t i)
{
    size_t C = s->truth->outputs;
    double sum = 0;
    for (size_t c = 0; c < C; c++) {
        double d = s->p[i * C + c] / s->members - (double)s->truth->targets[row_of(s, i) * C + c];
        sum += m == SCORE_MAE ? fabs(d) : d * d;
    }
    return sum / (double)C;
}

/* The influence on a mean is the deviation from it. */
static double mean_over_rows(const struct score *s, score_metric m)
{
    double mean = 0;
    for (size_t i = 0; i < s->n; i++) {
        s->influence[i] = metrics[m].classes ? row_of_classes(s, m, i) : row_of_numbers(s, m, i);
        mean += s->influence[i] / (double)s->n;
    }
    for (size_t i = 0; i < s->n; i++)
        s->influence[i] -= mean;
    return mean;
}

/* ---- rmse and r2: each output is a function of means, and the outputs are averaged ---- */

static double error_of(const struct score *s, size_t i, size_t c)
{
    size_t C = s->truth->outputs;
    return s->p[i * C + c] / s->members - (double)s->truth->targets[row_of(s, i) * C + c];
}

/* rmse = sqrt(a), where a is the mean square: influence (a_i - a) / (2 rmse). */
static double output_rmse(const struct score *s, size_t c)
{
    double n = (double)s->n, mean = 0;
    for (size_t i = 0; i < s->n; i++)
        mean += error_of(s, i, c) * error_of(s, i, c) / n;
    double rmse = sqrt(mean), share = rmse > 0 ? 0.5 / rmse / (double)s->truth->outputs : 0;
    for (size_t i = 0; i < s->n; i++)
        s->influence[i] += share * (error_of(s, i, c) * error_of(s, i, c) - mean);
    return rmse;
}

/* r2 = 1 - a / b, where b is the variance of the target: influence -(a_i - a) / b + a (b_i - b) /
 * b^2. A constant target counts 1 if it is predicted exactly, else 0. */
static double output_r2(const struct score *s, size_t c)
{
    size_t C = s->truth->outputs;
    double n = (double)s->n, a = 0, b = 0, centre = 0;
    for (size_t i = 0; i < s->n; i++)
        centre += (double)s->truth->targets[row_of(s, i) * C + c] / n;
    for (size_t i = 0; i < s->n; i++) {
        double t = (double)s->truth->targets[row_of(s, i) * C + c] - centre;
        a += error_of(s, i, c) * error_of(s, i, c) / n;
        b += t * t / n;
    }
    if (!(b > 0))
        return a == 0;
    for (size_t i = 0; i < s->n; i++) {
        double e = error_of(s, i, c), t = (double)s->truth->targets[row_of(s, i) * C + c] - centre;
        s->influence[i] += (-(e * e - a) / b + a * (t * t - b) / (b * b)) / (double)C;
    }
    return 1 - a / b;
}

static double mean_over_outputs(const struct score *s, double (*one)(const struct score *, size_t))
{
    double sum = 0;
    for (size_t c = 0; c < s->truth->outputs; c++)
        sum += one(s, c);
    return sum / (double)s->truth->outputs;
}

/* ---- F1 ---- */

/* F1 = 2 t / u with t the share of rows of a class that are predicted so, and u the shares of rows
 * predicted and labelled so: influence (2 t_i - F1 u_i) / u. */
static as_status compute_f1(const struct score *s, double *ret, struct as_err *err)
{
    size_t C = s->truth->outputs, first = C == 2 ? 1 : 0, used = 0;
    AS_AUTO(as_freep)
    size_t(*count)[2] = as_calloc(C, sizeof *count); /* right; predicted + labels */
    AS_AUTO(as_freep) size_t *predicted = as_calloc(s->n, sizeof *predicted);
    if (!count || !predicted)
        return as_fail_nomem(err);
    for (size_t i = 0; i < s->n; i++) {
        predicted[i] = largest_output(s, i);
        count[predicted[i]][0] += predicted[i] == class_of(s, i);
        count[predicted[i]][1]++;
        count[class_of(s, i)][1]++;
    }
    double sum = 0;
    for (size_t c = first; c < C; c++) {
        used += count[c][1] > 0 || C == 2;
        sum += count[c][1] > 0 ? 2 * (double)count[c][0] / (double)count[c][1] : 0;
    }
    for (size_t i = 0; i < s->n; i++) {
        const size_t of[2] = {predicted[i], class_of(s, i)};
        for (size_t k = 0; k < 2; k++) { /* half of 2 t_i belongs to each, if they are the same */
            double u = (double)count[of[k]][1] / (double)s->n;
            double f1 = 2 * (double)count[of[k]][0] / (double)count[of[k]][1];
            if (of[k] >= first)
                s->influence[i] += ((of[0] == of[1]) - f1) / u / (double)used;
        }
    }
    *ret = used > 0 ? sum / (double)used : 0;
    return AS_OK;
}

/* ---- AUC ---- */

struct ranked {
    uint32_t key; /* ascending with the score */
    uint32_t row;
};

/* The bits of a float32 in an order that unsigned numbers have. */
static uint32_t key_of(double v)
{
    float f = (float)v;
    uint32_t bits;
    f = f == 0 ? 0 : f; /* -0 */
    memcpy(&bits, &f, sizeof bits);
    return bits >> 31 ? ~bits : bits | UINT32_C(1) << 31;
}

/* Sort n items by their keys; `spare` has room for n. Three passes, so the result is in `spare`;
 * returns it. */
static struct ranked *sort_ranked(struct ranked *items, struct ranked *spare, size_t n)
{
    for (unsigned shift = 0; shift < 32; shift += DIGIT_BITS) {
        size_t at[DIGITS] = {0}, sum = 0;
        for (size_t i = 0; i < n; i++)
            at[items[i].key >> shift & (DIGITS - 1)]++;
        for (size_t d = 0; d < DIGITS; d++) {
            size_t count = at[d];
            at[d] = sum;
            sum += count;
        }
        for (size_t i = 0; i < n; i++)
            spare[at[items[i].key >> shift & (DIGITS - 1)]++] = items[i];
        struct ranked *swap = items;
        items = spare;
        spare = swap;
    }
    return items;
}

/* Add the AUC's influence of class c, times `scale`, where it is `auc` and the rows are sorted. A
 * positive row has the share of other rows below it, another row the share of positive rows above
 * it; half of the equal ones counts. */
static void add_auc_influence(const struct score *s, size_t c, const struct ranked *sorted,
                              double positive, double auc, double scale)
{
    double n = (double)s->n, others = n - positive, below[2] = {0, 0}; /* others, positive */
    for (size_t i = 0, end; i < s->n; i = end) {
        double equal[2] = {0, 0};
        for (end = i; end < s->n && sorted[end].key == sorted[i].key; end++)
            equal[class_of(s, sorted[end].row) == c]++;
        for (size_t k = i; k < end; k++) {
            bool mine = class_of(s, sorted[k].row) == c;
            double share = mine ? (below[0] + equal[0] / 2) / others
                                : (positive - below[1] - equal[1] / 2) / positive;
            s->influence[sorted[k].row] += scale * (share - auc) * n / (mine ? positive : others);
        }
        below[0] += equal[0];
        below[1] += equal[1];
    }
}

/* The share of pairs (positive, other) in the right order, ties counting half. */
static double auc_of(const struct score *s, size_t c, const struct ranked *sorted, double positive)
{
    double pairs = 0, below = 0;
    for (size_t i = 0, end; i < s->n; i = end) {
        double equal[2] = {0, 0};
        for (end = i; end < s->n && sorted[end].key == sorted[i].key; end++)
            equal[class_of(s, sorted[end].row) == c]++;
        pairs += equal[1] * (below + equal[0] / 2);
        below += equal[0];
    }
    return pairs / positive / ((double)s->n - positive);
}

/* The number of classes that have rows on both sides; *ret_first is the first class to compare. */
static size_t classes_to_compare(const struct score *s, const size_t *count, size_t *ret_first)
{
    size_t used = 0;
    *ret_first = s->truth->outputs == 2 ? 1 : 0;
    for (size_t c = *ret_first; c < s->truth->outputs; c++)
        used += count[c] > 0 && count[c] < s->n;
    return used;
}

static as_status compute_auc(const struct score *s, double *ret, struct as_err *err)
{
    size_t C = s->truth->outputs, first = 0;
    AS_AUTO(as_freep) struct ranked *items = as_calloc(s->n, 2 * sizeof *items);
    AS_AUTO(as_freep) size_t *count = as_calloc(C, sizeof *count);
    if (!items || !count)
        return as_fail_nomem(err);
    for (size_t i = 0; i < s->n; i++)
        count[class_of(s, i)]++;
    size_t used = classes_to_compare(s, count, &first);
    double sum = 0;
    for (size_t c = first; c < C; c++) {
        if (count[c] == 0 || count[c] == s->n)
            continue;
        for (size_t i = 0; i < s->n; i++)
            items[i] = (struct ranked){key_of(s->p[i * C + c] / s->members), (uint32_t)i};
        const struct ranked *sorted = sort_ranked(items, items + s->n, s->n);
        double auc = auc_of(s, c, sorted, (double)count[c]);
        add_auc_influence(s, c, sorted, (double)count[c], auc, 1 / (double)used);
        sum += auc;
    }
    *ret = used > 0 ? sum / (double)used : NAN;
    return AS_OK;
}

/* ---- all of them ---- */

as_status score_compute(score_metric m, const struct score_truth *truth, const size_t *rows,
                        size_t n, const double *p, double members, double *ret,
                        double *ret_influence, struct as_err *err)
{
    AS_AUTO(as_freep) double *own = ret_influence ? NULL : as_calloc(n, sizeof *own);
    struct score s = {truth, rows, n, p, members, ret_influence ? ret_influence : own};
    if (!s.influence)
        return as_fail_nomem(err);
    memset(s.influence, 0, n * sizeof *s.influence);
    if (m == SCORE_F1)
        return compute_f1(&s, ret, err);
    if (m == SCORE_AUC)
        return compute_auc(&s, ret, err);
    if (m == SCORE_RMSE || m == SCORE_R2)
        *ret = mean_over_outputs(&s, m == SCORE_RMSE ? output_rmse : output_r2);
    else
        *ret = mean_over_rows(&s, m);
    return AS_OK;
}
