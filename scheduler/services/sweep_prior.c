/* All earlier sweeps are read in one transaction, so their trials belong together. Trials that
 * completed with finite values within their sweep's bounds count, sorted by cost;
 * warm_start_keeps() chooses among them. The snapshot is part of the document from then on, so a
 * replay needs no other sweep (decision 4011). */
#include "scheduler/services/sweep_prior.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "scheduler/store/history_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/sweep/stored_doc.h"
#include "scheduler/sweep/sweep_doc.h"
#include "search/prior/warm_start.h"

#define METRICS_MAX (1 + SEARCH_MAX_OUTCOMES)

struct taken {
    double cost;
    int64_t number;
};

/* The sweep that is read. */
struct earlier {
    struct tx *t;
    int64_t key;
    const struct sweep_doc *doc;
    const char *name;
    struct taken *list; /* owned */
    size_t n, cap;
};

static int compare_taken(const void *x, const void *y)
{
    const struct taken *a = x, *b = y;
    if (a->cost != b->cost)
        return a->cost < b->cost ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

/* Completed, with a finite value, within the bounds of its sweep. */
static bool counts(const struct sweep_doc *d, const struct history_trial *t)
{
    if (t->state != TRIAL_COMPLETED || !isfinite(t->values[0]))
        return false;
    for (size_t k = 0; k < d->n_outcomes; k++) {
        double v = t->values[1 + k];
        if (!(v >= d->outcomes[k].min && v <= d->outcomes[k].max))
            return false;
    }
    return true;
}

/* Drop the trials whose costs are not credible, as the search of their own sweep does. */
static as_status drop_absurd(struct taken *list, size_t *n, struct as_err *err)
{
    AS_AUTO(as_freep) double *costs = as_calloc(*n, sizeof *costs);
    double limit;
    size_t kept = 0;
    if (!costs)
        return as_fail_nomem(err);
    for (size_t i = 0; i < *n; i++)
        costs[i] = list[i].cost;
    as_status st = earlier_cost_limit(costs, *n, &limit, err);
    for (size_t i = 0; i < *n && st == AS_OK; i++)
        if (fabs(list[i].cost) <= limit)
            list[kept++] = list[i];
    *n = kept;
    return st;
}

static as_status read_part(const struct earlier *e, struct arena *a, int64_t from, int64_t to,
                           struct history_trial **ret, size_t *ret_n, struct as_err *err)
{
    const char *metrics[METRICS_MAX] = {e->doc->metric};
    for (size_t k = 0; k < e->doc->n_outcomes; k++)
        metrics[1 + k] = e->doc->outcomes[k].metric;
    return store_history_trials(e->t, a, e->key, from, HISTORY_NO_END, to, metrics,
                                1 + e->doc->n_outcomes, ret, ret_n, err);
}

static as_status take_part(struct earlier *e, int64_t from, int64_t to, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct history_trial *rows = NULL;
    size_t n = 0;
    as_status st = read_part(e, &a, from, to, &rows, &n, err);
    for (size_t i = 0; i < n && st == AS_OK; i++) {
        if (!counts(e->doc, &rows[i]))
            continue;
        st = as_reserve_one(&e->list, e->n, &e->cap, sizeof *e->list, err);
        double cost = e->doc->maximize ? -rows[i].values[0] : rows[i].values[0];
        if (st == AS_OK)
            e->list[e->n++] = (struct taken){cost, rows[i].number};
    }
    return st;
}

static as_status write_trial(const struct earlier *e, const struct taken *x, json_t *trials,
                             struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct history_trial *row = NULL;
    json_t *params = NULL;
    size_t n = 0;
    as_status st = read_part(e, &a, x->number, x->number + 1, &row, &n, err);
    if (st != AS_OK)
        return st;
    if (n == 0) /* as in the part, where it was */
        return as_fail(err, AS_E_CONFLICT, "trial %lld is gone", (long long)x->number);
    if ((st = json_parse(row->params, strlen(row->params), &params, err)) != AS_OK)
        return st;
    if (json_array_append_new(trials, json_pack("{s:o, s:f}", "params", params, "cost", x->cost)) <
        0)
        return as_fail_nomem(err);
    return AS_OK;
}

static as_status write_snapshot(const struct earlier *e, json_t **ret, struct as_err *err)
{
    JSON_AUTO j =
        json_pack("{s:s, s:I, s:[]}", "sweep", e->name, "completed", (json_int_t)e->n, "trials");
    as_status st = j ? AS_OK : as_fail_nomem(err);
    for (size_t i = 0; i < e->n && st == AS_OK; i++)
        if (warm_start_keeps(i, e->n))
            st = write_trial(e, &e->list[i], json_object_get(j, "trials"), err);
    if (st == AS_OK)
        *ret = as_steal(j);
    return st;
}

/* In parts: of a part only costs and numbers stay in memory. */
static as_status read_trials(struct earlier *e, int64_t total, const char *at, struct as_err *err)
{
    as_status st = AS_OK;
    for (int64_t from = 0; from < total && st == AS_OK; from += HISTORY_PART)
        st = take_part(e, from, total - from > HISTORY_PART ? from + HISTORY_PART : total, err);
    if (st < 0 || (st = drop_absurd(e->list, &e->n, err)) < 0)
        return st;
    if (e->n == 0)
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: the sweep '%s' has no completed trial to learn from", at, e->name);
    qsort(e->list, e->n, sizeof *e->list, compare_taken);
    return AS_OK;
}

static as_status take_sweep(struct tx *t, const char *name, const char *at, json_t **ret,
                            struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    AS_AUTO(sweep_doc_freep) struct sweep_doc *d = NULL;
    struct history_head head;
    int64_t key = 0;
    as_status st = store_sweep_key(t, name, &key, err);
    if (st == AS_E_NOT_FOUND)
        return as_fail_at(err, AS_E_INVAL, at, "%s: there is no sweep '%.63s'", at, name);
    if (st != AS_OK || (st = store_history_head(t, &a, key, true, &head, err)) != AS_OK ||
        (st = stored_doc_read(head.document, NULL, &d, err)) != AS_OK)
        return st;
    if (d->n_objectives > 1)
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: the sweep '%s' has %zu metrics; expected one of one metric", at,
                          name, d->n_objectives);
    struct earlier e = {.t = t, .key = key, .doc = d, .name = name};
    if ((st = read_trials(&e, head.total, at, err)) == AS_OK)
        st = write_snapshot(&e, ret, err);
    free(e.list);
    return st;
}

static as_status take_all(struct tx *t, const json_t *list, json_t **ret, struct as_err *err)
{
    JSON_AUTO taken = json_array();
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        char at[AS_ERR_POINTER_MAX];
        json_t *snapshot = json_incref(item);
        json_pointer_index("/search/prior", i, at);
        if (json_is_string(item)) {
            json_decref(snapshot);
            snapshot = NULL;
            as_status st = take_sweep(t, json_string_value(item), at, &snapshot, err);
            if (st != AS_OK)
                return st;
        }
        if (json_array_append_new(taken, snapshot) < 0)
            return as_fail_nomem(err);
    }
    *ret = as_steal(taken);
    return AS_OK;
}

static bool has_names(const json_t *list)
{
    size_t i;
    const json_t *item;
    json_array_foreach(list, i, item) if (json_is_string(item)) return true;
    return false;
}

as_status sweep_prior_take(struct store *db, const json_t *doc, json_t **ret, struct as_err *err)
{
    const json_t *search = json_object_get(doc, "search");
    const json_t *list = json_object_get(search, "prior");
    if (!has_names(list)) {
        *ret = json_incref((json_t *)doc);
        return AS_OK;
    }
    if (json_array_size(list) > WARM_START_SWEEPS)
        return as_fail_at(err, AS_E_TOO_LARGE, "/search/prior",
                          "/search/prior: %zu sweeps, at most %d are allowed",
                          json_array_size(list), WARM_START_SWEEPS);
    JSON_AUTO taken = NULL;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run)) {
        json_decref(as_steal(taken));
        run.status = take_all(run.tx, list, &taken, err);
    }
    if (run.status != AS_OK)
        return run.status;
    JSON_AUTO own = json_clone_flat(search);
    JSON_AUTO whole = json_clone_flat(doc);
    if (json_object_set(own, "prior", taken) < 0 || json_object_set(whole, "search", own) < 0)
        return as_fail_nomem(err);
    *ret = as_steal(whole);
    return AS_OK;
}
