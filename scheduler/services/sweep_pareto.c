/* The Pareto front of a sweep. All values are read once and the front is found outside of a
 * transaction, because it takes seconds for thousands of trials; then the rows of the front are
 * read, in the order of their numbers, until a page is full (decision 6003). A cursor is the last
 * number, so a page of a front that has grown meanwhile repeats nothing. */
#include "scheduler/services/sweep_pareto.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/services/cursor_priv.h"
#include "scheduler/sweep/stored_doc.h"
#include "scheduler/store/history_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/trial_store.h"
#include "search/pareto/hypervolume.h"
#include "search/pareto/pareto.h"

/* The completed, feasible trials. */
struct results {
    int64_t *numbers;
    double *values; /* n x metrics */
    size_t n, room;
    size_t *front; /* indices into them */
    size_t n_front;
};

static as_status read_sweep(struct tx *t, struct arena *a, const char *id, int64_t *ret_key,
                            struct sweep_row *ret, struct as_err *err)
{
    as_status st = store_sweep_key(t, id, ret_key, err);
    if (st != AS_OK)
        return st;
    return store_sweep_get(t, a, *ret_key, ret, err);
}

static as_status find_sweep(struct store *db, struct arena *a, const char *id, int64_t *ret_key,
                            struct sweep_row *ret, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = read_sweep(run.tx, a, id, ret_key, ret, err);
    return run.status;
}

static as_status read_metrics(struct arena *a, const char *document, struct pareto_row *r,
                              struct as_err *err)
{
    AS_AUTO(sweep_doc_freep) struct sweep_doc *doc = NULL;
    as_status st = stored_doc_read(document, NULL, &doc, err);
    if (st != AS_OK)
        return st;
    r->n_metrics = doc->n_objectives;
    r->metrics = arena_alloc(a, r->n_metrics, sizeof *r->metrics);
    r->maximize = arena_alloc(a, r->n_metrics, sizeof *r->maximize);
    r->reference = arena_alloc(a, r->n_metrics, sizeof *r->reference);
    bool full = r->metrics && r->maximize && r->reference;
    for (size_t i = 0; i < r->n_metrics && full; i++) {
        r->metrics[i] = arena_strdup(a, doc->objectives[i].name);
        r->maximize[i] = doc->objectives[i].maximize;
        full = r->metrics[i] != NULL;
    }
    return full ? AS_OK : as_fail_nomem(err);
}

static as_status read_part(struct store *db, int64_t key, int64_t from, const struct pareto_row *r,
                           struct results *x, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena part = {0};
    int64_t *numbers = NULL;
    double *values = NULL;
    size_t n = 0;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_history_values(run.tx, &part, key, from, from + HISTORY_PART, r->metrics,
                                          r->n_metrics, &numbers, &values, &n, err);
    if (run.status != AS_OK || n == 0)
        return run.status;
    if (n > x->room - x->n) /* trials that came after the sweep was read: the next look has them */
        n = x->room - x->n;
    memcpy(x->numbers + x->n, numbers, n * sizeof *numbers);
    memcpy(x->values + x->n * r->n_metrics, values, n * r->n_metrics * sizeof *values);
    x->n += n;
    return AS_OK;
}

/* In parts, because a statement has a time limit. `total`: trials of the sweep. */
static as_status read_values(struct store *db, struct arena *a, int64_t key, int64_t total,
                             const struct pareto_row *r, struct results *ret, struct as_err *err)
{
    ret->room = (size_t)total;
    ret->numbers = arena_alloc(a, ret->room + 1, sizeof *ret->numbers);
    ret->values = arena_alloc(a, ret->room * r->n_metrics + 1, sizeof *ret->values);
    if (!ret->numbers || !ret->values)
        return as_fail_nomem(err);
    as_status st = AS_OK;
    for (int64_t from = 0; from < total && st == AS_OK; from += HISTORY_PART)
        st = read_part(db, key, from, r, ret, err);
    return st;
}

static as_status find_front(struct arena *a, struct results *x, struct pareto_row *r,
                            struct as_err *err)
{
    x->front = arena_alloc(a, x->n + 1, sizeof *x->front);
    if (!x->front)
        return as_fail_nomem(err);
    as_status st =
        gp_pareto_front(x->values, x->n, r->n_metrics, r->maximize, x->front, &x->n_front, err);
    if (st < 0 || x->n_front == 0)
        return st;
    r->has_reference = true;
    gp_pareto_reference(x->values, x->n, r->n_metrics, r->maximize, x->front, x->n_front,
                        r->reference);
    return gp_hypervolume(x->values, x->n, r->n_metrics, r->maximize, r->reference, &r->hypervolume,
                          err);
}

/* The trials of the front after the number `after`, until they pass the budget of a page. */
static as_status read_trials(struct tx *t, struct arena *a, int64_t key, const struct results *x,
                             int64_t after, struct pareto_row *r, struct as_err *err)
{
    size_t bytes = 0;
    r->n = 0;
    r->has_more = false;
    r->rows = arena_alloc(a, x->n_front + 1, sizeof *r->rows);
    if (!r->rows)
        return as_fail_nomem(err);
    for (size_t i = 0; i < x->n_front; i++) {
        int64_t number = x->numbers[x->front[i]];
        if (number <= after)
            continue;
        if (bytes > PAGE_BYTES_MAX) {
            r->has_more = true;
            return AS_OK;
        }
        struct trial_row *row = &r->rows[r->n++];
        as_status st = store_trial_get(t, a, key, number, row, err);
        if (st != AS_OK)
            return st;
        bytes += sizeof *row + strlen(row->params) + strlen(row->metrics) + strlen(row->suggestion);
    }
    return AS_OK;
}

static as_status read_place(struct arena *a, const char *cursor, int64_t *ret, struct as_err *err)
{
    const char *field = NULL;
    *ret = -1;
    if (!cursor)
        return AS_OK;
    as_status st = cursor_read(a, cursor, "pareto", &field, 1, err);
    return st == AS_OK ? cursor_i64(field, ret, err) : st;
}

static as_status write_place(struct arena *a, struct pareto_row *r, struct as_err *err)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, r->rows[r->n - 1].number);
    r->next_cursor = cursor_make(a, "pareto", (const char *const[]){text}, 1);
    return r->next_cursor ? AS_OK : as_fail_nomem(err);
}

as_status sweep_pareto(struct store *db, struct arena *a, const char *id, const char *cursor,
                       struct pareto_row *ret, struct as_err *err)
{
    int64_t key = 0, after = -1;
    struct sweep_row sweep = {0};
    struct results x = {0};
    struct pareto_row row = {0};
    as_status st = read_place(a, cursor, &after, err);
    if (st < 0 || (st = find_sweep(db, a, id, &key, &sweep, err)) < 0 ||
        (st = read_metrics(a, sweep.document, &row, err)) < 0 ||
        (st = read_values(db, a, key, sweep.counts.total, &row, &x, err)) < 0 ||
        (st = find_front(a, &x, &row, err)) < 0)
        return st;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = read_trials(run.tx, a, key, &x, after, &row, err);
    if (run.status == AS_OK && row.has_more)
        run.status = write_place(a, &row, err);
    if (run.status == AS_OK)
        *ret = row;
    return run.status;
}
