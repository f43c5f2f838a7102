/* Metrics and their influences.
 *
 * Each metric is a function of means over rows. Its influence is the derivative by those means
 * times the row's deviation from them; the formulas stand at the functions. AUC and average
 * precision are no functions of means of rows: the influence of AUC is made of the shares of the
 * other side's rows that lie below (DeLong's structural components), that of average precision of
 * the rows below.
 *
 * Rows with weights are a distribution in which a row has the share u / n, where n is the number of
 * rows and u its weight divided by the mean weight; without weights u is 1. All sums over rows are
 * of u. The functions compute the influence of a further row of weight 1; that of the row itself,
 * with its weight, is u times that.
 *
 * AUC sorts its rows for each class, and an ensemble is compared with AUC hundreds of times, so the
 * sort is a radix sort of float32 keys. The trainer's outputs are float32 too, so single models
 * have the trainer's ties. */
#include "search/score.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"

#define MIN_PROBABILITY 1e-7
#define DIGIT_BITS 11
#define DIGITS ((size_t)1 << DIGIT_BITS)

#define P1(q) "pinball_" #q
#define P10(d)                                                                                     \
    P1(d##0), P1(d##1), P1(d##2), P1(d##3), P1(d##4), P1(d##5), P1(d##6), P1(d##7), P1(d##8),      \
        P1(d##9)

/* By the quantile in per cent; the first has no meaning. */
static const char *const pinball_names[SCORE_PINBALL_MAX + 1] = {
    "",     P1(1),  P1(2),  P1(3),  P1(4),  P1(5),  P1(6),  P1(7),  P1(8), P1(9),
    P10(1), P10(2), P10(3), P10(4), P10(5), P10(6), P10(7), P10(8), P10(9)};

static const struct {
    const char *name;
    bool classes, maximize;
} metrics[SCORE_METRICS] = {
    [SCORE_ERROR] = {"error", true, false},
    [SCORE_LOG_LOSS] = {"log_loss", true, false},
    [SCORE_ACCURACY] = {"accuracy", true, true},
    [SCORE_TOP5] = {"top5", true, true},
    [SCORE_AUC] = {"auc", true, true},
    [SCORE_F1] = {"f1", true, true},
    [SCORE_MSE] = {"mse", false, false},
    [SCORE_RMSE] = {"rmse", false, false},
    [SCORE_MAE] = {"mae", false, false},
    [SCORE_R2] = {"r2", false, true},
    [SCORE_BALANCED_ACCURACY] = {"balanced_accuracy", true, true},
    [SCORE_AVERAGE_PRECISION] = {"average_precision", true, true},
    [SCORE_BRIER] = {"brier", true, false},
    [SCORE_MAPE] = {"mape", false, false},
};

/* The quantile of a pinball loss; 0 of other metrics. */
static double quantile_of(score_metric m)
{
    return m < SCORE_METRICS ? 0 : (double)((int)m - SCORE_METRICS) / 100;
}

const char *score_format(score_metric m)
{
    return m < SCORE_METRICS ? metrics[m].name : pinball_names[(int)m - SCORE_METRICS];
}

bool score_is_of_classes(score_metric m)
{
    return m < SCORE_METRICS && metrics[m].classes;
}

bool score_is_maximized(score_metric m)
{
    return m < SCORE_METRICS && metrics[m].maximize;
}

/* One computation: its input, and the influences. */
struct score {
    const struct score_truth *truth;
    const size_t *rows;
    size_t n;
    const double *p; /* [n, outputs], times members */
    double members;
    double *influence; /* [n], never NULL */
    double unit;       /* a weight of 1 is this u */
};

double score_weight(const struct score_truth *t, size_t row)
{
    return t->weights ? (double)t->weights[row] : 1;
}

static size_t row_of(const struct score *s, size_t i)
{
    return s->rows ? s->rows[i] : i;
}

static size_t class_of(const struct score *s, size_t i)
{
    return (size_t)s->truth->classes[row_of(s, i)];
}

/* The row's weight, of which the sum over the rows is their number. */
static double u_of(const struct score *s, size_t i)
{
    return s->truth->weights ? s->unit * (double)s->truth->weights[row_of(s, i)] : 1;
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

static double row_brier(const struct score *s, size_t i)
{
    size_t C = s->truth->outputs, target = class_of(s, i);
    double sum = 0;
    for (size_t c = C == 2 ? 1 : 0; c < C; c++) {
        double d = s->p[i * C + c] / s->members - (c == target ? 1 : 0);
        sum += d * d;
    }
    return sum;
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
    if (m == SCORE_BRIER)
        return row_brier(s, i);
    bool right = largest_output(s, i) == target;
    return m == SCORE_ACCURACY ? right : !right;
}

/* What one number adds, where d is its error and y its target. */
static double cell_of_numbers(score_metric m, double d, double y)
{
    double q = quantile_of(m);
    if (q > 0)
        return d <= 0 ? q * -d : (1 - q) * d;
    if (m == SCORE_MAPE)
        return fabs(d) / fmax(fabs(y), DBL_EPSILON);
    return m == SCORE_MAE ? fabs(d) : d * d;
}

static double row_of_numbers(const struct score *s, score_metric m, size_t i)
{
    size_t C = s->truth->outputs;
    double sum = 0;
    for (size_t c = 0; c < C; c++) {
        double y = (double)s->truth->targets[row_of(s, i) * C + c];
        sum += cell_of_numbers(m, s->p[i * C + c] / s->members - y, y);
    }
    return sum / (double)C;
}

/* The influence on a mean is the deviation from it. */
static double mean_over_rows(const struct score *s, score_metric m)
{
    double mean = 0;
    for (size_t i = 0; i < s->n; i++) {
        s->influence[i] =
            score_is_of_classes(m) ? row_of_classes(s, m, i) : row_of_numbers(s, m, i);
        mean += u_of(s, i) * s->influence[i] / (double)s->n;
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
        mean += u_of(s, i) * error_of(s, i, c) * error_of(s, i, c) / n;
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
        centre += u_of(s, i) * (double)s->truth->targets[row_of(s, i) * C + c] / n;
    for (size_t i = 0; i < s->n; i++) {
        double t = (double)s->truth->targets[row_of(s, i) * C + c] - centre;
        a += u_of(s, i) * error_of(s, i, c) * error_of(s, i, c) / n;
        b += u_of(s, i) * t * t / n;
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
    double(*count)[2] = as_calloc(C, sizeof *count); /* weights: right; predicted + labels */
    AS_AUTO(as_freep) size_t *predicted = as_calloc(s->n, sizeof *predicted);
    if (!count || !predicted)
        return as_fail_nomem(err);
    for (size_t i = 0; i < s->n; i++) {
        predicted[i] = largest_output(s, i);
        count[predicted[i]][0] += predicted[i] == class_of(s, i) ? u_of(s, i) : 0;
        count[predicted[i]][1] += u_of(s, i);
        count[class_of(s, i)][1] += u_of(s, i);
    }
    double sum = 0;
    for (size_t c = first; c < C; c++) {
        used += count[c][1] > 0 || C == 2;
        sum += count[c][1] > 0 ? 2 * count[c][0] / count[c][1] : 0;
    }
    for (size_t i = 0; i < s->n; i++) {
        const size_t of[2] = {predicted[i], class_of(s, i)};
        for (size_t k = 0; k < 2; k++) { /* half of 2 t_i belongs to each, if they are the same */
            double u = count[of[k]][1] / (double)s->n;
            double f1 = 2 * count[of[k]][0] / count[of[k]][1];
            if (of[k] >= first)
                s->influence[i] += ((of[0] == of[1]) - f1) / u / (double)used;
        }
    }
    *ret = used > 0 ? sum / (double)used : 0;
    return AS_OK;
}

/* ---- balanced accuracy ---- */

/* The mean over the classes that have rows of r / n, with r the rows of a class that are predicted
 * so, and n its rows: influence (r_i - r / n) / n of a row of that class, times all rows. */
static as_status compute_balanced(const struct score *s, double *ret, struct as_err *err)
{
    size_t C = s->truth->outputs;
    AS_AUTO(as_freep) double(*count)[2] = as_calloc(C, sizeof *count); /* weights: right; all */
    if (!count)
        return as_fail_nomem(err);
    for (size_t i = 0; i < s->n; i++) {
        size_t c = class_of(s, i);
        s->influence[i] = largest_output(s, i) == c;
        count[c][0] += u_of(s, i) * s->influence[i];
        count[c][1] += u_of(s, i);
    }
    double sum = 0, used = 0;
    for (size_t c = 0; c < C; c++) {
        used += count[c][1] > 0;
        sum += count[c][1] > 0 ? count[c][0] / count[c][1] : 0;
    }
    for (size_t i = 0; i < s->n; i++) {
        const double *of = count[class_of(s, i)];
        s->influence[i] = (s->influence[i] - of[0] / of[1]) / of[1] / used * (double)s->n;
    }
    *ret = sum / used;
    return AS_OK;
}

/* ---- AUC and average precision ---- */

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

/* The rows of a class and the others, sorted upwards by the class's score. Rows without weight are
 * left out: at the top they would be a set of nothing. */
struct sides {
    const struct ranked *sorted;
    size_t n;
    double others, positive; /* weights; their sum is the number of all rows */
};

/* The weights of the set of equal scores that begins at i: [others, positive]. Returns its end. */
static size_t equal_from(const struct score *s, size_t c, const struct sides *of, size_t i,
                         double ret[2])
{
    size_t end = i;
    ret[0] = ret[1] = 0;
    for (; end < of->n && of->sorted[end].key == of->sorted[i].key; end++)
        ret[class_of(s, of->sorted[end].row) == c] += u_of(s, of->sorted[end].row);
    return end;
}

/* Add the AUC's influence of class c, times `scale`, where it is `auc`. A positive row has the
 * share of other rows below it, another row the share of positive rows above it; half of the equal
 * ones counts. */
static void add_auc_influence(const struct score *s, size_t c, const struct sides *of, double auc,
                              double scale)
{
    const struct ranked *sorted = of->sorted;
    double n = (double)s->n, others = of->others, positive = of->positive;
    double below[2] = {0, 0}; /* others, positive */
    for (size_t i = 0, end; i < of->n; i = end) {
        double equal[2];
        end = equal_from(s, c, of, i, equal);
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
static double auc_of(const struct score *s, size_t c, const struct sides *of)
{
    double pairs = 0, below = 0;
    for (size_t i = 0, end; i < of->n; i = end) {
        double equal[2];
        end = equal_from(s, c, of, i, equal);
        pairs += equal[1] * (below + equal[0] / 2);
        below += equal[0];
    }
    return pairs / of->positive / of->others;
}

/* The average precision of class c: the mean over its rows of t / a, with a the rows that score at
 * least as much and t those of them in the class. A further row adds to t (if it is of the class)
 * and to a of all rows at its score and below: its influence is the sum over the class's rows i
 * there of (t? - t_i / a_i) / a_i, with t? 1 if it is of the class, and then its own t / a less the
 * mean; divided by the class's rows, times all rows. The rows are sorted upwards, so these sums are
 * those of the rows that came before. */
static double precision_of(const struct score *s, size_t c, const struct sides *of, double scale)
{
    const struct ranked *sorted = of->sorted;
    double n = (double)s->n, positive = of->positive, above[2] = {of->others, positive}, sum = 0;
    double shares = 0, parts = 0; /* over the class's rows so far: 1 / a_i, t_i / a_i^2 */
    for (size_t i = 0, end; i < of->n; i = end) {
        double equal[2];
        end = equal_from(s, c, of, i, equal);
        for (int k = 0; k < 2; k++) /* what is left may be rounded to less than the set */
            above[k] = fmax(above[k], equal[k]);
        double a = above[0] + above[1], precision = above[1] / a;
        sum += equal[1] * precision / positive;
        shares += equal[1] / a;
        parts += equal[1] * precision / a;
        for (size_t k = i; k < end; k++) {
            bool mine = class_of(s, sorted[k].row) == c;
            double change = (mine ? shares + precision : 0) - parts;
            s->influence[sorted[k].row] += scale * change * n / positive;
        }
        above[0] -= equal[0];
        above[1] -= equal[1];
    }
    for (size_t i = 0; i < s->n;
         i++) /* one more row of the class makes the mean one of more rows */
        if (class_of(s, i) == c)
            s->influence[i] -= scale * sum * n / positive;
    return sum;
}

/* Does a class with so many rows that have weight, of n, have a value? AUC needs rows on both
 * sides, average precision rows of the class. */
static bool has_value(score_metric m, size_t rows, size_t n)
{
    return rows > 0 && (m == SCORE_AVERAGE_PRECISION || rows < n);
}

/* The number of classes that have a value; *ret_first is the first class to compare. */
static size_t classes_to_compare(const struct score *s, score_metric m, const size_t *count,
                                 size_t n, size_t *ret_first)
{
    size_t used = 0;
    *ret_first = s->truth->outputs == 2 ? 1 : 0;
    for (size_t c = *ret_first; c < s->truth->outputs; c++)
        used += has_value(m, count[c], n);
    return used;
}

/* Sort the rows that have weight by the scores of class c; `items` has room for 2n. */
static struct sides sides_of(const struct score *s, size_t c, struct ranked *items)
{
    struct sides of = {0};
    for (size_t i = 0; i < s->n; i++) {
        double u = u_of(s, i), v = s->p[i * s->truth->outputs + c] / s->members;
        if (!(u > 0))
            continue;
        items[of.n++] = (struct ranked){key_of(v), (uint32_t)i};
        *(class_of(s, i) == c ? &of.positive : &of.others) += u;
    }
    of.sorted = sort_ranked(items, items + s->n, of.n);
    return of;
}

static as_status compute_ranking(const struct score *s, score_metric m, double *ret,
                                 struct as_err *err)
{
    size_t C = s->truth->outputs, first = 0, n = 0;
    AS_AUTO(as_freep) struct ranked *items = as_calloc(s->n, 2 * sizeof *items);
    AS_AUTO(as_freep) size_t *count = as_calloc(C, sizeof *count);
    if (!items || !count)
        return as_fail_nomem(err);
    for (size_t i = 0; i < s->n; i++) {
        bool counts = u_of(s, i) > 0;
        n += counts;
        count[class_of(s, i)] += counts;
    }
    size_t used = classes_to_compare(s, m, count, n, &first);
    double sum = 0;
    for (size_t c = first; c < C; c++) {
        if (!has_value(m, count[c], n))
            continue;
        const struct sides of = sides_of(s, c, items);
        if (m == SCORE_AVERAGE_PRECISION) {
            sum += precision_of(s, c, &of, 1 / (double)used);
            continue;
        }
        double auc = auc_of(s, c, &of);
        add_auc_influence(s, c, &of, auc, 1 / (double)used);
        sum += auc;
    }
    bool none = m == SCORE_AVERAGE_PRECISION && s->truth->outputs == 2; /* 0 without class 1 */
    *ret = used > 0 ? sum / (double)used : none ? 0 : NAN;
    return AS_OK;
}

/* ---- all of them ---- */

/* The value, and the influence of a further row of weight 1. */
static as_status compute(const struct score *s, score_metric m, double *ret, struct as_err *err)
{
    if (m == SCORE_F1)
        return compute_f1(s, ret, err);
    if (m == SCORE_AUC || m == SCORE_AVERAGE_PRECISION)
        return compute_ranking(s, m, ret, err);
    if (m == SCORE_BALANCED_ACCURACY)
        return compute_balanced(s, ret, err);
    if (m == SCORE_RMSE || m == SCORE_R2)
        *ret = mean_over_outputs(s, m == SCORE_RMSE ? output_rmse : output_r2);
    else
        *ret = mean_over_rows(s, m);
    return AS_OK;
}

as_status score_compute(score_metric m, const struct score_truth *truth, const size_t *rows,
                        size_t n, const double *p, double members, double *ret,
                        double *ret_influence, struct as_err *err)
{
    AS_AUTO(as_freep) double *own = ret_influence ? NULL : as_calloc(n, sizeof *own);
    struct score s = {truth, rows, n, p, members, ret_influence ? ret_influence : own, 1};
    double total = 0;
    if (!s.influence)
        return as_fail_nomem(err);
    memset(s.influence, 0, n * sizeof *s.influence);
    for (size_t i = 0; i < n; i++)
        total += score_weight(truth, row_of(&s, i));
    if (!(total > 0)) {
        *ret = NAN;
        return AS_OK;
    }
    s.unit = (double)n / total;
    as_status st = compute(&s, m, ret, err);
    for (size_t i = 0; truth->weights && i < n; i++) {
        double u = u_of(&s, i);
        s.influence[i] = u > 0 ? s.influence[i] * u : 0; /* it may be NaN without weight */
    }
    return st;
}
