/* The Pareto front of a sweep: it is kept and brought up to date (sweep_fronts.h), and the rows of
 * its trials are read, in the order of their numbers, until a page is full (decision 6003). A
 * cursor is the last number, so a page of a front that has grown meanwhile repeats nothing. */
#include "scheduler/services/sweep_pareto.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/services/cursor_priv.h"
#include "scheduler/sweep/stored_doc.h"
#include "scheduler/services/sweep_objective_priv.h"
#include "scheduler/store/history_store.h"
#include "scheduler/store/trial_row_store.h"
#include "scheduler/store/trial_store.h"

#define ROWS_FIRST 16    /* trials that a page reads first; then twice as many each time */
#define ROWS_MOST 100000 /* of a page; its bytes end it before */

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
    bool full = r->metrics && r->maximize;
    for (size_t i = 0; i < r->n_metrics && full; i++) {
        r->metrics[i] = arena_strdup(a, doc->objectives[i].name);
        r->maximize[i] = doc->objectives[i].maximize;
        full = r->metrics[i] != NULL;
    }
    return full ? AS_OK : as_fail_nomem(err);
}

/* Read the first `n` trials. Their rows are of ret. */
static as_status read_trials(struct store *db, struct arena *a, int64_t key, const int64_t *numbers,
                             size_t n, struct trial_row *ret, struct as_err *err)
{
    struct trial_key *keys = arena_alloc(a, n + 1, sizeof *keys);
    struct arena **arenas = arena_alloc(a, n + 1, sizeof *arenas);
    if (!keys || !arenas)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        keys[i] = (struct trial_key){key, numbers[i]};
        arenas[i] = a;
    }
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_trial_get_many(run.tx, keys, n, arenas, ret, err);
    return run.status;
}

static size_t bytes_of(const struct trial_row *row)
{
    return sizeof *row + strlen(row->params) + strlen(row->metrics) + strlen(row->suggestion);
}

/* The next trials of the front, until they pass the budget of a page. */
static as_status fill_page(struct store *db, struct arena *a, int64_t key,
                           const struct front_part *front, struct pareto_row *r, struct as_err *err)
{
    size_t bytes = 0;
    r->rows = arena_alloc(a, front->n + 1, sizeof *r->rows);
    if (!r->rows)
        return as_fail_nomem(err);
    for (size_t done = 0, ask = ROWS_FIRST; done < front->n; ask *= 2) {
        size_t part = front->n - done < ask ? front->n - done : ask;
        as_status st = read_trials(db, a, key, front->numbers + done, part, r->rows + done, err);
        if (st != AS_OK)
            return st;
        for (done += part; r->n < done; r->n++) {
            if (bytes > PAGE_BYTES_MAX) {
                r->has_more = true;
                return AS_OK;
            }
            bytes += bytes_of(&r->rows[r->n]);
        }
    }
    r->has_more = front->has_more;
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

static as_status read_front(struct store *db, struct sweep_fronts *fronts, struct arena *a,
                            const struct front_ask *ask, int64_t after, struct pareto_row *r,
                            struct as_err *err)
{
    struct front_part front = {0};
    as_status st = sweep_fronts_read(db, fronts, a, ask, after, ROWS_MOST, &front, err);
    if (st != AS_OK)
        return st;
    r->has_reference = !front.is_empty;
    r->reference = front.reference;
    r->hypervolume = front.hypervolume;
    st = fill_page(db, a, ask->sweep_key, &front, r, err);
    return st == AS_OK && r->has_more ? write_place(a, r, err) : st;
}

as_status sweep_pareto(struct store *db, struct sweep_fronts *fronts, struct arena *a,
                       const char *id, const char *cursor, struct pareto_row *ret,
                       struct as_err *err)
{
    int64_t key = 0, after = -1;
    struct history_head head = {0};
    struct pareto_row row = {0};
    as_status st = read_place(a, cursor, &after, err);
    if (st < 0 || (st = sweep_head_find(db, a, id, &key, &head, err)) < 0 ||
        (st = read_metrics(a, head.document, &row, err)) < 0)
        return st;
    const struct front_ask ask = {key, head.finish_seq, row.metrics, row.maximize, row.n_metrics};
    st = read_front(db, fronts, a, &ask, after, &row, err);
    if (st == AS_OK)
        *ret = row;
    return st;
}
