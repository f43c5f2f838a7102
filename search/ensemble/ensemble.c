/* Ensembles: the table of methods, and the measurement of what they return.
 *
 * A method works on a list of rows. It is applied to the rows outside of each fold, which predicts
 * the rows of the fold, and to all rows, which makes the ensemble. The out-of-fold predictions of
 * all folds are one prediction for each row, and the metric is computed from all of them at once.
 *
 * docs/decisions/4013 has the reasons. */
#include "search/ensemble/ensemble.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "base/str.h"
#include "search/ensemble/selection_priv.h"
#include "search/problem/random_stream.h"
#include "search/score_interval.h"

static const ensemble_fit_fn methods[ENSEMBLE_METHODS] = {
    [ENSEMBLE_GREEDY] = greedy_fit,
    [ENSEMBLE_STACKING] = stacking_fit,
    [ENSEMBLE_AVERAGE] = average_fit,
    [ENSEMBLE_BUCKETING] = bucketing_fit,
};

void ensemble_free(struct ensemble *e)
{
    if (!e)
        return;
    free(e->counts);
    free(e->weights);
    free(e->biases);
    free(e->of_bucket);
    free(e->class_weights);
    free(e->values);
    free(e);
}

/* ---- folds ---- */

size_t ensemble_n_folds(size_t rows)
{
    size_t folds = rows > ENSEMBLE_MANY_ROWS ? ENSEMBLE_FOLDS_MANY : ENSEMBLE_FOLDS;
    return rows < folds ? rows : folds;
}

as_status ensemble_places(size_t rows, uint64_t seed, size_t *ret, struct as_err *err)
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
        ret[order[i]] = i;
    return AS_OK;
}

/* ---- working memory ---- */

struct work {
    const struct ensemble_input *in;
    size_t *places; /* [rows] */
    struct selection s;
    struct combination c;
    size_t *rows;         /* [2, rows]: a fold, and what is outside of it */
    double *part;         /* [rows, outputs]: predictions of a list */
    double *fitted[2];    /* [rows, outputs]: out-of-fold: the ensemble, the best single */
    double *influence[2]; /* [rows] of each */
};

static void work_done(struct work *w)
{
    selection_done(&w->s);
    combination_done(&w->c);
    free(w->places);
    free(w->rows);
    free(w->part);
    for (int k = 0; k < 2; k++) {
        free(w->fitted[k]);
        free(w->influence[k]);
    }
}

static as_status work_init(struct work *w, const struct ensemble_input *in, struct as_err *err)
{
    size_t rows = in->truth.rows, cells = rows * in->truth.outputs;
    w->in = in;
    w->places = as_calloc(rows, sizeof *w->places);
    w->rows = as_calloc(rows, 2 * sizeof *w->rows);
    w->part = as_calloc(cells, sizeof *w->part);
    bool there = w->places && w->rows && w->part;
    for (int k = 0; k < 2; k++) {
        w->fitted[k] = as_calloc(cells, sizeof *w->fitted[k]);
        w->influence[k] = as_calloc(rows, sizeof *w->influence[k]);
        there = there && w->fitted[k] && w->influence[k];
    }
    if (!there)
        return as_fail(err, AS_E_NOMEM, "out of memory for an ensemble");
    as_status st = ensemble_places(rows, in->seed, w->places, err);
    if (st == AS_OK)
        st = selection_init(&w->s, in, w->places, err);
    return st == AS_OK ? combination_init(&w->c, in, err) : st;
}

static as_status fit(struct work *w, struct row_list l, struct as_err *err)
{
    combination_clear(&w->c, w->in);
    as_status st = selection_rank_singles(&w->s, l, err);
    if (st == AS_OK)
        st = methods[w->in->method](&w->s, l, &w->c, err);
    if (st != AS_OK || !w->in->calibrate)
        return st;
    combination_predict(&w->c, w->in, l, w->part);
    return calibration_fit(w->in, l, w->part, &w->c, err);
}

/* ---- measurement ---- */

/* The rows of a fold, and the others; a single row is both. */
static void cut_fold(struct work *w, size_t folds, size_t fold, struct row_list *ret_in,
                     struct row_list *ret_out)
{
    size_t n = w->in->truth.rows, n_in = 0, n_out = 0;
    size_t *in = w->rows, *out = w->rows + n;
    for (size_t i = 0; i < n; i++) {
        bool inside = w->places[i] * folds / n == fold;
        if (inside)
            in[n_in++] = i;
        if (!inside || n == 1)
            out[n_out++] = i;
    }
    *ret_in = (struct row_list){in, n_in};
    *ret_out = (struct row_list){out, n_out};
}

/* Fit outside of a fold, and let that predict the fold. */
static as_status fit_across(struct work *w, struct ensemble *e, size_t fold, struct as_err *err)
{
    size_t C = w->in->truth.outputs;
    struct row_list to, from;
    cut_fold(w, e->folds, fold, &to, &from);
    as_status st = fit(w, from, err);
    if (st != AS_OK)
        return st;
    e->fold_singles[fold] = w->s.order[0];
    combination_predict(&w->c, w->in, to, w->part);
    combination_decide(&w->c, to.n, w->part);
    for (size_t i = 0; i < to.n; i++)
        for (size_t c = 0; c < C; c++) {
            size_t at = to.rows[i] * C + c;
            w->fitted[0][at] = w->part[i * C + c];
            w->fitted[1][at] = (double)w->in->predictions[w->s.order[0]][at];
        }
    return AS_OK;
}

/* The intervals of the figures and of the gain, from the influences of both on each row. */
static void set_intervals(const struct work *w, struct ensemble *e)
{
    const double *a = w->influence[0], *b = w->influence[1];
    bool enough = e->rows >= ENSEMBLE_INTERVAL_ROWS;
    double half = enough ? score_half_width(a, b, e->rows) : NAN;
    e->value_half = enough ? score_half_width(a, NULL, e->rows) : NAN;
    e->single_half = enough ? score_half_width(b, NULL, e->rows) : NAN;
    e->evidence = score_evidence(w->in->metric, &w->in->truth);
    e->gain_low = e->gain - half;
    e->gain_high = e->gain + half;
    e->within_noise = !(e->gain_low > 0 || e->gain_high < 0);
}

static as_status measure(struct work *w, struct ensemble *e, struct as_err *err)
{
    const struct ensemble_input *in = w->in;
    double *values[2] = {&e->value, &e->single_value};
    for (size_t fold = 0; fold < e->folds; fold++) {
        as_status st = fit_across(w, e, fold, err);
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
    set_intervals(w, e);
    return AS_OK;
}

/* ---- the ensemble ---- */

static struct ensemble *ensemble_create(const struct ensemble_input *in)
{
    AS_AUTO(ensemble_freep) struct ensemble *e = as_calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->candidates = in->candidates;
    e->outputs = in->truth.outputs;
    e->rows = in->truth.rows;
    e->folds = ensemble_n_folds(e->rows);
    e->values = as_calloc(in->candidates, sizeof *e->values);
    return e->values ? as_steal(e) : NULL;
}

/* Fit on all rows, and describe what came out. */
static as_status make_members(struct work *w, struct ensemble *e, struct as_err *err)
{
    const struct ensemble_input *in = w->in;
    for (size_t i = 0; i < e->rows; i++)
        w->rows[i] = i;
    const struct row_list all = {w->rows, e->rows};
    as_status st = fit(w, all, err);
    if (st != AS_OK)
        return st;
    e->best_single = w->s.order[0];
    for (size_t j = 0; j < in->candidates; j++) {
        e->size += w->c.counts[j];
        e->members += w->c.counts[j] > 0;
    }
    combination_predict(&w->c, in, all, w->part);
    combination_decide(&w->c, e->rows, w->part);
    st = score_compute(in->metric, &in->truth, NULL, e->rows, w->part, 1, &e->value_selected, NULL,
                       err);
    bool any = !isnan(e->value_selected); /* whether the rows give the metric a value */
    for (size_t j = 0; j < in->candidates; j++) {
        double loss = w->s.alone[j].loss;
        e->values[j] = !w->s.usable[j] || !any          ? NAN
                       : score_is_maximized(in->metric) ? -loss
                                                        : loss;
    }
    e->counts = as_steal(w->c.counts);
    e->weights = as_steal(w->c.weights);
    e->biases = w->c.is_linear ? as_steal(w->c.biases) : NULL;
    e->of_bucket = w->c.is_by_bucket ? as_steal(w->c.of_bucket) : NULL;
    e->penalty = w->c.penalty;
    e->calibration = w->c.calibration;
    e->threshold = w->c.threshold;
    e->class_weights = w->c.n_class_weights > 0 ? as_steal(w->c.class_weights) : NULL;
    return st;
}

as_status ensemble_select(const struct ensemble_input *in, struct ensemble **ret,
                          struct as_err *err)
{
    as_status st = ensemble_input_check(in, err);
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
    e->recommended = (e->members > 1 || in->calibrate) && e->gain > 0;
    *ret = as_steal(e);
    return AS_OK;
}

void ensemble_members(const struct ensemble *e, size_t *ret)
{
    (void)combination_members(e->counts, e->weights, e->candidates, ret);
}

/* A view. */
static struct combination combination_of(const struct ensemble *e)
{
    return (struct combination){.counts = e->counts,
                                .weights = e->weights,
                                .biases = e->biases,
                                .is_linear = e->biases,
                                .of_bucket = e->of_bucket,
                                .is_by_bucket = e->of_bucket,
                                .calibration = e->calibration,
                                .threshold = e->threshold,
                                .class_weights = e->class_weights,
                                .n_class_weights = e->class_weights ? e->outputs : 0};
}

void ensemble_predict(const struct ensemble *e, const struct ensemble_input *in, const size_t *rows,
                      size_t n, double *ret)
{
    const struct combination c = combination_of(e);
    combination_predict(&c, in, (struct row_list){rows, n}, ret);
}

void ensemble_decide(const struct ensemble *e, size_t n, double *p)
{
    const struct combination c = combination_of(e);
    combination_decide(&c, n, p);
}
