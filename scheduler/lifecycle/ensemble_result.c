/* The computation of an ensemble, and its result as JSON.
 *
 * Every fault of the predictions becomes a reason in the result, also that they are too large for
 * the memory, because a sweep must not stay unfinished because of a file. Only an unreachable
 * database is an error; then another round or another server tries again. */
#include "scheduler/lifecycle/ensemble_result.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "scheduler/lifecycle/ensemble_data.h"
#include "scheduler/lifecycle/ensemble_metric.h"
#include "scheduler/lifecycle/ensemble_sizes.h"
#include "scheduler/lifecycle/ensemble_test.h"
#include "search/score_interval.h"

struct work {
    const struct ensemble_job *job;
    struct ensemble_data data;
    struct ensemble_metric metric;
    json_t *test; /* owned: what the test rows say; NULL: there are none */
};

static void work_done(struct work *w)
{
    json_decref(w->test);
    ensemble_data_done(&w->data);
}

static const struct ensemble_candidate *candidate_of(const struct work *w, size_t taken)
{
    return &w->data.candidates[w->data.index[taken]];
}

/* ---- the parts of the result ---- */

static int set_number(json_t *j, const char *name, double v)
{
    return json_object_set_new(j, name, json_number_new(v));
}

static json_t *member_json(const struct work *w, const struct ensemble *e, size_t i)
{
    const struct ensemble_candidate *c = candidate_of(w, i);
    JSON_AUTO params = NULL;
    if (json_parse(c->params, strlen(c->params), &params, NULL) != AS_OK)
        return NULL;
    return json_pack("{s:s*, s:I, s:f, s:i, s:o, s:O}", "sweep", w->job->several ? c->sweep : NULL,
                     "number", (json_int_t)c->number, "weight", e->weights[i], "count",
                     (int)e->counts[i], "value", json_number_new(e->values[i]), "params", params);
}

/* Members in the order in which they are added (ensemble_members): a model that is made of the
 * result has them in this order, so it computes the same sums. */
static json_t *members_json(const struct work *w, const struct ensemble *e)
{
    JSON_AUTO list = json_array();
    AS_AUTO(as_freep) size_t *order = as_calloc(e->candidates, sizeof *order);
    if (!order)
        return NULL;
    ensemble_members(e, order);
    for (size_t i = 0; i < e->members; i++)
        if (json_array_append_new(list, member_json(w, e, order[i])) != 0)
            return NULL;
    return as_steal(list);
}

/* The trials that are best outside of each fold, each once. */
static json_t *picked_json(const struct work *w, const struct ensemble *e)
{
    JSON_AUTO list = json_array();
    for (size_t k = 0; k < e->folds; k++) {
        const struct ensemble_candidate *c = candidate_of(w, e->fold_singles[k]);
        bool known = false;
        for (size_t j = 0; j < k; j++)
            known = known || e->fold_singles[j] == e->fold_singles[k];
        json_t *item = w->job->several ? json_sprintf("%s/%lld", c->sweep, (long long)c->number)
                                       : json_integer((json_int_t)c->number);
        if (known)
            json_decref(item);
        else if (json_array_append_new(list, item) != 0)
            return NULL;
    }
    return as_steal(list);
}

/* The 90 % interval of a figure; NULL if there is none, or memory is out. */
static json_t *interval_json(const struct work *w, double value, double half, double evidence)
{
    double low, high;
    score_interval(w->metric.metric, value, half, evidence, &low, &high);
    return isnan(half) ? NULL
                       : json_pack("{s:o, s:o, s:f}", "low", json_number_new(low), "high",
                                   json_number_new(high), "probability", SCORE_INTERVAL);
}

static json_t *single_json(const struct work *w, const struct ensemble *e)
{
    const struct ensemble_candidate *c = candidate_of(w, e->best_single);
    return json_pack("{s:s*, s:I, s:o, s:o*, s:o, s:o}", "sweep", w->job->several ? c->sweep : NULL,
                     "number", (json_int_t)c->number, "value", json_number_new(e->single_value),
                     "interval", interval_json(w, e->single_value, e->single_half, e->evidence),
                     "value_select", json_number_new(e->values[e->best_single]), "picked",
                     picked_json(w, e));
}

static json_t *gain_json(const struct ensemble *e)
{
    JSON_AUTO j = json_pack("{s:o, s:b}", "value", json_number_new(e->gain), "within_noise",
                            (int)e->within_noise);
    if (j && !isnan(e->gain_low) &&
        (set_number(j, "low", e->gain_low) != 0 || set_number(j, "high", e->gain_high) != 0 ||
         json_object_set_new(j, "probability", json_real(SCORE_INTERVAL)) != 0))
        return NULL;
    return as_steal(j);
}

/* {"number": N, "sweep"?}: a trial. */
static json_t *trial_json(const struct work *w, size_t candidate)
{
    const struct ensemble_candidate *c = candidate_of(w, candidate);
    return json_pack("{s:s*, s:I}", "sweep", w->job->several ? c->sweep : NULL, "number",
                     (json_int_t)c->number);
}

/* The trial of each value of the column, and that of any other. */
static json_t *buckets_json(const struct work *w, const struct ensemble *e)
{
    const struct ensemble_data *d = &w->data;
    JSON_AUTO list = json_array();
    for (size_t b = 0; b < d->n_buckets; b++) {
        JSON_AUTO bucket = trial_json(w, e->of_bucket[b]);
        if (!bucket || json_object_set(bucket, "value", json_array_get(d->bucket_values, b)) != 0 ||
            json_array_append(list, bucket) != 0)
            return NULL;
    }
    return json_pack("{s:s, s:s, s:O, s:o}", "kind", "by", "column", d->bucket_column, "buckets",
                     list, "other", trial_json(w, e->of_bucket[d->n_buckets]));
}

/* NULL: memory is out. */
static json_t *numbers_json(const double *v, size_t n)
{
    JSON_AUTO list = json_array();
    for (size_t c = 0; c < n; c++)
        if (json_array_append_new(list, json_real(v[c])) != 0)
            return NULL;
    return as_steal(list);
}

static json_t *linear_json(const struct work *w, const struct ensemble *e)
{
    return json_pack("{s:s, s:s, s:o, s:o}", "kind", "linear", "inputs",
                     w->data.classes ? "log" : "outputs", "biases",
                     numbers_json(e->biases, e->outputs), "penalty", json_number_new(e->penalty));
}

/* How outputs of members become outputs of the ensemble, as struct ensemble says. */
static json_t *combine_json(const struct work *w, const struct ensemble *e)
{
    JSON_AUTO j = e->of_bucket ? buckets_json(w, e)
                  : e->biases  ? linear_json(w, e)
                               : json_pack("{s:s}", "kind", "mean");
    JSON_AUTO calibration = NULL;
    if (!j || e->calibration.slope == 0)
        return as_steal(j);
    calibration = json_pack("{s:f}", "slope", e->calibration.slope);
    if (!calibration ||
        (e->outputs == 2 &&
         json_object_set_new(calibration, "bias", json_real(e->calibration.bias)) != 0) ||
        json_object_set(j, "calibration", calibration) != 0 ||
        (!isnan(e->threshold) &&
         json_object_set_new(j, "threshold", json_real(e->threshold)) != 0) ||
        (e->class_weights &&
         json_object_set_new(j, "class_weights", numbers_json(e->class_weights, e->outputs)) != 0))
        return NULL;
    return as_steal(j);
}

static char *ready_json(const struct work *w, const struct ensemble *e)
{
    const struct ensemble_metric *m = &w->metric;
    const struct ensemble_options *o = &w->job->options;
    JSON_AUTO j = json_pack(
        "{s:s, s:n, s:s, s:I, s:s, s:s, s:b, s:s*, s:I, s:I, s:o, s:o*, s:o, s:o, s:o, "
        "s:s, s:o, s:o, s:I}",
        "state", "ready", "reason", "method", ensemble_method_names[o->method], "size",
        (json_int_t)o->size, "metric", score_format(m->metric), "goal",
        score_is_maximized(m->metric) ? "maximize" : "minimize", "is_sweep_metric",
        (int)m->is_sweeps, "metric_reason", m->reason[0] ? m->reason : NULL, "rows",
        (json_int_t)e->rows, "folds", (json_int_t)e->folds, "value", json_number_new(e->value),
        "interval", interval_json(w, e->value, e->value_half, e->evidence), "value_select",
        json_number_new(e->value_selected), "best_single", single_json(w, e), "gain", gain_json(e),
        "recommended", e->recommended ? "ensemble" : "single", "combine", combine_json(w, e),
        "members", members_json(w, e), "candidates", (json_int_t)w->data.n_taken);
    if (j && w->data.weights && json_object_set_new(j, "weighted", json_true()) != 0)
        return NULL;
    if (j && o->non_negative && json_object_set_new(j, "non_negative", json_true()) != 0)
        return NULL;
    if (j && o->calibrate && json_object_set_new(j, "calibrate", json_true()) != 0)
        return NULL;
    if (j && w->test && json_object_set(j, "test", w->test) != 0)
        return NULL;
    if (j && w->data.n_no_room > 0 &&
        json_object_set_new(j, "left_out", json_integer((json_int_t)w->data.n_no_room)) != 0)
        return NULL;
    return j ? json_format_ordered(j) : NULL;
}

char *ensemble_none(const char *reason, size_t candidates)
{
    JSON_AUTO j = json_pack("{s:s, s:s, s:I}", "state", "none", "reason", reason, "candidates",
                            (json_int_t)candidates);
    return j ? json_format(j) : NULL;
}

/* ---- the computation ---- */

static as_status choose_metric(struct work *w, struct as_err *err)
{
    const struct ensemble_data *d = &w->data;
    AS_AUTO(as_freep) double *values = as_calloc(d->n_taken, sizeof *values);
    if (!values)
        return as_fail_nomem(err);
    for (size_t i = 0; i < d->n_taken; i++)
        values[i] = candidate_of(w, i)->value;
    const struct ensemble_metric_input in = {.name = w->job->metric,
                                             .asked = w->job->asked,
                                             .is_trainers = w->job->is_trainers,
                                             .maximize = w->job->maximize,
                                             .truth = ensemble_data_truth(d),
                                             .n = d->n_taken,
                                             .predictions = (const float *const *)d->taken,
                                             .values = values};
    return ensemble_metric_choose(&in, &w->metric, err);
}

/* AS_E_INVAL, AS_E_TOO_LARGE, …: there is none, and the message says why. */
static as_status compute(struct store *db, struct work *w, char **ret, struct as_err *err)
{
    const struct ensemble_job *job = w->job;
    AS_AUTO(ensemble_freep) struct ensemble *e = NULL;
    AS_AUTO(ensemble_sizes_done) struct ensemble_sizes sizes = {0};
    if (job->n < 2)
        return as_fail(err, AS_E_INVAL,
                       "fewer than two completed trials left predictions.npy and targets.npy");
    as_status st = ensemble_data_read(db, job->candidates, job->n, &w->data, err);
    if (st != AS_OK)
        return st;
    if (w->data.n_taken < 2)
        return as_fail(err, AS_E_INVAL,
                       "fewer than two completed trials left usable predictions.npy and "
                       "targets.npy");
    st = choose_metric(w, err);
    if (st == AS_OK && job->options.method == ENSEMBLE_BUCKETING)
        st = ensemble_data_read_buckets(db, job->n, job->by, false, &w->data, err);
    if (st == AS_OK && job->max_bytes > 0)
        st = ensemble_sizes_read(&w->data, job->max_bytes, &sizes, err);
    if (st != AS_OK)
        return st;
    const struct ensemble_input in = {.candidates = w->data.n_taken,
                                      .truth = ensemble_data_truth(&w->data),
                                      .predictions = (const float *const *)w->data.taken,
                                      .metric = w->metric.metric,
                                      .method = job->options.method,
                                      .size = job->options.size,
                                      .non_negative = job->options.non_negative,
                                      .calibrate = job->options.calibrate,
                                      .buckets = w->data.buckets,
                                      .n_buckets = w->data.n_buckets,
                                      .bytes = job->max_bytes > 0 ? &sizes.of : NULL,
                                      .seed = job->seed};
    st = ensemble_select(&in, &e, err);
    if (st == AS_OK)
        st = ensemble_test(db, &w->data, e, w->metric.metric, &w->test, err);
    if (st != AS_OK)
        return st;
    *ret = ready_json(w, e);
    return *ret ? AS_OK : as_fail_nomem(err);
}

as_status ensemble_compute(struct store *db, const struct ensemble_job *job, char **ret_json,
                           const char **ret_state, struct as_err *err)
{
    AS_AUTO(work_done) struct work w = {.job = job};
    struct as_err why = {0};
    as_status st = compute(db, &w, ret_json, &why);
    *ret_state = "ready";
    if (st == AS_OK)
        return AS_OK;
    if (st == AS_E_UNAVAILABLE)
        return as_fail(err, st, "%s", why.msg);
    if (job->n >= 2)
        log_write(LOG_WARN, "no ensemble", "sweep=%s error=\"%s\"", job->sweep, why.msg);
    *ret_state = "none";
    *ret_json = ensemble_none(why.msg, job->n);
    return *ret_json ? AS_OK : as_fail_nomem(err);
}
