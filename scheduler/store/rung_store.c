/* Table rung_result.
 *
 * Rows are only inserted; a promotion adds its own place to the row of the result that waited. A
 * board reads what is new in the order of seq: results, promotions, and ends of trials that waited.
 * A trial that was cancelled while it waited and is tried again waits no longer either.
 *
 * Sets in, sets out: the number of statements does not grow with the trials or sweeps. */
#include "scheduler/store/rung_store.h"

#include <math.h>
#include <stdlib.h>

#include "base/str.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/sql_counts_priv.h"
#include "scheduler/store/sql_rungs_priv.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/values_priv.h"
#include "scheduler/sweep/doc_cache.h"

enum {
    RUNG_SINCE,
    RUNG_STEPS_LEFT,
    RUNG_STORED,
    RUNG_ADD,
    RUNG_PROMOTE,
    RUNG_ENDED,
    RUNG_REPORTED,
    RUNG_STEPS,
    RUNG_COUNTS
};

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

#define COUNT_FIELDS(FIRST, NEXT)                                                                  \
    FIRST(i64, reached, "count(*)")                                                                \
    NEXT(i64, stopped,                                                                             \
         "count(*) filter (where r.decision = 'prune' or (r.decision = 'pause' and "               \
         "r.promoted_seq is null and t.state = 'pruned' and t.decision = 'pause' and t.rung = "    \
         "r.rung + 1))")                                                                           \
    NEXT(i64, waiting,                                                                             \
         "count(*) filter (where r.decision = 'pause' and r.promoted_seq is null and t.state in "  \
         "('running', 'paused') and t.decision = 'pause')")                                        \
    NEXT(i64, obeyed,                                                                              \
         "count(*) filter (where r.decision <> 'go_on' and x.reported in ('paused', 'pruned') "    \
         "and x.exit_code is distinct from -9)")                                                   \
    NEXT(i64, disobeyed,                                                                           \
         "count(*) filter (where r.decision <> 'go_on' and (x.reported not in ('paused', "         \
         "'pruned') or x.outcome = 'lost' or x.exit_code = -9))")
COLUMNS_WHOLE_ROW(struct rung_count, COUNT_FIELDS)
COLUMNS_READER(count, struct rung_count, COUNT_FIELDS)
#define COUNT_COLUMNS COLUMNS_SQL(COUNT_FIELDS)

/* The rows that the rows `l`, or `c` of sweeps, are about. */
#define JOINED_TRIAL                                                                               \
    SQL_JOINED("t.sweep_key", "l.sweep_key") " and " SQL_JOINED_NEXT("t.number", "l.number")
#define JOINED_RESULT                                                                              \
    SQL_JOINED("r.sweep_key", "l.sweep_key")                                                       \
    " and " SQL_JOINED_NEXT("r.number", "l.number") " and " SQL_JOINED_NEXT("r.rung", "l.rung")

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
    [RUNG_ADD] =
        {"rung_add",
         "with l as materialized (select * from unnest($1::bigint[], $2::int[], "
         "$3::int[], $4::int[], $5::bool[], $6::int[], $7::bigint[], $8::text[], "
         "$9::bool[], $10::text[], $11::int[], $12::int[], $13::text[], $14::bigint[], "
         "$15::float8[], $16::text[], $17::text[]) "
         "with ordinality as l(sweep_key, number, attempt, next, is_result, rung, step, "
         "objectives, feasible, decision, rank, among, reason, seq, value, told, told_why, "
         "place)), added as "
         "(insert into rung_result (sweep_key, number, rung, attempt, step, value, objectives, "
         "feasible, decision, rank, among, reason, seq) select sweep_key, number, rung, "
         "attempt, step, value, objectives::float8[], feasible, decision, rank, among, reason, "
         "seq from l where is_result), counted as (" SQL_COUNTS_CHANGE
         "n_rung_results = c.n_rung_results + f.n, finish_seq = c.finish_seq + f.n from (select "
         "sweep_key, count(*) as n from l where is_result group by sweep_key) f" SQL_COUNTS_OF_EACH
         "), latest as (select distinct on (sweep_key, number) * from l "
         "order by sweep_key, number, place desc) update trial t set rung = l.next, "
         "decision = l.told, reason = case when l.told is not null then l.told_why else t.reason "
         "end, spent = case when "
         "l.is_result then greatest(t.spent, l.step - " SQL_OWN_AFTER
         ") else t.spent end from latest l where " JOINED_TRIAL},
    [RUNG_PROMOTE] =
        {"rung_promote",
         "with l as materialized (select * from unnest($1::bigint[], $2::int[], "
         "$3::int[], $4::bigint[], $5::text[], $6::text[]) with ordinality as l(sweep_key, "
         "number, rung, seq, why, reason, place)), marked as (update rung_result r set "
         "promoted_seq = l.seq, promoted_why = l.why from l where " JOINED_RESULT
         "), counted as (" SQL_COUNTS_CHANGE
         "n_promoted = c.n_promoted + f.n, finish_seq = c.finish_seq + f.n from "
         "(select sweep_key, count(*) as n from l group by sweep_key) "
         "f" SQL_COUNTS_OF_EACH ") update trial t set decision = 'resume', reason = l.reason, "
         "missing = 0, "
         "state = case when t.state = 'paused' then 'queued' else t.state end from "
         "l cross join lateral (select o.state from trial o where o.sweep_key = "
         "l.sweep_key and o.number = l.number limit 1) o where " JOINED_TRIAL
         " and t.decision = 'pause' and t.state in ('running', 'paused', 'queued') "
         "returning l.place - 1, o.state = 'paused', t.attempt"},
    [RUNG_ENDED] = {"rung_ended",
                    "select count(*), count(*) filter (where h.has), count(*) filter (where "
                    "t.state = 'completed'), coalesce(max(t.step) filter (where t.state = "
                    "'completed'), -1) from trial t cross join lateral (select exists (select from "
                    "rung_result r where r.sweep_key = "
                    "t.sweep_key and r.number = t.number) as has) h where t.sweep_key = $1 and "
                    "t.state in ('completed', 'pruned') and t.origin <> 'known'"},
    [RUNG_REPORTED] = {"rung_reported",
                       "select distinct m.step from (select number from trial t where t.sweep_key "
                       "= $1 and t.state in ('completed', 'pruned') and t.origin <> 'known' and "
                       "not exists (select from rung_result r join sweep s on s.key = r.sweep_key "
                       "where r.sweep_key = t.sweep_key and r.number = t.number and r.rung + 1 < "
                       "array_length(s.rungs, 1)) order by t.finish_seq limit 1) f join "
                       "measurement m on m.sweep_key = $1 and m.number = f.number and m.metric = "
                       "$2 order by m.step limit $3"},
    [RUNG_STEPS] = {"rung_steps",
                    "select u.step, s.steps_spent, (select coalesce(sum(greatest(0, "
                    "s.rungs[array_length(s.rungs, 1)] - t.spent)), 0) from trial t where "
                    "t.sweep_key = s.key and t.state = 'pruned' and s.population is null)::bigint, "
                    "s.n_completed from sweep s cross join "
                    "unnest(s.rungs) as u(step) where s.key = $1 order by u.step"},
    [RUNG_COUNTS] = {"rung_counts",
                     "select r.rung, " COUNT_COLUMNS " from rung_result r join trial t on "
                     "t.sweep_key = r.sweep_key and t.number = r.number left join attempt x on "
                     "x.sweep_key = r.sweep_key and x.number = r.number and x.attempt = r.attempt "
                     "where r.sweep_key = $1 group by r.rung order by r.rung"},
};
const struct stmt_set rung_stmts = {"rung", stmts, AS_ARRAY_LEN(stmts)};

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

/* ---- write ---- */

static struct event_new result_event(const struct rung_new *r)
{
    return (struct event_new){.type = "trial.rung",
                              .sweep_key = r->sweep_key,
                              .sweep = r->sweep,
                              .has_number = true,
                              .number = r->number,
                              .state = trial_state_format(TRIAL_RUNNING),
                              .attempt = r->attempt,
                              .has_value = true,
                              .value = r->value,
                              .reason = r->reason};
}

static struct event_new promotion_event(const struct rung_promoted *p)
{
    return (struct event_new){.type = "trial.changed",
                              .sweep_key = p->sweep_key,
                              .sweep = p->sweep,
                              .has_number = true,
                              .number = p->promotion.number,
                              .state = trial_state_format(TRIAL_QUEUED),
                              .attempt = p->attempt,
                              .reason = p->reason};
}

static as_status objectives_format(struct str *b, const struct rung_new *r, struct as_err *err)
{
    array_open(b);
    for (size_t i = 0; i < r->n_objectives; i++)
        array_f64(b, r->result.values[i]);
    array_close(b);
    return str_check(b, err);
}

static as_status put_result(struct arrays *x, const struct rung_new *r, struct as_err *err)
{
    AS_AUTO(str_done) struct str objectives = {0};
    as_status st = objectives_format(&objectives, r, err);
    array_i64(&x->c[0], r->sweep_key);
    array_i64(&x->c[1], r->number);
    array_i64(&x->c[2], r->attempt);
    array_i64(&x->c[3], r->next);
    array_str(&x->c[4], r->is_result ? "t" : "f");
    array_i64(&x->c[5], r->result.rung);
    array_i64(&x->c[6], r->result.step);
    array_str(&x->c[7], str_cstr(&objectives));
    array_str(&x->c[8], r->result.feasible ? "t" : "f");
    array_str(&x->c[9], r->is_result ? stop_verdict_words[r->result.decision] : NULL);
    array_i64(&x->c[10], r->rank);
    array_i64(&x->c[11], r->of);
    array_str(&x->c[12], r->reason);
    array_i64(&x->c[13], (int64_t)r->result.seq);
    array_f64(&x->c[14], r->value);
    array_str(&x->c[15], r->told == DECIDED_NOTHING ? NULL : trial_decision_words[r->told]);
    array_str(&x->c[16], r->told_why);
    return st;
}

as_status store_rung_add_many(struct tx *t, const struct rung_new *rows, size_t n,
                              struct event_new *events, size_t *n_events, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    as_status st = AS_OK;
    if (n == 0)
        return AS_OK;
    arrays_open(&x);
    for (size_t i = 0; i < n && st == AS_OK; i++)
        st = put_result(&x, &rows[i], err);
    if (st == AS_OK)
        st = arrays_close(&x, err);
    if (st == AS_OK)
        st = tx_exec(t, &stmts[RUNG_ADD],
                     ARGS(arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2), arg_array(&x, 3),
                          arg_array(&x, 4), arg_array(&x, 5), arg_array(&x, 6), arg_array(&x, 7),
                          arg_array(&x, 8), arg_array(&x, 9), arg_array(&x, 10), arg_array(&x, 11),
                          arg_array(&x, 12), arg_array(&x, 13), arg_array(&x, 14),
                          arg_array(&x, 15), arg_array(&x, 16)),
                     NULL, err);
    for (size_t i = 0; i < n && st == AS_OK; i++) {
        if (!rows[i].is_result)
            continue;
        tx_finished(t, rows[i].sweep_key);
        events[(*n_events)++] = result_event(&rows[i]);
    }
    return st;
}

as_status store_rung_promote_many(struct tx *t, struct rung_promoted *rows, size_t n,
                                  struct event_new *events, size_t *n_events, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    if (n == 0)
        return AS_OK;
    arrays_open(&x);
    for (size_t i = 0; i < n; i++) {
        const struct rung_promotion *p = &rows[i].promotion;
        array_i64(&x.c[0], rows[i].sweep_key);
        array_i64(&x.c[1], p->number);
        array_i64(&x.c[2], p->rung);
        array_i64(&x.c[3], p->seq);
        array_str(&x.c[4], p->reason);
        array_str(&x.c[5], rows[i].reason);
    }
    as_status st = arrays_close(&x, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[RUNG_PROMOTE],
                      ARGS(arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2), arg_array(&x, 3),
                           arg_array(&x, 4), arg_array(&x, 5)),
                      &r, err);
    if (st == AS_OK && (size_t)r.rows != n)
        return as_fail(err, AS_E_CONFLICT, "%d of %zu trials waited for their promotion", r.rows,
                       n);
    for (int k = 0; k < r.rows && st == AS_OK; k++) {
        struct reader rd;
        reader_init(&rd, &r, k, NULL);
        struct rung_promoted *p = &rows[read_i64(&rd)];
        p->is_queued = read_bool(&rd);
        p->attempt = read_i64(&rd);
        st = reader_check(&rd, err);
    }
    for (size_t i = 0; i < n && st == AS_OK; i++)
        if (rows[i].is_queued)
            events[(*n_events)++] = promotion_event(&rows[i]);
    return st;
}

/* ---- for people ---- */

as_status store_rung_ended(struct tx *t, int64_t sweep_key, struct rung_ended *ret,
                           struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[RUNG_ENDED], ARGS(arg_i64(sweep_key)), &r, err);
    if (st != AS_OK)
        return st;
    *ret = (struct rung_ended){.n = result_i64(&r, 0, 0),
                               .n_with_result = result_i64(&r, 0, 1),
                               .n_completed = result_i64(&r, 0, 2),
                               .furthest = result_i64(&r, 0, 3)};
    return AS_OK;
}

as_status store_rung_reported(struct tx *t, struct arena *a, int64_t sweep_key, const char *metric,
                              const int64_t **ret, size_t *ret_n, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[RUNG_REPORTED],
                 ARGS(arg_i64(sweep_key), arg_str(metric), arg_i64(RUNG_STEPS_SHOWN)), &r, err);
    if (st != AS_OK)
        return st;
    int64_t *steps = arena_alloc(a, (size_t)r.rows + 1, sizeof *steps);
    if (!steps)
        return as_fail_nomem(err);
    for (int i = 0; i < r.rows; i++)
        steps[i] = result_i64(&r, i, 0);
    *ret = steps;
    *ret_n = (size_t)r.rows;
    return AS_OK;
}

static as_status read_counts(struct tx *t, struct arena *a, int64_t sweep_key,
                             struct rung_count *counts, size_t n, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[RUNG_COUNTS], ARGS(arg_i64(sweep_key)), &r, err);
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, a);
        size_t rung = (size_t)read_i64(&rd);
        if (rung < n)
            read_count(&rd, &counts[rung]);
        st = reader_check(&rd, err);
    }
    return st;
}

as_status store_rung_report(struct tx *t, struct arena *a, int64_t sweep_key,
                            struct stopping_report *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    *ret = (struct stopping_report){0};
    as_status st = tx_query(t, &stmts[RUNG_STEPS], ARGS(arg_i64(sweep_key)), &r, err);
    if (st != AS_OK || r.rows == 0)
        return st;
    size_t n = (size_t)r.rows;
    int64_t *steps = arena_alloc(a, n, sizeof *steps);
    struct rung_count *counts = arena_alloc(a, n, sizeof *counts);
    if (!steps || !counts)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        steps[i] = result_i64(&r, (int)i, 0);
        counts[i] = (struct rung_count){0};
    }
    *ret = (struct stopping_report){.is_there = true,
                                    .steps = steps,
                                    .rungs = counts,
                                    .n_rungs = n,
                                    .steps_spent = result_i64(&r, 0, 1),
                                    .steps_saved = result_i64(&r, 0, 2),
                                    .n_completed = result_i64(&r, 0, 3)};
    return read_counts(t, a, sweep_key, counts, n, err);
}
