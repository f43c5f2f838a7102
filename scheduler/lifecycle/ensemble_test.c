/* Test rows of an ensemble.
 *
 * The files of the test rows are read here, when the ensemble exists, and nowhere else in the
 * scheduler: what chooses models is given none of them. Both figures have an interval, and so has
 * their difference: normal ones, from the influences of the rows (search/score.h), as on the
 * held-out rows. */
#include "scheduler/lifecycle/ensemble_test.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "search/score_interval.h"

struct work {
    const struct ensemble_data *chosen;
    const struct ensemble *e;
    score_metric metric;
    struct ensemble_candidate *candidates; /* owned: those that are needed, with their test files */
    size_t *place;       /* owned: [e->candidates] their indices; SIZE_MAX: none */
    size_t n, n_without; /* those that are needed; of them, without test files */
    struct ensemble_data data;
    uint32_t *buckets;         /* owned: [rows] of an ensemble by buckets; else NULL */
    const float **predictions; /* owned: [e->candidates] views of data; NULL: not needed */
    double *outputs;           /* owned: [rows, outputs] */
    double *influence[2];      /* owned: [rows] of the ensemble, of the best single */
};

static void work_done(struct work *w)
{
    free(w->candidates);
    free(w->place);
    free(w->buckets);
    free(w->predictions);
    free(w->outputs);
    free(w->influence[0]);
    free(w->influence[1]);
    ensemble_data_done(&w->data);
}

/* ---- reading ---- */

static as_status choose(struct work *w, struct as_err *err)
{
    size_t most = w->e->candidates;
    w->candidates = as_calloc(most, sizeof *w->candidates);
    w->place = as_calloc(most, sizeof *w->place);
    w->predictions = as_calloc(most, sizeof *w->predictions);
    if (!w->candidates || !w->place || !w->predictions)
        return as_fail_nomem(err);
    for (size_t j = 0; j < most; j++) {
        w->place[j] = SIZE_MAX;
        if (w->e->counts[j] == 0 && j != w->e->best_single)
            continue;
        struct ensemble_candidate c = w->chosen->candidates[w->chosen->index[j]];
        c.predictions = c.test_predictions;
        c.targets = c.test_targets;
        c.weights = c.test_weights;
        c.buckets = c.test_buckets;
        w->n_without += !c.predictions || !c.targets;
        w->place[j] = w->n;
        w->candidates[w->n++] = c;
    }
    return AS_OK;
}

static const char *bucket_value(const struct ensemble_data *d, size_t bucket)
{
    return json_string_value(json_array_get(d->bucket_values, bucket));
}

/* The buckets of the test rows, by the numbers of the chosen ones. A value that these do not have
 * is in the last one, of any other. */
static as_status read_buckets(struct store *db, struct work *w, struct as_err *err)
{
    const struct ensemble_data *chosen = w->chosen;
    struct ensemble_data *d = &w->data;
    if (!w->e->of_bucket)
        return AS_OK;
    as_status st = ensemble_data_read_buckets(db, w->n, chosen->bucket_column, true, d, err);
    if (st != AS_OK)
        return as_err_prefix(err, st, "the values of '%.60s' in the test rows",
                             chosen->bucket_column);
    JSON_AUTO known = json_object();
    AS_AUTO(as_freep) uint32_t *number = as_calloc(d->n_buckets, sizeof *number);
    w->buckets = as_calloc(d->rows, sizeof *w->buckets);
    if (!known || !number || !w->buckets)
        return as_fail_nomem(err);
    for (size_t b = 0; b < chosen->n_buckets; b++)
        if (json_object_set_new(known, bucket_value(chosen, b), json_integer((json_int_t)b)) != 0)
            return as_fail_nomem(err);
    for (size_t b = 0; b < d->n_buckets; b++) {
        const json_t *j = json_object_get(known, bucket_value(d, b));
        number[b] = (uint32_t)(j ? (size_t)json_integer_value(j) : chosen->n_buckets);
    }
    for (size_t i = 0; i < d->rows; i++)
        w->buckets[i] = number[d->buckets[i]];
    return AS_OK;
}

static as_status read_files(struct store *db, struct work *w, struct as_err *err)
{
    if (w->n_without > 0)
        return as_fail(err, AS_E_INVAL, "%zu of the %zu trials left no test predictions",
                       w->n_without, w->n);
    for (size_t i = 1; i < w->n; i++)
        if (!as_streq(w->candidates[i].targets, w->candidates[0].targets) ||
            !as_streq(w->candidates[i].weights, w->candidates[0].weights))
            return as_fail(err, AS_E_INVAL,
                           "the trials were tested on different rows, or weigh them differently");
    as_status st = ensemble_data_read(db, w->candidates, w->n, &w->data, err);
    if (st == AS_OK && w->data.n_taken < w->n)
        return as_fail(err, AS_E_INVAL, "the test predictions of %zu trials are not usable",
                       w->n - w->data.n_taken);
    for (size_t j = 0; st == AS_OK && j < w->e->candidates; j++)
        if (w->place[j] != SIZE_MAX)
            w->predictions[j] = w->data.taken[w->place[j]]; /* all were taken, in their order */
    return st == AS_OK ? read_buckets(db, w, err) : st;
}

/* ---- figures ---- */

/* The half of an interval, from influences. */
static double half_of(const struct work *w, bool difference, int k)
{
    const double *a = w->influence[k], *b = difference ? w->influence[1 - k] : NULL;
    size_t rows = w->data.rows;
    return rows < ENSEMBLE_INTERVAL_ROWS ? NAN : score_half_width(a, b, rows);
}

static json_t *figure_new(double value, double low, double high)
{
    JSON_AUTO j = json_pack("{s:o}", "value", json_number_new(value));
    if (j && !isnan(low) &&
        (json_object_set_new(j, "low", json_number_new(low)) != 0 ||
         json_object_set_new(j, "high", json_number_new(high)) != 0 ||
         json_object_set_new(j, "probability", json_real(SCORE_INTERVAL)) != 0))
        return NULL;
    return as_steal(j);
}

/* The metric of the ensemble (k 0) or the best trial. */
static json_t *metric_new(const struct work *w, const double value[2], int k)
{
    double low, high;
    const struct score_truth truth = ensemble_data_truth(&w->data);
    score_interval(w->metric, value[k], half_of(w, false, k), score_evidence(w->metric, &truth),
                   &low, &high);
    return figure_new(value[k], low, high);
}

static as_status measure(struct work *w, double ret[2], struct as_err *err)
{
    const struct ensemble_input in = {.candidates = w->e->candidates,
                                      .truth = ensemble_data_truth(&w->data),
                                      .predictions = w->predictions,
                                      .metric = w->metric,
                                      .buckets = w->buckets,
                                      .n_buckets = w->chosen->n_buckets,
                                      .size = 1};
    size_t rows = w->data.rows, cells = rows * w->data.outputs;
    w->outputs = as_calloc(cells, sizeof *w->outputs);
    w->influence[0] = as_calloc(rows, sizeof **w->influence);
    w->influence[1] = as_calloc(rows, sizeof **w->influence);
    if (!w->outputs || !w->influence[0] || !w->influence[1])
        return as_fail_nomem(err);
    if (w->data.outputs != w->e->outputs)
        return as_fail(err, AS_E_INVAL, "the test predictions have %zu columns, the others %zu",
                       w->data.outputs, w->e->outputs);
    as_status st = ensemble_input_check(&in, err);
    for (int k = 0; st == AS_OK && k < 2; k++) {
        if (k == 0) {
            ensemble_predict(w->e, &in, NULL, rows, w->outputs);
            ensemble_decide(w->e, rows, w->outputs);
        }
        for (size_t i = 0; k == 1 && i < cells; i++)
            w->outputs[i] = (double)w->predictions[w->e->best_single][i];
        st = score_compute(w->metric, &in.truth, NULL, rows, w->outputs, 1, &ret[k],
                           w->influence[k], err);
    }
    return st;
}

static json_t *test_json(const struct work *w, const double value[2])
{
    double gain = score_is_maximized(w->metric) ? value[0] - value[1] : value[1] - value[0];
    double half = half_of(w, true, 0);
    JSON_AUTO difference = figure_new(gain, gain - half, gain + half);
    bool beyond = gain - half > 0 || gain + half < 0; /* false if there is no interval */
    if (!difference || json_object_set_new(difference, "within_noise", json_boolean(!beyond)) != 0)
        return NULL;
    return json_pack("{s:I, s:o, s:o, s:O}", "rows", (json_int_t)w->data.rows, "ensemble",
                     metric_new(w, value, 0), "best_single", metric_new(w, value, 1), "gain",
                     difference);
}

as_status ensemble_test(struct store *db, const struct ensemble_data *chosen,
                        const struct ensemble *e, score_metric metric, json_t **ret,
                        struct as_err *err)
{
    AS_AUTO(work_done) struct work w = {.chosen = chosen, .e = e, .metric = metric};
    struct as_err why = {0};
    double value[2] = {NAN, NAN};
    as_status st = choose(&w, err);
    *ret = NULL;
    if (st != AS_OK || w.n_without == w.n)
        return st;
    st = read_files(db, &w, &why);
    if (st == AS_OK)
        st = measure(&w, value, &why);
    if (st == AS_E_UNAVAILABLE || st == AS_E_NOMEM)
        return as_fail(err, st, "%s", why.msg);
    *ret = st == AS_OK ? test_json(&w, value) : json_pack("{s:s}", "reason", why.msg);
    return *ret ? AS_OK : as_fail_nomem(err);
}
