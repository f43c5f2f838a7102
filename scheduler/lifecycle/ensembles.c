/* The end of a sweep: its ensemble, then its last state.
 *
 * The authors of trials write the predictions, so every property of them is checked, and a wrong
 * one becomes a reason in the result. A sweep must not stay unfinished because of a file. Only an
 * unreachable database is an error; then another round or another server tries again.
 *
 * The work is split into three transactions: take (a lease in the table `ensemble`), read the
 * candidates, and finish. The computation runs between the last two, because it takes seconds. */
#include "scheduler/lifecycle/ensembles.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/formats/npy.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "search/ensemble.h"
#include "scheduler/lifecycle/ensemble_metric.h"
#include "scheduler/content/blob_file.h"
#include "scheduler/store/ensemble_store.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/lifecycle/transition.h"

#define ENSEMBLE_LEASE_MS 30000
#define ENSEMBLE_MAX_VALUES ((size_t)1 << 28) /* of all candidates together: 1 GiB of float32 */

struct work {
    struct arena *a; /* of the tick */
    struct sweep_head s;
    int64_t key;
    struct ensemble_candidate *candidates;
    size_t n;

    size_t rows, outputs;
    int64_t *classes; /* owned */
    float *targets;   /* owned */
    float **taken;    /* owned, each owned: predictions of the usable candidates */
    size_t *index;    /* owned: the candidate's number of each of them */
    size_t n_taken;

    const char *state; /* of the result */
    char *json;        /* owned: the result */
};

static void work_done(struct work *w)
{
    free(w->classes);
    free(w->targets);
    for (size_t i = 0; w->taken && i < w->n_taken; i++)
        free(w->taken[i]);
    free(w->taken);
    free(w->index);
    free(w->json);
}

/* Reading predictions and targets. */

/* Messages name the file by the name that people know, not by the temporary one. */
static as_status rename_error(struct as_err *err, as_status st, const char *path, const char *name)
{
    size_t len = strlen(path);
    if (st == AS_OK || !err || strncmp(err->msg, path, len) != 0)
        return st;
    char rest[AS_ERR_MSG_MAX];
    snprintf(rest, sizeof rest, "%s", err->msg + len);
    return as_fail(err, st, "%s%s", name, rest);
}

/* All values of an array as doubles: one or two dimensions. Owned by the caller. */
static as_status read_array(struct store *db, const char *sha256, const char *name,
                            size_t *ret_rows, size_t *ret_columns, npy_type *ret_type, double **ret,
                            struct as_err *err)
{
    AS_AUTO(blob_file_done) struct blob_file file = {0};
    AS_AUTO(npy_freep) struct npy *npy = NULL;
    as_status st = blob_file_init(db, sha256, &file, err);
    if (st != AS_OK)
        return st;
    st = rename_error(err, npy_open(file.path, &npy, err), file.path, name);
    if (st != AS_OK)
        return st;
    const struct npy_header *h = npy_header_of(npy);
    if (h->n_dims < 1 || h->n_dims > 2 || h->n_values == 0)
        return as_fail(err, AS_E_INVAL, "%s: an array of %zu dimensions and %zu values", name,
                       h->n_dims, h->n_values);
    if (h->n_values > ENSEMBLE_MAX_VALUES)
        return as_fail(err, AS_E_TOO_LARGE, "%s: %zu values", name, h->n_values);
    AS_AUTO(as_freep) double *values = as_calloc(h->n_values, sizeof *values);
    if (!values)
        return as_fail_nomem(err);
    st = npy_read(npy, h->n_values, values, err);
    if (st != AS_OK)
        return st;
    *ret_rows = h->shape[0];
    *ret_columns = h->n_dims == 2 ? h->shape[1] : 1;
    *ret_type = h->type;
    *ret = as_steal(values);
    return AS_OK;
}

/* Integers are classes; other values are targets of a regression. */
static as_status read_targets(struct store *db, struct work *w, struct as_err *err)
{
    AS_AUTO(as_freep) double *v = NULL;
    size_t columns = 0;
    npy_type type;
    as_status st =
        read_array(db, w->candidates[0].targets, "targets.npy", &w->rows, &columns, &type, &v, err);
    if (st != AS_OK)
        return st;
    bool classes = type != NPY_F4 && type != NPY_F8;
    if (classes && columns != 1)
        return as_fail(err, AS_E_INVAL, "targets.npy has %zu columns of classes", columns);
    if (classes) {
        w->classes = as_calloc(w->rows, sizeof *w->classes);
        for (size_t i = 0; w->classes && i < w->rows; i++)
            w->classes[i] = (int64_t)v[i];
        return w->classes ? AS_OK : as_fail_nomem(err);
    }
    w->outputs = columns;
    w->targets = as_calloc(w->rows * columns, sizeof *w->targets);
    for (size_t i = 0; w->targets && i < w->rows * columns; i++) {
        w->targets[i] = (float)v[i];
        if (!isfinite(w->targets[i]))
            return as_fail(err, AS_E_INVAL, "targets.npy holds a value that is not finite");
    }
    return w->targets ? AS_OK : as_fail_nomem(err);
}

/* The predictions of one candidate. They must have the shape of the targets and of the first
 * candidate. */
static as_status read_predictions(struct store *db, struct work *w, const char *sha256, float **ret,
                                  struct as_err *err)
{
    AS_AUTO(as_freep) double *v = NULL;
    size_t rows = 0, columns = 0;
    npy_type type;
    as_status st = read_array(db, sha256, "predictions.npy", &rows, &columns, &type, &v, err);
    if (st != AS_OK)
        return st;
    if (rows != w->rows || (w->outputs != 0 && columns != w->outputs))
        return as_fail(err, AS_E_INVAL,
                       "predictions.npy is %zu x %zu, the targets ask for %zu x %zu", rows, columns,
                       w->rows, w->outputs);
    float *f = as_calloc(rows * columns, sizeof *f);
    if (!f)
        return as_fail_nomem(err);
    for (size_t i = 0; i < rows * columns; i++) {
        f[i] = (float)v[i];
        if (!isfinite(f[i])) {
            free(f);
            return as_fail(err, AS_E_INVAL, "predictions.npy holds a value that is not finite");
        }
    }
    w->outputs = columns;
    *ret = f;
    return AS_OK;
}

/* Read the usable candidates. A candidate that is not usable is left out. */
static as_status read_candidates(struct store *db, struct work *w, struct as_err *err)
{
    as_status st = read_targets(db, w, err);
    if (st != AS_OK)
        return st;
    w->taken = as_calloc(w->n, sizeof *w->taken);
    w->index = as_calloc(w->n, sizeof *w->index);
    if (!w->taken || !w->index)
        return as_fail_nomem(err);
    for (size_t i = 0; i < w->n; i++) {
        struct as_err why = {0};
        if (w->n_taken > 0 && (w->n_taken + 1) * w->rows * w->outputs > ENSEMBLE_MAX_VALUES)
            break;
        st = read_predictions(db, w, w->candidates[i].predictions, &w->taken[w->n_taken], &why);
        if (st == AS_E_UNAVAILABLE)
            return as_fail(err, st, "%s", why.msg);
        if (st == AS_OK)
            w->index[w->n_taken++] = i;
        else
            log_write(LOG_WARN, "predictions left out of the ensemble",
                      "trial=%s/%lld error=\"%s\"", w->s.id, (long long)w->candidates[i].number,
                      why.msg);
    }
    return AS_OK;
}

/* The result. */

static json_t *member_json(const struct work *w, const struct ensemble *e, size_t i)
{
    const struct ensemble_candidate *c = &w->candidates[w->index[i]];
    JSON_AUTO params = NULL;
    if (json_parse(c->params, strlen(c->params), &params, NULL) != AS_OK)
        return NULL;
    return json_pack("{s:I, s:f, s:i, s:o, s:O}", "number", (json_int_t)c->number, "weight",
                     e->weights[i], "count", (int)e->counts[i], "value",
                     json_number_new(e->values[i]), "params", params);
}

/* Members in the order of falling weight. */
static json_t *members_json(const struct work *w, const struct ensemble *e)
{
    JSON_AUTO list = json_array();
    for (unsigned count = ENSEMBLE_MAX_SIZE; count > 0; count--) {
        for (size_t i = 0; i < e->candidates; i++) {
            if (e->counts[i] == count && json_array_append_new(list, member_json(w, e, i)) != 0)
                return NULL;
        }
    }
    return as_steal(list);
}

static json_int_t number_of(const struct work *w, size_t taken)
{
    return (json_int_t)w->candidates[w->index[taken]].number;
}

static json_t *single_json(const struct work *w, const struct ensemble *e)
{
    return json_pack("{s:I, s:o, s:o, s:[I, I]}", "number", number_of(w, e->best_single), "value",
                     json_number_new(e->single_value), "value_select",
                     json_number_new(e->values[e->best_single]), "picked",
                     number_of(w, e->half_singles[0]), number_of(w, e->half_singles[1]));
}

static json_t *gain_json(const struct ensemble *e)
{
    JSON_AUTO j = json_pack("{s:o, s:b}", "value", json_number_new(e->gain), "within_noise",
                            (int)e->within_noise);
    if (j && !isnan(e->gain_low) &&
        (json_object_set_new(j, "low", json_number_new(e->gain_low)) != 0 ||
         json_object_set_new(j, "high", json_number_new(e->gain_high)) != 0 ||
         json_object_set_new(j, "probability", json_real(ENSEMBLE_INTERVAL)) != 0))
        return NULL;
    return as_steal(j);
}

static as_status ready_json(struct work *w, const struct ensemble *e,
                            const struct ensemble_metric *m, struct as_err *err)
{
    JSON_AUTO j =
        json_pack("{s:s, s:n, s:s, s:s, s:b, s:s*, s:I, s:o, s:o, s:o, s:o, s:s, s:o, s:I}",
                  "state", "ready", "reason", "metric", score_format(m->metric), "goal",
                  score_is_maximized(m->metric) ? "maximize" : "minimize", "is_sweep_metric",
                  (int)m->is_sweeps, "metric_reason", m->reason[0] ? m->reason : NULL, "rows",
                  (json_int_t)e->rows, "value", json_number_new(e->value), "value_select",
                  json_number_new(e->value_selected), "best_single", single_json(w, e), "gain",
                  gain_json(e), "recommended", e->recommended ? "ensemble" : "single", "members",
                  members_json(w, e), "candidates", (json_int_t)w->n_taken);
    w->json = j ? json_format_ordered(j) : NULL;
    w->state = "ready";
    return w->json ? AS_OK : as_fail_nomem(err);
}

static as_status none_json(struct work *w, const char *reason, struct as_err *err)
{
    JSON_AUTO j = json_pack("{s:s, s:s}", "state", "none", "reason", reason);
    free(w->json);
    w->json = j ? json_format(j) : NULL;
    w->state = "none";
    return w->json ? AS_OK : as_fail_nomem(err);
}

static struct score_truth truth_of(const struct work *w)
{
    return (struct score_truth){w->rows, w->outputs, w->classes, w->targets};
}

static as_status choose_metric(const struct work *w, struct ensemble_metric *ret,
                               struct as_err *err)
{
    AS_AUTO(as_freep) double *values = as_calloc(w->n_taken, sizeof *values);
    if (!values)
        return as_fail_nomem(err);
    for (size_t i = 0; i < w->n_taken; i++)
        values[i] = w->candidates[w->index[i]].value;
    struct ensemble_metric_input in = {.name = w->s.metric,
                                       .is_trainers = w->s.max_group > 0,
                                       .maximize = w->s.maximize,
                                       .truth = truth_of(w),
                                       .n = w->n_taken,
                                       .predictions = (const float *const *)w->taken,
                                       .values = values};
    return ensemble_metric_choose(&in, ret, err);
}

/* Read, select, describe. An error, other than of the database, becomes the reason in the
 * result. */
static as_status select_members(struct store *db, struct work *w, struct as_err *err)
{
    AS_AUTO(ensemble_freep) struct ensemble *e = NULL;
    as_status st = read_candidates(db, w, err);
    if (st != AS_OK)
        return st;
    if (w->n_taken < 2)
        return none_json(w,
                         "fewer than two completed trials left usable predictions.npy and "
                         "targets.npy",
                         err);
    struct ensemble_metric metric;
    st = choose_metric(w, &metric, err);
    if (st != AS_OK)
        return st;
    struct ensemble_input in = {.candidates = w->n_taken,
                                .truth = truth_of(w),
                                .predictions = (const float *const *)w->taken,
                                .metric = metric.metric,
                                .size = (size_t)w->s.ensemble_size,
                                .seed = (uint64_t)w->s.seed};
    st = ensemble_select(&in, &e, err);
    if (st != AS_OK)
        return st;
    return ready_json(w, e, &metric, err);
}

static as_status compute_ensemble(struct store *db, struct work *w, struct as_err *err)
{
    if (w->s.ensemble_size == 0)
        return none_json(w, "the sweep asks for none", err);
    if (w->n < 2)
        return none_json(w, "fewer than two completed trials left predictions.npy and targets.npy",
                         err);
    struct as_err why = {0};
    as_status st = select_members(db, w, &why);
    if (st == AS_OK)
        return st;
    if (st == AS_E_UNAVAILABLE)
        return as_fail(err, st, "%s", why.msg);
    log_write(LOG_ERROR, "no ensemble", "sweep=%s error=\"%s\"", w->s.id, why.msg);
    return none_json(w, why.msg, err);
}

/* Transactions. */

static as_status take_ensemble(struct tx *t, struct work *w, struct as_err *err)
{
    as_status st = store_ensemble_take(t, ENSEMBLE_LEASE_MS, &w->key, err);
    if (st != AS_OK || w->key == 0)
        return st;
    return store_sweep_lock(t, w->a, w->key, &w->s, err);
}

static as_status finish_sweep(struct tx *t, const struct work *w, struct as_err *err)
{
    struct sweep_head now;
    as_status st = store_sweep_lock(t, w->a, w->key, &now, err);
    if (st != AS_OK || now.state != SWEEP_FINISHING || now.finish_seq != w->s.finish_seq)
        return st; /* the sweep was cancelled, or another server was faster, or the sweep ran on
                      and ended again: its ensemble is computed from the trials of that end */
    st = store_ensemble_put(t, w->key, w->state, w->json, err);
    if (st != AS_OK)
        return st;
    struct event_new e = {
        .type = "ensemble.ready", .sweep_key = w->key, .sweep = now.id, .state = w->state};
    st = store_event_add(t, &e, err);
    if (st != AS_OK)
        return st;
    bool any = now.counts.by_state[TRIAL_COMPLETED] > 0;
    const char *why =
        !any && now.wall_time_over ? "wall_time is over, and no trial completed" : NULL;
    return sweep_transition(t, w->a, &now, any ? SWEEP_EV_FINISH : SWEEP_EV_FAIL, why, err);
}

static as_status read_work(struct store *db, struct work *w, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_ensemble_candidates(run.tx, w->a, w->key, w->s.maximize,
                                               ENSEMBLE_CANDIDATES_MAX, &w->candidates, &w->n, err);
    return run.status;
}

as_status ensembles_tick(struct store *db, bool *ret_worked, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    AS_AUTO(work_done) struct work w = {.a = &a};
    *ret_worked = false;
    struct tx_run taking = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&taking))
        taking.status = take_ensemble(taking.tx, &w, err);
    if (taking.status != AS_OK || w.key == 0)
        return taking.status;
    as_status st = read_work(db, &w, err);
    if (st != AS_OK)
        return st;
    st = compute_ensemble(db, &w, err);
    if (st != AS_OK)
        return st;
    struct tx_run ending = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&ending))
        ending.status = finish_sweep(ending.tx, &w, err);
    *ret_worked = ending.status == AS_OK;
    return ending.status;
}

/* Read the result. */

as_status ensemble_get(struct store *db, struct arena *a, const char *sweep, const char **ret_json,
                       struct as_err *err)
{
    const char *json = NULL;
    sweep_state state = SWEEP_RUNNING;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_ensemble_get(run.tx, a, sweep, &json, &state, err);
    if (run.status != AS_OK)
        return run.status;
    if (!json && sweep_state_is_final(state))
        json = arena_printf(a, "{\"reason\":\"the sweep %s\",\"state\":\"none\"}",
                            state == SWEEP_FAILED ? "failed" : "was cancelled");
    else if (!json)
        json = arena_strdup(a, "{\"state\":\"pending\"}");
    if (!json)
        return as_fail_nomem(err);
    *ret_json = json;
    return AS_OK;
}
