/* What follows a combination of probabilities: a calibration, and the threshold of two classes.
 *
 * With l_c the logarithms of the probabilities that the combination gives to a row,
 *   P(class c) = softmax(a l_c + b [c is the second of two classes])
 * and a, b minimise the sum over rows of -ln P(target), plus half of (a - 1)^2 + b^2: what one row
 * would say for the identity, so that probabilities that are never wrong stay finite. Newton's
 * method on one or two numbers. Of two classes this is Platt's sigmoid on the logarithm of the
 * odds, of more a temperature (sources: model/combine/combine.h): a bias for each class follows
 * accidents of few rows. Both are monotone in the odds of two classes, so a calibration changes no
 * ranking.
 *
 * Where the metric counts right classes, the threshold is the one that is best by it on the rows
 * that are given; of more classes there are weights of them (class_weights.c). The rows are those
 * that no member was trained on, and the ensemble's figure is of rows that chose neither
 * (ensemble.c). */
#include <math.h>
#include <stdlib.h>

#include "search/ensemble/selection_priv.h"

#define NEWTON_STEPS 50
#define HALVINGS 30
#define DECREASE 1e-9 /* of the sum of losses, that ends it */

/* ---- slope and bias ---- */

struct problem {
    const struct ensemble_input *in;
    struct row_list l;
    const double *logs; /* [l.n, outputs] */
};

/* The objective, its gradient and its second derivatives by (a, b). */
struct point {
    double a, b, value, by_a, by_b, aa, ab, bb;
};

static void add_row(const struct problem *p, size_t i, double *z, struct point *at)
{
    size_t C = p->in->truth.outputs, row = p->l.rows[i], y = (size_t)p->in->truth.classes[row];
    const double *l = p->logs + i * C;
    double most = -INFINITY, sum = 0, mean = 0, square = 0, w = score_weight(&p->in->truth, row);
    for (size_t c = 0; c < C; c++) {
        z[c] = at->a * l[c] + (C == 2 && c == 1 ? at->b : 0);
        most = fmax(most, z[c]);
    }
    double target = z[y] - most;
    for (size_t c = 0; c < C; c++)
        sum += z[c] = exp(z[c] - most);
    for (size_t c = 0; c < C; c++) {
        z[c] /= sum;
        mean += z[c] * l[c];
        square += z[c] * l[c] * l[c];
    }
    at->value += w * (log(sum) - target);
    at->by_a += w * (mean - l[y]);
    at->aa += w * fmax(square - mean * mean, 0);
    if (C != 2)
        return;
    at->by_b += w * (z[1] - (y == 1));
    at->ab += w * z[1] * (l[1] - mean);
    at->bb += w * z[0] * z[1];
}

/* z[outputs] is working memory. */
static struct point look_at(const struct problem *p, double a, double b, double *z)
{
    double from_one = a - 1;
    struct point at = {.a = a,
                       .b = b,
                       .value = (from_one * from_one + b * b) / 2,
                       .by_a = from_one,
                       .by_b = b,
                       .aa = 1,
                       .bb = 1};
    for (size_t i = 0; i < p->l.n; i++)
        add_row(p, i, z, &at);
    return at;
}

/* The second derivatives are positive definite, because of the added terms. */
static struct point minimize(const struct problem *p, double *z)
{
    struct point at = look_at(p, 1, 0, z);
    for (int step = 0; step < NEWTON_STEPS; step++) {
        double det = at.aa * at.bb - at.ab * at.ab, share = 1;
        double da = (at.bb * at.by_a - at.ab * at.by_b) / det;
        double db = (at.aa * at.by_b - at.ab * at.by_a) / det;
        struct point next = look_at(p, at.a - da, at.b - db, z);
        for (int h = 0; h < HALVINGS && !(next.value <= at.value); h++) {
            share /= 2;
            next = look_at(p, at.a - share * da, at.b - share * db, z);
        }
        if (!(next.value < at.value))
            break;
        bool done = at.value - next.value <= DECREASE * at.value;
        at = next;
        if (done)
            break;
    }
    return at;
}

/* Outside of the bounds the predictions say nothing, or the contrary: they stay as they are. */
static struct combine_calibration within_bounds(const struct point *at)
{
    bool fits =
        at->a >= COMBINE_SLOPE_MIN && at->a <= COMBINE_SLOPE_MAX && fabs(at->b) <= COMBINE_BIAS_MAX;
    return fits ? (struct combine_calibration){at->a, at->b} : (struct combine_calibration){1, 0};
}

/* ---- the threshold ---- */

struct scored {
    float p; /* of the second class, as a model gives it */
    bool is_second;
    double weight;
};

/* The highest probability first. */
static int compare(const void *a, const void *b)
{
    const struct scored *x = a, *y = b;
    return (x->p < y->p) - (x->p > y->p);
}

/* Weights of rows: of the second class and of the first, above the threshold and all of them. */
struct counts {
    double second, first, all_second, all_first;
};

static double value_of(score_metric metric, const struct counts *n)
{
    double wrong = n->first + n->all_second - n->second, classes = 0, right = 0;
    switch (metric) {
    case SCORE_F1:
        return n->second > 0 ? 2 * n->second / (2 * n->second + wrong) : 0;
    case SCORE_BALANCED_ACCURACY:
        classes = (n->all_second > 0) + (n->all_first > 0);
        right += n->all_second > 0 ? n->second / n->all_second : 0;
        right += n->all_first > 0 ? (n->all_first - n->first) / n->all_first : 0;
        return classes > 0 ? right / classes : 0;
    default: /* the error and the accuracy */
        return -wrong;
    }
}

static bool counts_classes(score_metric metric)
{
    return metric == SCORE_ERROR || metric == SCORE_ACCURACY || metric == SCORE_F1 ||
           metric == SCORE_BALANCED_ACCURACY;
}

/* Of equally good ones the nearest to a half. */
static double best_threshold(score_metric metric, const struct scored *s, size_t n)
{
    struct counts counts = {0};
    double best = -INFINITY, ret = 0.5;
    for (size_t i = 0; i < n; i++)
        *(s[i].is_second ? &counts.all_second : &counts.all_first) += s[i].weight;
    for (size_t i = 0; i <= n; i++) {
        double above = i > 0 ? (double)s[i - 1].p : 1, below = i < n ? (double)s[i].p : 0;
        if (above > below) {
            double value = value_of(metric, &counts), t = (above + below) / 2;
            if (value > best || (value == best && fabs(t - 0.5) < fabs(ret - 0.5))) {
                best = value;
                ret = t;
            }
        }
        if (i < n)
            *(s[i].is_second ? &counts.second : &counts.first) += s[i].weight;
    }
    return ret;
}

static as_status choose_threshold(const struct ensemble_input *in, struct row_list l,
                                  const double *p, double *ret, struct as_err *err)
{
    AS_AUTO(as_freep) struct scored *s = as_calloc(l.n, sizeof *s);
    if (!s)
        return as_fail_nomem(err);
    for (size_t i = 0; i < l.n; i++)
        s[i] = (struct scored){(float)p[i * 2 + 1], in->truth.classes[l.rows[i]] == 1,
                               score_weight(&in->truth, l.rows[i])};
    qsort(s, l.n, sizeof *s, compare);
    *ret = best_threshold(in->metric, s, l.n);
    return AS_OK;
}

/* ---- both ---- */

as_status calibration_fit(const struct ensemble_input *in, struct row_list l, double *p,
                          struct combination *ret, struct as_err *err)
{
    size_t C = in->truth.outputs;
    AS_AUTO(as_freep) double *logs = as_calloc(l.n, C * sizeof *logs);
    AS_AUTO(as_freep) double *z = as_calloc(C, sizeof *z);
    if (!logs || !z)
        return as_fail_nomem(err);
    for (size_t i = 0; i < l.n * C; i++)
        logs[i] = combine_log((double)(float)p[i]);
    const struct problem problem = {in, l, logs};
    struct point at = minimize(&problem, z);
    ret->calibration = within_bounds(&at);
    if (!counts_classes(in->metric))
        return AS_OK;
    combine_calibrate(&ret->calibration, C, l.n, p);
    if (C > 2)
        return class_weights_fit(in, l, p, ret, err);
    return choose_threshold(in, l, p, &ret->threshold, err);
}
