/* Ensemble selection and its measurement.
 *
 * A selection works on a list of rows. The sum of the members' predictions is kept, so a step costs
 * one pass over the candidates and not one over the members. For classes, a step needs only the
 * outputs of the targets, because it is guided by the log loss. Steps may repeat a candidate: the
 * counts are the weights. The best prefix wins, because the metric may get worse again after it.
 *
 * There are three selections: on all rows, which makes the ensemble; and on each half, which
 * predicts the other half. The out-of-fold predictions of both halves together are one prediction
 * for each row, and the metric is computed from all of them at once.
 *
 * docs/decisions/0060 and 0061 have the measurements behind these choices. */
#include "search/ensemble.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "base/str.h"
#include "search/problem/draw.h"

#define MIN_PROBABILITY 1e-7
#define START_SIZE 3    /* candidates of the sorted start, at most */
#define QUANTILE 1.6449 /* of the normal distribution, for ENSEMBLE_INTERVAL */

void ensemble_free(struct ensemble *e)
{
    if (!e)
        return;
    free(e->counts);
    free(e->weights);
    free(e->values);
    free(e);
}

/* ---- the two halves ---- */

as_status ensemble_split(size_t rows, uint64_t seed, bool *ret, struct as_err *err)
{
    AS_AUTO(as_freep) size_t *order = as_calloc(rows, sizeof *order);
    if (!order)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu rows", rows);
    struct rng r;
    rng_init(&r, seed, SEARCH_DRAW_ENSEMBLE);
    for (size_t i = 0; i < rows; i++)
        order[i] = i;
    for (size_t i = rows; i > 1; i--) { /* Fisher-Yates */
        size_t k = (size_t)rng_below(&r, i), moved = order[i - 1];
        order[i - 1] = order[k];
        order[k] = moved;
    }
    for (size_t i = 0; i < rows; i++)
        ret[order[i]] = i < rows - rows / 2;
    return AS_OK;
}

/* ---- checks ---- */

static bool all_finite(const float *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(v[i]))
            return false;
    return true;
}

static as_status check_targets(const struct ensemble_input *in, struct as_err *err)
{
    const struct score_truth *t = &in->truth;
    if (!score_is_of_classes(in->metric)) {
        if (!t->targets || !all_finite(t->targets, t->rows * t->outputs))
            return as_fail(err, AS_E_INVAL, "%s needs targets that are finite numbers",
                           score_format(in->metric));
        return AS_OK;
    }
    if (!t->classes)
        return as_fail(err, AS_E_INVAL, "%s needs targets that are classes",
                       score_format(in->metric));
    for (size_t i = 0; i < t->rows; i++)
        if (t->classes[i] < 0 || (uint64_t)t->classes[i] >= t->outputs)
            return as_fail(err, AS_E_INVAL,
                           "row %zu has class %" PRId64 ", expected 0 to %zu (one per output)", i,
                           t->classes[i], t->outputs - 1);
    return AS_OK;
}

static as_status check_input(const struct ensemble_input *in, struct as_err *err)
{
    size_t cells, bytes, rows = in->truth.rows, outputs = in->truth.outputs;
    if (in->candidates == 0 || rows == 0 || outputs == 0)
        return as_fail(err, AS_E_INVAL,
                       "an ensemble needs candidates, rows and outputs; found %zu, %zu and %zu",
                       in->candidates, rows, outputs);
    if (in->candidates > ENSEMBLE_MAX_CANDIDATES)
        return as_fail(err, AS_E_TOO_LARGE, "%zu candidates, at most %d are allowed",
                       in->candidates, ENSEMBLE_MAX_CANDIDATES);
    if (in->size < 1 || in->size > ENSEMBLE_MAX_SIZE)
        return as_fail(err, AS_E_INVAL, "an ensemble of %zu members, expected 1 to %d", in->size,
                       ENSEMBLE_MAX_SIZE);
    if (rows > UINT32_MAX || __builtin_mul_overflow(rows, outputs, &cells) ||
        __builtin_mul_overflow(cells, 2 * sizeof(double), &bytes))
        return as_fail(err, AS_E_TOO_LARGE, "%zu rows of %zu outputs do not fit in memory", rows,
                       outputs);
    return check_targets(in, err);
}

/* ---- working memory ---- */

/* The metric as a loss, and the loss that guides the steps and settles ties. */
struct rank {
    double loss, guide;
};

static const struct rank worst = {INFINITY, INFINITY};

static bool rank_less(struct rank a, struct rank b)
{
    return a.loss < b.loss || (a.loss == b.loss && a.guide < b.guide);
}

struct work {
    const struct ensemble_input *in;
    bool *usable;       /* [candidates] */
    struct rank *alone; /* [candidates]: on the rows of the present selection */
    size_t *picks;      /* [size], in order */
    size_t n_picks;     /* of the best prefix, after select_members() */
    size_t best_alone;  /* the best single model, after select_members() */
    size_t *all, *half[2];
    size_t n_half[2];
    double *sum;          /* [rows, outputs]: of the members so far */
    double *fitted[2];    /* [rows, outputs]: out-of-fold: the ensemble, the best single */
    double *influence[2]; /* [rows] of each */
};

static void work_done(struct work *w)
{
    free(w->usable);
    free(w->alone);
    free(w->picks);
    free(w->all);
    free(w->sum);
    for (int k = 0; k < 2; k++) {
        free(w->half[k]);
        free(w->fitted[k]);
        free(w->influence[k]);
    }
}

static as_status make_halves(struct work *w, struct as_err *err)
{
    size_t rows = w->in->truth.rows;
    AS_AUTO(as_freep) bool *mask = as_calloc(rows, sizeof *mask);
    if (!mask)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu rows", rows);
    as_status st = ensemble_split(rows, w->in->seed, mask, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < rows; i++) {
        int k = mask[i] ? 0 : 1;
        w->all[i] = i;
        w->half[k][w->n_half[k]++] = i;
    }
    if (w->n_half[1] == 0) /* a single row: there is no other */
        w->half[1][w->n_half[1]++] = w->half[0][0];
    return AS_OK;
}

static as_status work_init(struct work *w, const struct ensemble_input *in, struct as_err *err)
{
    size_t rows = in->truth.rows, cells = rows * in->truth.outputs;
    bool any = false;
    w->in = in;
    w->usable = as_calloc(in->candidates, sizeof *w->usable);
    w->alone = as_calloc(in->candidates, sizeof *w->alone);
    w->picks = as_calloc(in->size, sizeof *w->picks);
    w->all = as_calloc(rows, sizeof *w->all);
    w->sum = as_calloc(cells, sizeof *w->sum);
    bool there = w->usable && w->alone && w->picks && w->all && w->sum;
    for (int k = 0; k < 2; k++) {
        w->half[k] = as_calloc(rows, sizeof *w->half[k]);
        w->fitted[k] = as_calloc(cells, sizeof *w->fitted[k]);
        w->influence[k] = as_calloc(rows, sizeof *w->influence[k]);
        there = there && w->half[k] && w->fitted[k] && w->influence[k];
    }
    if (!there)
        return as_fail(err, AS_E_NOMEM, "out of memory for an ensemble");
    for (size_t j = 0; j < in->candidates; j++) {
        w->usable[j] = all_finite(in->predictions[j], cells);
        any = any || w->usable[j];
    }
    if (!any)
        return as_fail(err, AS_E_INVAL, "no candidate has predictions that are all finite");
    return make_halves(w, err);
}

/* ---- predictions of members ---- */

/* Rows in a list: [n]. */
struct list {
    const size_t *rows;
    size_t n;
};

/* Add a candidate's predictions of the rows to sum [n, outputs]. */
static void add_member(const struct work *w, struct list l, size_t j, double times, double *sum)
{
    size_t C = w->in->truth.outputs;
    const float *p = w->in->predictions[j];
    for (size_t i = 0; i < l.n; i++)
        for (size_t c = 0; c < C; c++)
            sum[i * C + c] += times * (double)p[l.rows[i] * C + c];
}

/* The guide of w->sum with one more member j (or none), which makes it a mean of `members`: the log
 * loss, the squared error, or for mae the absolute error. */
static double guide_of(const struct work *w, struct list l, size_t j, double members)
{
    const struct score_truth *t = &w->in->truth;
    size_t C = t->outputs;
    bool classes = t->classes != NULL && score_is_of_classes(w->in->metric);
    const float *p = j < w->in->candidates ? w->in->predictions[j] : NULL;
    double total = 0;
    for (size_t i = 0; i < l.n; i++) {
        size_t row = l.rows[i], first = classes ? (size_t)t->classes[row] : 0;
        for (size_t c = first; c < (classes ? first + 1 : C); c++) {
            double v = (w->sum[i * C + c] + (p ? (double)p[row * C + c] : 0)) / members;
            double d = classes ? 0 : v - (double)t->targets[row * C + c];
            total += classes                      ? -log(fmin(fmax(v, MIN_PROBABILITY), 1))
                     : w->in->metric == SCORE_MAE ? fabs(d)
                                                  : d * d;
        }
    }
    return total / (double)l.n;
}

/* The rank of w->sum as a mean of `members`. A metric without a value leaves the choice to the
 * guide. */
static as_status rank_of(const struct work *w, struct list l, double members, struct rank *ret,
                         struct as_err *err)
{
    const struct ensemble_input *in = w->in;
    double v = 0;
    as_status st =
        score_compute(in->metric, &in->truth, l.rows, l.n, w->sum, members, &v, NULL, err);
    if (st != AS_OK)
        return st;
    v = score_is_maximized(in->metric) ? -v : v;
    *ret = (struct rank){isnan(v) ? 0 : v, guide_of(w, l, in->candidates, members)};
    return AS_OK;
}

static void clear_sum(struct work *w, struct list l)
{
    memset(w->sum, 0, l.n * w->in->truth.outputs * sizeof *w->sum);
}

/* ---- selection ---- */

/* Rank each candidate alone, and remember the best. */
static as_status rank_singles(struct work *w, struct list l, struct as_err *err)
{
    struct rank best = worst;
    for (size_t j = 0; j < w->in->candidates; j++) {
        w->alone[j] = worst;
        if (!w->usable[j])
            continue;
        clear_sum(w, l);
        add_member(w, l, j, 1, w->sum);
        as_status st = rank_of(w, l, 1, &w->alone[j], err);
        if (st != AS_OK)
            return st;
        if (rank_less(w->alone[j], best)) {
            best = w->alone[j];
            w->best_alone = j;
        }
    }
    return AS_OK;
}

/* Take the member j as pick number n, and keep the prefix if it is the best so far. */
static as_status take(struct work *w, struct list l, size_t j, size_t n, struct rank *best,
                      struct as_err *err)
{
    struct rank now;
    w->picks[n] = j;
    add_member(w, l, j, 1, w->sum);
    as_status st = rank_of(w, l, (double)(n + 1), &now, err);
    if (st != AS_OK)
        return st;
    if (n == 0 || rank_less(now, *best)) {
        *best = now;
        w->n_picks = n + 1;
    }
    return AS_OK;
}

/* The sorted start: the best candidates by the metric, one after the other. Afterwards w->n_picks of
 * them, whose mean is best, are in w->sum. */
static as_status start_sorted(struct work *w, struct list l, struct rank *best, struct as_err *err)
{
    size_t most = w->in->size < START_SIZE ? w->in->size : START_SIZE;
    clear_sum(w, l);
    for (size_t n = 0; n < most; n++) {
        size_t next = w->in->candidates;
        for (size_t j = 0; j < w->in->candidates; j++) {
            bool taken = !w->usable[j];
            for (size_t k = 0; k < n; k++)
                taken = taken || w->picks[k] == j;
            if (!taken && (next == w->in->candidates || rank_less(w->alone[j], w->alone[next])))
                next = j;
        }
        if (next == w->in->candidates)
            break;
        as_status st = take(w, l, next, n, best, err);
        if (st != AS_OK)
            return st;
    }
    clear_sum(w, l);
    for (size_t k = 0; k < w->n_picks; k++)
        add_member(w, l, w->picks[k], 1, w->sum);
    return AS_OK;
}

/* Select on the rows of the list: w->picks, w->n_picks and w->best_alone. */
static as_status select_members(struct work *w, struct list l, struct as_err *err)
{
    struct rank best = worst;
    as_status st = rank_singles(w, l, err);
    if (st != AS_OK)
        return st;
    st = start_sorted(w, l, &best, err);
    if (st != AS_OK)
        return st;
    for (size_t n = w->n_picks; n < w->in->size; n++) {
        size_t next = w->best_alone;
        double least = INFINITY;
        for (size_t j = 0; j < w->in->candidates; j++) {
            double guide = w->usable[j] ? guide_of(w, l, j, (double)(n + 1)) : INFINITY;
            if (guide < least) {
                least = guide;
                next = j;
            }
        }
        st = take(w, l, next, n, &best, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

/* ---- measurement ---- */

/* Select on one half, and let that predict the other half. */
static as_status fit_across(struct work *w, struct ensemble *e, int half, struct as_err *err)
{
    const struct list from = {w->half[half], w->n_half[half]};
    const struct list to = {w->half[!half], w->n_half[!half]};
    size_t C = w->in->truth.outputs;
    as_status st = select_members(w, from, err);
    if (st != AS_OK)
        return st;
    e->half_singles[half] = w->best_alone;
    clear_sum(w, to);
    for (size_t k = 0; k < w->n_picks; k++)
        add_member(w, to, w->picks[k], 1 / (double)w->n_picks, w->sum);
    for (size_t i = 0; i < to.n; i++)
        for (size_t c = 0; c < C; c++) {
            size_t at = to.rows[i] * C + c;
            w->fitted[0][at] = w->sum[i * C + c];
            w->fitted[1][at] = (double)w->in->predictions[w->best_alone][at];
        }
    return AS_OK;
}

/* The interval of the gain, from the influences of both on each row. */
static void set_interval(const struct work *w, struct ensemble *e)
{
    double sum = 0, n = (double)e->rows;
    for (size_t i = 0; i < e->rows; i++) {
        double d = w->influence[0][i] - w->influence[1][i];
        sum += d * d;
    }
    double half = e->rows < ENSEMBLE_INTERVAL_ROWS ? NAN : QUANTILE * sqrt(sum) / n;
    e->gain_low = e->gain - half;
    e->gain_high = e->gain + half;
    e->within_noise = !(e->gain_low > 0 || e->gain_high < 0);
}

static as_status measure(struct work *w, struct ensemble *e, struct as_err *err)
{
    const struct ensemble_input *in = w->in;
    double *values[2] = {&e->value, &e->single_value};
    for (int half = 0; half < 2; half++) {
        as_status st = fit_across(w, e, half, err);
        if (st != AS_OK)
            return st;
    }
    for (int k = 0; k < 2; k++) {
        as_status st = score_compute(in->metric, &in->truth, NULL, e->rows, w->fitted[k], 1,
                                     values[k], w->influence[k], err);
        if (st != AS_OK)
            return st;
    }
    e->gain =
        score_is_maximized(in->metric) ? e->value - e->single_value : e->single_value - e->value;
    set_interval(w, e);
    return AS_OK;
}

/* ---- the ensemble ---- */

static struct ensemble *ensemble_create(const struct ensemble_input *in)
{
    AS_AUTO(ensemble_freep) struct ensemble *e = as_calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->candidates = in->candidates;
    e->rows = in->truth.rows;
    e->counts = as_calloc(in->candidates, sizeof *e->counts);
    e->weights = as_calloc(in->candidates, sizeof *e->weights);
    e->values = as_calloc(in->candidates, sizeof *e->values);
    if (!e->counts || !e->weights || !e->values)
        return NULL;
    return as_steal(e);
}

/* Select on all rows, and describe what was selected. */
static as_status make_members(struct work *w, struct ensemble *e, struct as_err *err)
{
    const struct ensemble_input *in = w->in;
    const struct list all = {w->all, e->rows};
    as_status st = select_members(w, all, err);
    if (st != AS_OK)
        return st;
    e->best_single = w->best_alone;
    e->size = w->n_picks;
    for (size_t k = 0; k < w->n_picks; k++)
        e->counts[w->picks[k]]++;
    for (size_t j = 0; j < in->candidates; j++) {
        e->members += e->counts[j] > 0;
        e->weights[j] = (double)e->counts[j] / (double)e->size;
    }
    clear_sum(w, all);
    for (size_t k = 0; k < w->n_picks; k++)
        add_member(w, all, w->picks[k], 1, w->sum);
    st = score_compute(in->metric, &in->truth, NULL, e->rows, w->sum, (double)e->size,
                       &e->value_selected, NULL, err);
    bool any = !isnan(e->value_selected); /* whether the rows give the metric a value */
    for (size_t j = 0; j < in->candidates; j++) {
        double loss = w->alone[j].loss;
        e->values[j] = !w->usable[j] || !any ? NAN : score_is_maximized(in->metric) ? -loss : loss;
    }
    return st;
}

as_status ensemble_select(const struct ensemble_input *in, struct ensemble **ret,
                          struct as_err *err)
{
    as_status st = check_input(in, err);
    if (st < 0)
        return st;
    AS_AUTO(work_done) struct work w = {0};
    AS_AUTO(ensemble_freep) struct ensemble *e = ensemble_create(in);
    if (!e)
        return as_fail(err, AS_E_NOMEM, "out of memory for an ensemble");
    st = work_init(&w, in, err);
    if (st != AS_OK)
        return st;
    st = measure(&w, e, err);
    if (st != AS_OK)
        return st;
    st = make_members(&w, e, err);
    if (st != AS_OK)
        return st;
    e->recommended = e->members > 1 && e->gain > 0;
    *ret = as_steal(e);
    return AS_OK;
}
