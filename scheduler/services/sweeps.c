/* Sweeps for the API: created from a document, listed, deleted. sweep_change.c changes them.
 *
 * A document is parsed before a transaction begins. What depends on other rows (its data sets, a
 * free id) is checked in the transaction that stores it. */
#include "scheduler/services/sweeps.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"
#include "scheduler/services/cursor_priv.h"
#include "scheduler/services/sweep_reading.h"
#include "scheduler/services/sweep_stack.h"
#include "scheduler/assign/grouping.h"
#include "scheduler/sweep/stored_doc.h"
#include "scheduler/sweep/sweep_doc.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/rung_report_store.h"
#include "scheduler/store/sweep_head_store.h"
#include "scheduler/store/sweep_row_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/trial_row_store.h"
#include "scheduler/lifecycle/rungs.h"
#include "scheduler/lifecycle/transition.h"
#include "search/learned.h"
#include "search/regret_bound.h"

#define SWEEP_ID_TRIES 10000 /* name-2 … name-10000 */

/* Create. */

/* A sweep that will be created. */
struct creation {
    const struct sweep_doc *doc;
    const char *document;              /* canonical JSON */
    const char *objectives, *outcomes; /* JSON; NULL */
    bool is_paused, is_unique;
    const struct idem_key *idem; /* NULL: none */
    struct faults *faults;       /* NULL: the first fault is returned alone */
};

/* The objectives as JSON, if there are several; *ret stays NULL for one. */
static as_status write_objectives(const struct sweep_doc *d, char **ret, struct as_err *err)
{
    JSON_AUTO list = json_array();
    if (d->n_objectives < 2)
        return AS_OK;
    int bad = list ? 0 : -1;
    for (size_t i = 0; i < d->n_objectives; i++)
        bad |= json_array_append_new(
            list, json_pack("{s:s, s:s}", "name", d->objectives[i].name, "goal",
                            d->objectives[i].maximize ? "maximize" : "minimize"));
    *ret = bad ? NULL : json_format(list);
    return *ret ? AS_OK : as_fail_nomem(err);
}

static as_status write_outcomes(const struct sweep_doc *d, char **ret, struct as_err *err)
{
    JSON_AUTO list = json_array();
    if (d->n_outcomes == 0)
        return AS_OK;
    int bad = list ? 0 : -1;
    for (size_t i = 0; i < d->n_outcomes; i++) {
        const struct sweep_outcome *o = &d->outcomes[i];
        json_t *j = json_pack("{s:s}", "metric", o->metric);
        if (j && isfinite(o->min))
            bad |= json_object_set_new(j, "min", json_real(o->min));
        if (j && isfinite(o->max))
            bad |= json_object_set_new(j, "max", json_real(o->max));
        bad |= json_array_append_new(list, j);
    }
    *ret = bad ? NULL : json_format(list);
    return *ret ? AS_OK : as_fail_nomem(err);
}

/* The number of trials that may share a process: the document's number; else a small one if the
 * method learns, because the suggestions of a group do not know each other's results; else what the
 * runner measured as best. */
static int64_t max_group_of(const struct sweep_doc *d)
{
    if (d->trial.kind != TRIAL_TRAIN || d->is_gang)
        return 0;
    if (d->group > 0)
        return d->group;
    return d->method->is_model_based ? GROUP_LEARNS : SWEEP_MAX_GROUP;
}

/* Trials that the search makes: of a population forks follow. */
static int64_t first_trials(const struct sweep_doc *d)
{
    return d->stopping.method == STOP_PBT ? d->stopping.pbt.population : d->limits.max_trials;
}

static const char *ranks_by(const struct sweep_doc *d)
{
    return d->searches_ranks ? d->space->params[d->ranks_param].name : NULL;
}

/* May a program go on with fewer processes? */
static bool shrinks(const struct sweep_doc *d)
{
    return d->trial.kind == TRIAL_COMMAND && d->is_gang && d->min_ranks < d->least_ranks;
}

static struct sweep_new sweep_of(const struct sweep_doc *d, const char *id, const char *document)
{
    return (struct sweep_new){.id = id,
                              .name = d->name,
                              .document = document,
                              .metric = d->metric,
                              .method = d->method->name,
                              .maximize = d->maximize,
                              .seed = (int64_t)d->seed,
                              .planned = first_trials(d),
                              .max_concurrent = d->limits.max_concurrent_trials,
                              .max_failed = d->limits.max_failed_trials,
                              .max_restarts = d->limits.max_restarts,
                              .trial_timeout_ms = d->limits.trial_timeout_ms,
                              .wall_time_ms = d->limits.wall_time_ms,
                              .grace_ms = d->limits.grace_ms,
                              .target = d->limits.target,
                              .keeps_timed_out = d->limits.keeps_timed_out,
                              .gpus = d->gpus,
                              .priority = d->priority,
                              .cpus = d->cpus,
                              .memory_bytes = d->memory_bytes,
                              .exclusive = d->exclusive,
                              .gang = d->is_gang,
                              .ranks = d->ranks,
                              .min_ranks = d->min_ranks,
                              .ranks_by = ranks_by(d),
                              .least_ranks = d->least_ranks,
                              .shrinks = shrinks(d),
                              .elastic = d->trial.kind == TRIAL_TRAIN,
                              .launch = d->trial.launch == LAUNCH_FIRST ? "first" : "all",
                              .ensemble_size = (int64_t)d->ensemble.size,
                              .ensemble_method = ensemble_method_names[d->ensemble.method],
                              .ensemble_non_negative = d->ensemble.non_negative,
                              .ensemble_calibrate = d->ensemble.calibrate,
                              .learns = d->method->is_model_based,
                              .for_runners = d->trial.kind != TRIAL_NONE,
                              .max_group = max_group_of(d),
                              .group_given = max_group_of(d) > 0 && d->group > 0,
                              .rungs = d->stopping.steps,
                              .n_rungs = d->stopping.n_rungs,
                              .rungs_late = d->stopping.late,
                              .rungs_strict = d->stopping.strict,
                              .population = d->stopping.pbt.population,
                              .most = d->limits.max_trials,
                              .max_steps = d->limits.max_steps,
                              .stop_when = d->limits.stop_when,
                              .regret_due =
                                  d->n_objectives == 1 ? (int64_t)regret_bound_next(0) : 0};
}

/* Insert under the first free id; of a unique name there is one. */
static as_status insert_sweep(struct tx *t, struct arena *a, const struct creation *c,
                              int64_t *ret_key, const char **ret_id, struct as_err *err)
{
    char id[96];
    for (int i = 1; i <= SWEEP_ID_TRIES; i++) {
        if (i == 1)
            snprintf(id, sizeof id, "%s", c->doc->name);
        else
            snprintf(id, sizeof id, "%s-%d", c->doc->name, i);
        struct sweep_new s = sweep_of(c->doc, id, c->document);
        s.objectives = c->objectives;
        s.outcomes = c->outcomes;
        s.is_paused = c->is_paused;
        as_status st = store_sweep_add(t, &s, ret_key, err);
        if (st != AS_OK)
            return st;
        if (*ret_key != 0) {
            *ret_id = arena_strdup(a, id);
            return *ret_id ? AS_OK : as_fail_nomem(err);
        }
        if (c->is_unique)
            return as_fail_at(err, AS_E_CONFLICT, "/name", "/name: the sweep '%s' exists already",
                              id);
    }
    return as_fail_at(err, AS_E_CONFLICT, "/name", "%d sweeps are named '%s' already",
                      SWEEP_ID_TRIES, c->doc->name);
}

/* The sweep that was created with an idempotency key. */
static as_status get_made(struct tx *t, struct arena *a, const char *id, struct sweep_row *ret,
                          struct as_err *err)
{
    int64_t key = 0;
    as_status st = store_sweep_key(t, id, &key, err);
    if (st == AS_E_NOT_FOUND)
        return as_fail(err, AS_E_CONFLICT,
                       "the sweep '%s', which this idempotency key made, was "
                       "deleted",
                       id);
    if (st != AS_OK)
        return st;
    return store_sweep_get(t, a, key, ret, err);
}

/* Insert the sweep, the data sets that its trials may name, and the event. */
static as_status add_sweep(struct tx *t, struct arena *a, const struct creation *c,
                           int64_t *ret_key, const char **ret_id, struct as_err *err)
{
    as_status st = sweep_check_datasets(t, a, c->doc, c->faults, err);
    if (st == AS_OK)
        st = sweep_check_stack(t, a, c->doc, c->faults, err);
    if (st != AS_OK)
        return st;
    st = insert_sweep(t, a, c, ret_key, ret_id, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < c->doc->n_datasets; i++) {
        st = store_sweep_add_dataset(t, *ret_key, c->doc->datasets[i], err);
        if (st != AS_OK)
            return st;
    }
    struct event_new e = {.type = "sweep.created",
                          .sweep_key = *ret_key,
                          .sweep = *ret_id,
                          .state = sweep_state_format(c->is_paused ? SWEEP_PAUSED : SWEEP_RUNNING)};
    return store_event_add(t, &e, err);
}

static as_status make_sweep(struct tx *t, struct arena *a, const struct creation *c,
                            struct sweep_row *ret, struct as_err *err)
{
    struct idem_made made;
    int64_t key = 0;
    const char *id = NULL;
    as_status st = idempotency_begin(t, a, c->idem, NULL, &made, err);
    if (st != AS_OK)
        return st;
    if (made.sweep)
        return get_made(t, a, made.sweep, ret, err);
    st = add_sweep(t, a, c, &key, &id, err);
    if (st != AS_OK)
        return st;
    st = idempotency_end(t, c->idem, id, -1, err);
    if (st != AS_OK)
        return st;
    return store_sweep_get(t, a, key, ret, err);
}

static as_status run_creation(struct store *db, struct arena *a, const struct creation *c,
                              struct sweep_row *ret, struct as_err *err)
{
    struct sweep_row row = {0};
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = make_sweep(run.tx, a, c, &row, err);
    if (run.status == AS_OK)
        *ret = row;
    return run.status;
}

as_status sweep_request_create(struct store *db, struct arena *a, const struct sweep_request *q,
                               struct sweep_row *ret, struct as_err *err)
{
    uint64_t seed = 0;
    random_bytes(&seed, sizeof seed);
    AS_AUTO(sweep_doc_freep) struct sweep_doc *parsed = NULL;
    as_status st = sweep_read_new(db, q->doc, seed, q->faults, &parsed, err);
    if (st != AS_OK)
        return st;
    AS_AUTO(as_freep) char *document = sweep_doc_format(parsed);
    AS_AUTO(as_freep) char *objectives = NULL;
    AS_AUTO(as_freep) char *outcomes = NULL;
    if (!document)
        return as_fail_nomem(err);
    st = write_objectives(parsed, &objectives, err);
    if (st != AS_OK)
        return st;
    st = write_outcomes(parsed, &outcomes, err);
    if (st != AS_OK)
        return st;
    const struct creation c = {.doc = parsed,
                               .document = document,
                               .objectives = objectives,
                               .outcomes = outcomes,
                               .is_paused = q->is_paused,
                               .is_unique = q->is_unique,
                               .idem = q->idem,
                               .faults = q->faults};
    return run_creation(db, a, &c, ret, err);
}

as_status sweep_create(struct store *db, struct arena *a, const json_t *doc,
                       const struct idem_key *idem, struct sweep_row *ret, struct as_err *err)
{
    const struct sweep_request q = {.doc = doc, .idem = idem};
    return sweep_request_create(db, a, &q, ret, err);
}

as_status sweep_create_paused(struct store *db, struct arena *a, const json_t *doc,
                              const struct idem_key *idem, struct sweep_row *ret,
                              struct as_err *err)
{
    const struct sweep_request q = {.doc = doc, .idem = idem, .is_paused = true};
    return sweep_request_create(db, a, &q, ret, err);
}

/* Read. */

static as_status get_sweep(struct tx *t, struct arena *a, const char *id, struct sweep_row *ret,
                           struct as_err *err)
{
    int64_t key = 0;
    as_status st = store_sweep_key(t, id, &key, err);
    if (st != AS_OK)
        return st;
    return store_sweep_get(t, a, key, ret, err);
}

as_status sweep_get(struct store *db, struct arena *a, const char *id, struct sweep_row *ret,
                    struct as_err *err)
{
    struct sweep_row row = {0};
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = get_sweep(run.tx, a, id, &row, err);
    if (run.status == AS_OK)
        *ret = row;
    return run.status;
}

/* Was nobody stopped at any rung, or did all that completed miss the last one? */
static bool may_warn(const struct stopping_report *r)
{
    int64_t n = 0;
    for (size_t i = 0; i < r->n_rungs; i++)
        n += r->rungs[i].stopped + r->rungs[i].waiting + r->rungs[i].obeyed + r->rungs[i].disobeyed;
    return n == 0 || (r->n_completed > 0 && r->rungs[r->n_rungs - 1].reached == 0);
}

static as_status read_stopping(struct tx *t, struct arena *a, const char *id,
                               struct stopping_report *ret, struct as_err *err)
{
    int64_t key = 0;
    as_status st = store_sweep_key(t, id, &key, err);
    if (st == AS_OK)
        st = store_rung_report(t, a, key, ret, err);
    return st == AS_OK && ret->is_there && may_warn(ret)
               ? rungs_warning(t, a, key, &ret->warning, err)
               : st;
}

as_status sweep_stopping(struct store *db, struct arena *a, const char *id,
                         struct stopping_report *ret, struct as_err *err)
{
    struct stopping_report report = {0};
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = read_stopping(run.tx, a, id, &report, err);
    if (run.status == AS_OK)
        *ret = report;
    return run.status;
}

static as_status read_reason(struct tx *t, struct arena *a, const char *id, const char **ret,
                             struct as_err *err)
{
    int64_t key = 0;
    as_status st = store_sweep_key(t, id, &key, err);
    return st == AS_OK ? store_trial_newest_reason(t, a, key, ret, err) : st;
}

as_status sweep_learned(struct store *db, struct arena *a, const struct sweep_row *sweep,
                        const char **ret, struct as_err *err)
{
    const char *text = NULL;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = read_reason(run.tx, a, sweep->id, &text, err);
    *ret = NULL;
    if (run.status != AS_OK || !text)
        return run.status;
    JSON_AUTO reason = json_loads(text, 0, NULL);
    JSON_AUTO document = json_loads(sweep->document, 0, NULL);
    JSON_AUTO list = learned_of_reason(reason, json_object_get(document, "parameters"));
    AS_AUTO(as_freep) char *out = list ? json_dumps(list, JSON_COMPACT) : NULL;
    if (!out || (json_array_size(list) && !(*ret = arena_strdup(a, out))))
        return as_fail_nomem(err);
    return AS_OK;
}

static as_status read_cursor(struct arena *a, const struct page_req *page, int64_t *ret_before,
                             struct as_err *err)
{
    const char *field = NULL;
    if (!page->cursor)
        return AS_OK;
    as_status st = cursor_read(a, page->cursor, "sweeps", &field, 1, err);
    if (st != AS_OK)
        return st;
    return cursor_i64(field, ret_before, err);
}

as_status sweep_list(struct store *db, struct arena *a, const struct sweep_query *q,
                     struct sweep_page *ret, struct as_err *err)
{
    struct sweep_list_query query = {.state = q->state ? sweep_state_format(*q->state) : NULL,
                                     .tag = q->tag,
                                     .dataset = q->dataset,
                                     .with_documents = q->with_documents};
    struct sweep_page rows = {0};
    int64_t next = 0;
    as_status st = page_size(&q->page, &query.size, err);
    if (st != AS_OK)
        return st;
    st = read_cursor(a, &q->page, &query.before, err);
    if (st != AS_OK)
        return st;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_sweep_list(run.tx, a, &query, &rows.rows, &rows.n, &next, err);
    if (run.status != AS_OK)
        return run.status;
    if (next) {
        char text[24];
        snprintf(text, sizeof text, "%" PRId64, next);
        rows.next_cursor = cursor_make(a, "sweeps", (const char *const[]){text}, 1);
        if (!rows.next_cursor)
            return as_fail_nomem(err);
    }
    *ret = rows;
    return AS_OK;
}

/* Delete. */

static as_status delete_ended(struct tx *t, const char *id, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct sweep_head s;
    int64_t key = 0;
    as_status st = store_sweep_key(t, id, &key, err);
    if (st != AS_OK)
        return st;
    st = store_sweep_lock(t, &a, key, &s, err);
    if (st != AS_OK)
        return st;
    if (!sweep_state_is_final(s.state))
        return as_fail(err, AS_E_CONFLICT, "the sweep '%s' is %s: cancel it first", s.id,
                       sweep_state_format(s.state));
    return store_sweep_delete(t, key, err);
}

as_status sweep_delete(struct store *db, const char *id, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = delete_ended(run.tx, id, err);
    return run.status;
}
