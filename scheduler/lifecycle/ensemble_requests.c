/* Ensembles on request.
 *
 * A request is stored as canonical JSON text, with the ends of its sweeps (the number of the end
 * that came last in each), so that a repeated request finds its row. Sweeps that have ended do not
 * change unless they run on, so the result is a pure function of this text and of the stored
 * artifacts: it can be computed by any server, more than once, to the same bytes. */
#include "scheduler/lifecycle/ensemble_requests.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "scheduler/lifecycle/ensemble_column.h"
#include "scheduler/lifecycle/ensemble_metric.h"
#include "scheduler/lifecycle/ensemble_result.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/sweep_head_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/sweep/ensemble_options.h"

#define BY_MAX 1024                       /* characters of a column's name */
#define MAX_BYTES_MOST (INT64_C(1) << 53) /* whole numbers of JSON */

/* A request: parsed from a body, or from the stored text. */
struct request {
    struct ensemble_options options;
    const char *by;                          /* bucketing: a column; NULL: none is named */
    const char *metric;                      /* to choose by; NULL: that of the sweeps */
    int64_t max_bytes;                       /* of the members' models together; 0: any */
    const char *sweeps[ENSEMBLE_SWEEPS_MAX]; /* views of the document, or of the caller's id */
    size_t n;
};

/* ---- the request ---- */

static as_status add_sweep(struct request *q, const char *id, const char *pointer,
                           struct as_err *err)
{
    for (size_t i = 0; i < q->n; i++)
        if (as_streq(q->sweeps[i], id))
            return as_fail_at(err, AS_E_INVAL, pointer, "%s: the sweep '%.80s' is named twice",
                              pointer, id);
    q->sweeps[q->n++] = id;
    return AS_OK;
}

static as_status parse_sweeps(const json_t *list, struct request *q, struct as_err *err)
{
    size_t i;
    json_t *item;
    if (json_array_size(list) > ENSEMBLE_SWEEPS_MAX - q->n)
        return as_fail_at(err, AS_E_INVAL, "/sweeps",
                          "/sweeps: found %zu further sweeps, expected at most %zu",
                          json_array_size(list), ENSEMBLE_SWEEPS_MAX - q->n);
    json_array_foreach(list, i, item)
    {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_index("/sweeps", i, at);
        if (!json_is_string(item) || json_string_length(item) == 0)
            return as_fail_at(err, AS_E_INVAL, at, "%s: expected the id of a sweep", at);
        as_status st = add_sweep(q, json_string_value(item), at, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

/* `by`, which bucketing alone has. */
static as_status parse_by(struct json_fields *f, struct request *q, struct as_err *err)
{
    as_status st = json_fields_text(f, "by", JSON_OPTIONAL, 1, BY_MAX, &q->by, err);
    if (st != AS_OK || !q->by || q->options.method == ENSEMBLE_BUCKETING)
        return st;
    return as_fail_at(err, AS_E_INVAL, "/by", "/by: found with method %s, expected bucketing",
                      ensemble_method_names[q->options.method]);
}

static as_status parse_metric(struct json_fields *f, struct request *q, struct as_err *err)
{
    score_metric metric;
    as_status st = json_fields_str(f, "metric", JSON_OPTIONAL, &q->metric, err);
    if (st != AS_OK || !q->metric || ensemble_metric_parse(q->metric, &metric))
        return st;
    return as_fail_at(err, AS_E_INVAL, "/metric",
                      "/metric: found '%.60s', expected a metric of predictions: error, accuracy, "
                      "log_loss, auc, f1, rmse, mae, …",
                      q->metric);
}

/* Each bucket needs a model: which of them to leave out is no question of bytes. */
static as_status parse_max_bytes(struct json_fields *f, struct request *q, struct as_err *err)
{
    as_status st =
        json_fields_i64(f, "max_bytes", JSON_OPTIONAL, 1, MAX_BYTES_MOST, &q->max_bytes, err);
    if (st != AS_OK || !q->max_bytes || !q->by)
        return st;
    return as_fail_at(err, AS_E_INVAL, "/max_bytes",
                      "/max_bytes: found beside `by`, which has a model for each bucket");
}

/* `sweep` NULL: all sweeps are in the document. */
static as_status parse_request(const json_t *body, const char *sweep, struct request *ret,
                               struct as_err *err)
{
    struct json_fields f;
    json_t *list = NULL;
    *ret = (struct request){.n = 0};
    as_status st = json_fields_init(&f, body, "", err);
    if (st == AS_OK)
        st = ensemble_options_parse(&f, &ret->options, err);
    if (st == AS_OK)
        st = parse_by(&f, ret, err);
    if (st == AS_OK)
        st = parse_metric(&f, ret, err);
    if (st == AS_OK)
        st = parse_max_bytes(&f, ret, err);
    if (st == AS_OK)
        st = json_fields_array(&f, "sweeps", JSON_OPTIONAL, &list, err);
    if (st == AS_OK)
        st = json_fields_end(&f, err);
    if (st == AS_OK && sweep)
        st = add_sweep(ret, sweep, "/sweeps", err);
    return st == AS_OK ? parse_sweeps(list, ret, err) : st;
}

static char *format_request(const struct request *q)
{
    JSON_AUTO j = ensemble_options_to_json(&q->options);
    json_t *list = json_array();
    int bad = !j || json_object_set_new(j, "sweeps", list) != 0;
    if (!bad && q->by)
        bad = json_object_set_new(j, "by", json_string(q->by)) != 0;
    if (!bad && q->metric)
        bad = json_object_set_new(j, "metric", json_string(q->metric)) != 0;
    if (!bad && q->max_bytes)
        bad = json_object_set_new(j, "max_bytes", json_integer((json_int_t)q->max_bytes)) != 0;
    for (size_t i = 0; !bad && i < q->n; i++)
        bad = json_array_append_new(list, json_string(q->sweeps[i])) != 0;
    return bad ? NULL : json_format(j);
}

/* ---- asking ---- */

/* Can these sweeps be combined? */
static as_status check_sources(const struct ensemble_source *s, size_t n, struct as_err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!s[i].found)
            return as_fail(err, AS_E_NOT_FOUND, "there is no sweep '%.80s'", s[i].id);
        if (!sweep_state_is_final(s[i].state))
            return as_fail(err, AS_E_CONFLICT,
                           "the sweep '%.80s' is %s; an ensemble is made of sweeps that have ended",
                           s[i].id, sweep_state_format(s[i].state));
        if (!as_streq(s[i].metric, s[0].metric) || s[i].maximize != s[0].maximize)
            return as_fail(err, AS_E_CONFLICT,
                           "the sweep '%.60s' %s %.40s, and '%.60s' %s %.40s; sweeps are combined "
                           "that have one metric and goal",
                           s[0].id, s[0].maximize ? "maximizes" : "minimizes", s[0].metric, s[i].id,
                           s[i].maximize ? "maximizes" : "minimizes", s[i].metric);
    }
    for (size_t i = 0; n > 1 && i < n; i++)
        if (!s[i].same_rows)
            return as_fail(
                err, AS_E_CONFLICT,
                "no completed trial of the sweep '%.80s' left predictions of the same "
                "held-out rows as the other sweeps: their targets.npy or weights.npy differ",
                s[i].id);
    return AS_OK;
}

static as_status ask(struct tx *t, struct arena *a, const struct request *q, const char *text,
                     struct ensemble_asked *ret, bool *ret_created, struct as_err *err)
{
    struct ensemble_source *s = NULL;
    struct sweep_head head;
    AS_AUTO(str_done) struct str ends = {0};
    int64_t key = 0, number = 0;
    as_status st = store_sweep_key(t, q->sweeps[0], &key, err);
    if (st == AS_OK)
        st = store_sweep_lock(t, a, key, &head, err); /* numbers follow each other */
    if (st == AS_OK)
        st = store_ensemble_sources(t, a, q->sweeps, q->n, &s, err);
    if (st == AS_OK)
        st = check_sources(s, q->n, err);
    for (size_t i = 0; st == AS_OK && q->by && i < q->n; i++)
        st = ensemble_column_check(t, q->sweeps[i], q->by, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < q->n; i++)
        str_printf(&ends, "%s%lld:%lld", i ? " " : "", (long long)s[i].key,
                   (long long)s[i].finish_seq);
    if ((st = str_check(&ends, err)) != AS_OK)
        return st;
    st =
        store_ensemble_ask(t, key, text, ends.s, ENSEMBLES_OF_SWEEP_MAX, &number, ret_created, err);
    if (st == AS_OK && *ret_created)
        tx_finishing(t);
    return st == AS_OK ? store_ensemble_asked_get(t, a, q->sweeps[0], number, ret, err) : st;
}

as_status ensemble_ask(struct store *db, struct arena *a, const char *sweep, const json_t *body,
                       struct ensemble_asked *ret, bool *ret_created, struct as_err *err)
{
    struct request q;
    as_status st = parse_request(body, sweep, &q, err);
    if (st != AS_OK)
        return st;
    AS_AUTO(as_freep) char *text = format_request(&q);
    if (!text)
        return as_fail_nomem(err);
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = ask(run.tx, a, &q, text, ret, ret_created, err);
    return run.status;
}

as_status ensemble_asked_get(struct store *db, struct arena *a, const char *sweep, int64_t number,
                             struct ensemble_asked *ret, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_ensemble_asked_get(run.tx, a, sweep, number, ret, err);
    return run.status;
}

static as_status list(struct tx *t, struct arena *a, const char *sweep,
                      struct ensemble_asked_list *ret, struct as_err *err)
{
    int64_t key = 0;
    as_status st = store_sweep_key(t, sweep, &key, err);
    return st == AS_OK ? store_ensemble_asked_list(t, a, sweep, &ret->rows, &ret->n, err) : st;
}

as_status ensemble_asked_list(struct store *db, struct arena *a, const char *sweep,
                              struct ensemble_asked_list *ret, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = list(run.tx, a, sweep, ret, err);
    return run.status;
}

/* ---- its sweeps ---- */

/* The sweep of this id must be the one that the ensemble was asked of: ids are given again. */
static as_status check_sweep(struct tx *t, const char *id, int64_t key, struct as_err *err)
{
    int64_t now = 0;
    struct as_err why = {0};
    as_status st = store_sweep_key(t, id, &now, &why);
    if (st == AS_OK && now == key)
        return AS_OK;
    if (st != AS_OK && st != AS_E_NOT_FOUND)
        return as_fail(err, st, "%s", why.msg);
    return as_fail(err, AS_E_CONFLICT,
                   "the sweep '%.80s' was deleted since the ensemble was asked for", id);
}

as_status ensemble_asked_sweeps(struct tx *t, struct arena *a, const struct ensemble_asked *e,
                                struct ensemble_asked_sweep **ret, size_t *ret_n,
                                struct as_err *err)
{
    JSON_AUTO body = NULL;
    const char *end = e->ends;
    as_status st = json_parse(e->request, strlen(e->request), &body, err);
    if (st != AS_OK)
        return st;
    const json_t *ids = json_object_get(body, "sweeps");
    size_t n = json_array_size(ids);
    struct ensemble_asked_sweep *sweeps = arena_alloc(a, n, sizeof *sweeps);
    if (!sweeps)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        sweeps[i].id = arena_strdup(a, json_string_value(json_array_get(ids, i)));
        if (!sweeps[i].id || !end)
            return as_fail(err, AS_E_INTERNAL, "the ends of ensemble %lld do not fit its request",
                           (long long)e->number);
        sweeps[i].key = strtoll(end, NULL, 10);
        end = strchr(end, ' ');
        end = end ? end + 1 : NULL;
        st = check_sweep(t, sweeps[i].id, sweeps[i].key, err);
        if (st != AS_OK)
            return st;
    }
    *ret = sweeps;
    *ret_n = n;
    return AS_OK;
}

/* ---- computing ---- */

struct work {
    struct arena *a; /* of the tick */
    struct ensemble_asked asked;
    struct request q;
    struct ensemble_source *sources;
    struct ensemble_candidate *candidates;
    size_t n;
    const char *state; /* of the result */
    char *json;        /* owned: the result */
};

static void work_done(struct work *w)
{
    free(w->json);
}

static as_status read_work(struct tx *t, struct work *w, struct as_err *err)
{
    as_status st = store_ensemble_sources(t, w->a, w->q.sweeps, w->q.n, &w->sources, err);
    if (st != AS_OK)
        return st;
    return store_ensemble_candidates(t, w->a, w->q.sweeps, w->q.n, w->sources[0].maximize,
                                     ENSEMBLE_CANDIDATES_MAX, &w->candidates, &w->n, err);
}

/* A sweep may have been deleted, or run on, since it was asked for. */
static as_status compute(struct store *db, struct work *w, struct as_err *err)
{
    const struct ensemble_source *s = w->sources;
    struct as_err why = {0};
    if (check_sources(s, w->q.n, &why) != AS_OK) {
        w->state = "none";
        w->json = ensemble_none(why.msg, w->n);
        return w->json ? AS_OK : as_fail_nomem(err);
    }
    bool is_trainers = true;
    for (size_t i = 0; i < w->q.n; i++)
        is_trainers = is_trainers && s[i].is_trainers;
    const struct ensemble_job job = {.sweep = s[0].id,
                                     .metric = s[0].metric,
                                     .asked = w->q.metric,
                                     .is_trainers = is_trainers,
                                     .maximize = s[0].maximize,
                                     .seed = (uint64_t)s[0].seed,
                                     .options = w->q.options,
                                     .by = w->q.by,
                                     .max_bytes = w->q.max_bytes,
                                     .several = w->q.n > 1,
                                     .candidates = w->candidates,
                                     .n = w->n};
    return ensemble_compute(db, &job, &w->json, &w->state, err);
}

static as_status put(struct tx *t, const struct work *w, struct as_err *err)
{
    bool done = false;
    as_status st = store_ensemble_asked_put(t, w->asked.key, w->state, w->json, &done, err);
    if (st != AS_OK || !done)
        return st; /* another server was faster, or the sweep is gone */
    const struct event_new e = {.type = "ensemble.ready",
                                .sweep_key = w->sources[0].key,
                                .sweep = w->asked.sweep,
                                .state = w->state};
    return store_event_add(t, &e, err);
}

as_status ensemble_requests_tick(struct store *db, bool *ret_worked, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    AS_AUTO(work_done) struct work w = {.a = &a};
    JSON_AUTO body = NULL;
    *ret_worked = false;
    struct tx_run taking = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&taking))
        taking.status = store_ensemble_asked_take(taking.tx, &a, ENSEMBLE_LEASE_MS, &w.asked, err);
    if (taking.status != AS_OK || w.asked.key == 0)
        return taking.status;
    as_status st = json_parse(w.asked.request, strlen(w.asked.request), &body, err);
    if (st == AS_OK)
        st = parse_request(body, NULL, &w.q, err);
    if (st != AS_OK) { /* of a later version; its servers can, after the lease */
        log_write(LOG_WARN, "the request of an ensemble cannot be read", "sweep=%s number=%lld",
                  w.asked.sweep, (long long)w.asked.number);
        return AS_OK;
    }
    struct tx_run reading = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&reading))
        reading.status = read_work(reading.tx, &w, err);
    if (reading.status != AS_OK || (st = compute(db, &w, err)) != AS_OK)
        return reading.status != AS_OK ? reading.status : st;
    struct tx_run ending = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&ending))
        ending.status = put(ending.tx, &w, err);
    *ret_worked = ending.status == AS_OK;
    return ending.status;
}
