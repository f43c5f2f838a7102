/* What decisions at rungs read: the boards of sweeps, and values that were recorded before.
 *
 * A board reads what is new in the order of seq: results, promotions, and ends of trials that
 * waited. A trial that was cancelled while it waited and is tried again waits no longer either. */
#include "scheduler/store/rung_board_store.h"

#include <math.h>

#include "base/str.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/values_priv.h"
#include "scheduler/sweep/doc_cache.h"

enum { RUNG_SINCE, RUNG_STEPS_LEFT, RUNG_STORED };

/* The values follow. */
#define ENTRY_FIELDS(FIRST, NEXT)                                                                  \
    FIRST(i64, event, "event")                                                                     \
    NEXT(i64, number, "number")                                                                    \
    NEXT(i64, rung, "rung")                                                                        \
    NEXT(i64, step, "step")                                                                        \
    NEXT(bool, feasible, "feasible")                                                               \
    NEXT(text, decision, "decision")                                                               \
    NEXT(i64, seq, "seq")
struct entry_row {
    int64_t event, number, rung, step;
    bool feasible;
    const char *decision;
    int64_t seq;
};
COLUMNS_WHOLE_ROW(struct entry_row, ENTRY_FIELDS)
COLUMNS_READER(entry, struct entry_row, ENTRY_FIELDS)
#define ENTRY_COLUMNS COLUMNS_SQL(ENTRY_FIELDS)

static const struct stmt stmts[] = {
    [RUNG_SINCE] =
        {"rung_since",
         "select u.place - 1, " ENTRY_COLUMNS ", objectives from unnest($1::bigint[], "
         "$2::bigint[]) with ordinality as u(key, after, place) cross join lateral (select 0 as "
         "event, number, rung, step, feasible, decision, seq, objectives from rung_result where "
         "sweep_key = u.key and seq > u.after union all select 1, number, rung, step, feasible, "
         "decision, promoted_seq, null from rung_result where sweep_key = u.key and promoted_seq > "
         "u.after union all select 2, number, 0, 0, true, '', finish_seq, null from trial where "
         "sweep_key = u.key and finish_seq > u.after and decision = 'pause' union all select 2, "
         "number, 0, 0, true, '', retry_seq, null from trial where sweep_key = u.key and retry_seq "
         "> u.after) h order by u.place, h.seq"},
    [RUNG_STEPS_LEFT] = {"rung_steps_left",
                         "select u.place - 1, steps_left(u.key) from unnest($1::bigint[]) with "
                         "ordinality as u(key, place)"},
    [RUNG_STORED] =
        {"rung_stored",
         "select u.place - 1, h.value from unnest($1::bigint[], $2::int[], $3::text[], "
         "$4::bigint[]) with ordinality as u(key, number, metric, step, place) cross "
         "join lateral (select c.measured[c.at] as value from (select attempt, measured, "
         "array_position(steps, u.step) as at from measurement_chunk where sweep_key = "
         "u.key and number = u.number and metric = u.metric and first_step <= u.step) "
         "c where c.at is not null order by c.attempt desc limit 1) h"},
};
const struct stmt_set rung_board_stmts = {"rung_board", stmts, AS_ARRAY_LEN(stmts)};

/* ---- boards ---- */

/* The empty board of a document. Owned by the caller. */
static as_status board_of(struct tx *t, const char *document, struct rung_board **ret,
                          struct as_err *err)
{
    AS_AUTO(doc_ref_done) struct doc_ref doc = {0};
    as_status st = doc_cache_read(store_docs(tx_store(t)), document, true, &doc, err);
    return st == AS_OK ? rung_board_create(doc.doc, ret, err) : st;
}

static as_status make_board(struct tx *t, int64_t key, const char *document,
                            struct rung_board **ret, struct as_err *err)
{
    struct rung_board *b = NULL;
    as_status st = board_of(t, document, &b, err);
    if (st == AS_OK)
        st = tx_board_add(t, key, b, err);
    if (st == AS_OK)
        *ret = b;
    return st;
}

/* Boards that this process does not have yet. */
static as_status make_boards(struct tx *t, struct arena *a, struct rung_opening *list, size_t n,
                             struct as_err *err)
{
    size_t *of = arena_alloc(a, n + 1, sizeof *of);
    int64_t *keys = arena_alloc(a, n + 1, sizeof *keys);
    const char **documents = arena_alloc(a, n + 1, sizeof *documents);
    size_t n_new = 0;
    if (!of || !keys || !documents)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        list[i].board = tx_board(t, list[i].sweep_key);
        if (list[i].board)
            continue;
        of[n_new] = i;
        keys[n_new++] = list[i].sweep_key;
    }
    as_status st = n_new > 0 ? store_sweep_documents(t, a, keys, n_new, documents, err) : AS_OK;
    for (size_t k = 0; k < n_new && st == AS_OK; k++)
        st = documents[k] ? make_board(t, keys[k], documents[k], &list[of[k]].board, err)
                          : as_fail(err, AS_E_NOT_FOUND, "the sweep was deleted");
    return st;
}

static as_status read_entry_of(const struct result *r, int k, size_t n_objectives,
                               struct rung_entry *ret, struct as_err *err)
{
    static const rung_event events[] = {RUNG_RESULT, RUNG_PROMOTED, RUNG_LEFT};
    AS_AUTO(arena_done) struct arena a = {0};
    struct reader rd;
    struct entry_row row;
    reader_init(&rd, r, k, &a);
    rd.col = 1;
    read_entry(&rd, &row);
    as_status st = reader_check(&rd, err);
    if (st != AS_OK)
        return st;
    *ret = (struct rung_entry){.event = events[row.event],
                               .result = {.number = (uint64_t)row.number,
                                          .rung = (uint32_t)row.rung,
                                          .step = row.step,
                                          .feasible = row.feasible,
                                          .seq = (uint64_t)row.seq}};
    if (ret->event != RUNG_RESULT)
        return AS_OK;
    ret->result.decision = (stop_verdict)word_place(stop_verdict_words, row.decision);
    return read_values(&rd, n_objectives, ret->result.values, NULL, err);
}

/* Take the new events of these sweeps into their boards. */
static as_status catch_up(struct tx *t, struct rung_opening *list, size_t n, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    arrays_open(&x);
    for (size_t i = 0; i < n; i++) {
        array_i64(&x.c[0], list[i].sweep_key);
        array_i64(&x.c[1], list[i].board->seq);
    }
    as_status st = arrays_close(&x, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[RUNG_SINCE], ARGS(arg_array(&x, 0), arg_array(&x, 1)), &r, err);
    for (int k = 0; k < r.rows && st == AS_OK; k++) {
        struct rung_board *b = list[result_i64(&r, k, 0)].board;
        struct rung_entry e;
        st = read_entry_of(&r, k, b->n_metrics, &e, err);
        if (st == AS_OK)
            st = rung_order_apply(b->index, &e, err);
    }
    return st;
}

/* What limits.max_steps leaves to the trials of these sweeps. */
static as_status read_steps_left(struct tx *t, struct rung_opening *list, size_t n,
                                 struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    bool has_limit = false;
    for (size_t i = 0; i < n; i++) {
        list[i].board->steps_left = INT64_MAX;
        has_limit |= list[i].limits_steps;
    }
    if (!has_limit)
        return AS_OK;
    arrays_open(&x);
    for (size_t i = 0; i < n; i++)
        array_i64(&x.c[0], list[i].sweep_key);
    as_status st = arrays_close(&x, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[RUNG_STEPS_LEFT], ARGS(arg_array(&x, 0)), &r, err);
    for (int k = 0; k < r.rows && st == AS_OK; k++) {
        struct reader rd;
        reader_init(&rd, &r, k, NULL);
        struct rung_board *b = list[read_i64(&rd)].board;
        if (!read_null(&rd))
            b->steps_left = read_i64(&rd);
        st = reader_check(&rd, err);
    }
    return st;
}

as_status store_rung_open(struct tx *t, struct arena *a, struct rung_opening *list, size_t n,
                          struct as_err *err)
{
    bool has_news = false;
    as_status st = make_boards(t, a, list, n, err);
    for (size_t i = 0; i < n && st == AS_OK; i++)
        has_news |= list[i].board->seq < list[i].finish_seq;
    if (st == AS_OK && has_news)
        st = catch_up(t, list, n, err);
    for (size_t i = 0; i < n && st == AS_OK; i++)
        list[i].board->seq = list[i].finish_seq;
    return st == AS_OK ? read_steps_left(t, list, n, err) : st;
}

as_status store_rung_read(struct tx *t, struct arena *a, int64_t sweep_key, struct rung_board **ret,
                          struct as_err *err)
{
    AS_AUTO(rung_board_freep) struct rung_board *b = NULL;
    const char *document = NULL;
    as_status st = store_sweep_document(t, a, sweep_key, &document, err);
    if (st == AS_OK)
        st = board_of(t, document, &b, err);
    struct rung_opening o = {.sweep_key = sweep_key, .board = b};
    if (st == AS_OK)
        st = catch_up(t, &o, 1, err);
    if (st == AS_OK)
        *ret = as_steal(b);
    return st;
}

/* ---- values that were recorded before ---- */

/* What the points of one report lack at their steps. */
struct lacking {
    struct measurement *rows; /* value NAN */
    size_t n;
};

static void lack(struct lacking *l, const struct rung_points *p, const char *metric, int64_t step)
{
    if (!measurement_at(p->points, p->n, metric, step) &&
        !measurement_at(l->rows, l->n, metric, step))
        l->rows[l->n++] = (struct measurement){step, metric, NAN};
}

/* Only at steps of rungs: a report may have thousands of points. */
static as_status find_lacking(struct arena *a, const struct rung_points *p, struct lacking *ret,
                              struct as_err *err)
{
    const struct rung_board *b = p->board;
    size_t most = 2 * (b->n_metrics + b->n_outcomes + 1) * STOP_RUNGS_MAX;
    *ret = (struct lacking){.rows = arena_alloc(a, most + 1, sizeof *ret->rows)};
    if (!ret->rows)
        return as_fail_nomem(err);
    int64_t latest = -1;
    for (size_t i = 0; i < p->n; i++)
        latest = p->points[i].step > latest ? p->points[i].step : latest;
    for (size_t k = (size_t)p->rung; k < b->spec.n_rungs; k++) {
        if (!p->every && b->spec.steps[k] >= latest)
            break;
        if (b->repeats)
            lack(ret, p, "best_step", b->spec.steps[k]);
        for (size_t m = 0; m < b->n_metrics; m++)
            lack(ret, p, b->metrics[m], b->spec.steps[k]);
        for (size_t m = 0; m < b->n_outcomes; m++)
            lack(ret, p, b->outcomes[m].metric, b->spec.steps[k]);
    }
    for (size_t i = 0; i < p->n; i++) {
        int64_t step = p->points[i].step;
        uint32_t rung = 0;
        if (!stop_spec_rung(&b->spec, 0, step, &rung) ||
            ret->n + b->n_metrics + b->n_outcomes > most)
            continue;
        for (size_t m = 0; m < b->n_metrics; m++)
            lack(ret, p, b->metrics[m], step);
        for (size_t m = 0; m < b->n_outcomes; m++)
            lack(ret, p, b->outcomes[m].metric, step);
    }
    return AS_OK;
}

as_status store_rung_stored(struct tx *t, struct arena *a, struct rung_points *list, size_t n,
                            struct as_err *err)
{
    struct lacking *lacking = arena_alloc(a, n + 1, sizeof *lacking);
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    size_t total = 0, base = 0, i = 0;
    as_status st = lacking ? AS_OK : as_fail_nomem(err);
    arrays_open(&x);
    for (size_t k = 0; k < n && st == AS_OK; k++) {
        st = find_lacking(a, &list[k], &lacking[k], err);
        for (size_t m = 0; m < lacking[k].n && st == AS_OK; m++) {
            array_i64(&x.c[0], list[k].sweep_key);
            array_i64(&x.c[1], list[k].number);
            array_str(&x.c[2], lacking[k].rows[m].metric);
            array_i64(&x.c[3], lacking[k].rows[m].step);
            total++;
        }
        list[k].n_stored = 0;
    }
    if (st == AS_OK)
        st = arrays_close(&x, err);
    if (st != AS_OK || total == 0)
        return st;
    st = tx_query(t, &stmts[RUNG_STORED],
                  ARGS(arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2), arg_array(&x, 3)), &r,
                  err);
    for (int k = 0; k < r.rows && st == AS_OK; k++) { /* in the order of the sets */
        struct reader rd;
        reader_init(&rd, &r, k, a);
        size_t place = (size_t)read_i64(&rd);
        for (; place - base >= lacking[i].n; i++)
            base += lacking[i].n;
        struct measurement *m = &lacking[i].rows[place - base];
        m->value = read_f64(&rd);
        lacking[i].rows[list[i].n_stored++] = *m; /* those that were found come first */
        list[i].stored = lacking[i].rows;
    }
    return st;
}
