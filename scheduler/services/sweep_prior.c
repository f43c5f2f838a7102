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
    const struct history_trial *trial;
};

static int compare_taken(const void *x, const void *y)
{
    const struct taken *a = x, *b = y;
    if (a->cost != b->cost)
        return a->cost < b->cost ? -1 : 1;
    return (a->trial->number > b->trial->number) - (a->trial->number < b->trial->number);
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

static as_status write_snapshot(const char *name, const struct taken *list, size_t n, json_t **ret,
                                struct as_err *err)
{
    JSON_AUTO j =
        json_pack("{s:s, s:I, s:[]}", "sweep", name, "completed", (json_int_t)n, "trials");
    for (size_t i = 0; j && i < n; i++) {
        if (!warm_start_keeps(i, n))
            continue;
        json_t *params = NULL;
        const char *text = list[i].trial->params;
        as_status st = json_parse(text, strlen(text), &params, err);
        if (st != AS_OK)
            return st;
        if (json_array_append_new(json_object_get(j, "trials"),
                                  json_pack("{s:o, s:f}", "params", params, "cost", list[i].cost)) <
            0)
            return as_fail_nomem(err);
    }
    if (!j)
        return as_fail_nomem(err);
    *ret = as_steal(j);
    return AS_OK;
}

static as_status read_trials(struct tx *t, struct arena *a, int64_t key, int64_t total,
                             const struct sweep_doc *d, const char *name, const char *at,
                             json_t **ret, struct as_err *err)
{
    const char *metrics[METRICS_MAX] = {d->metric};
    struct history_trial *rows = NULL;
    size_t n_rows = 0, n = 0;
    for (size_t k = 0; k < d->n_outcomes; k++)
        metrics[1 + k] = d->outcomes[k].metric;
    as_status st = store_history_trials(t, a, key, 0, 0, total, metrics, 1 + d->n_outcomes, &rows,
                                        &n_rows, err);
    if (st != AS_OK)
        return st;
    AS_AUTO(as_freep) struct taken *list = as_calloc(n_rows + 1, sizeof *list);
    if (!list)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n_rows; i++)
        if (counts(d, &rows[i]))
            list[n++] =
                (struct taken){d->maximize ? -rows[i].values[0] : rows[i].values[0], &rows[i]};
    if ((st = drop_absurd(list, &n, err)) < 0)
        return st;
    if (n == 0)
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: the sweep '%s' has no completed trial to learn from", at, name);
    qsort(list, n, sizeof *list, compare_taken);
    return write_snapshot(name, list, n, ret, err);
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
    return read_trials(t, &a, key, head.total, d, name, at, ret, err);
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
