/* Table rung_result: results and promotions are written.
 *
 * Rows are only inserted; a promotion adds its own place to the row of the result that waited.
 *
 * Sets in, sets out: the number of statements does not grow with the trials or sweeps. */
#include "scheduler/store/rung_store.h"

#include "base/str.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sql_counts_priv.h"
#include "scheduler/store/sql_rungs_priv.h"
#include "scheduler/sweep/trial_state.h"

enum { RUNG_ADD, RUNG_PROMOTE };

/* The rows that the rows `l`, or `c` of sweeps, are about. */
#define JOINED_TRIAL                                                                               \
    SQL_JOINED("t.sweep_key", "l.sweep_key") " and " SQL_JOINED_NEXT("t.number", "l.number")
#define JOINED_RESULT                                                                              \
    SQL_JOINED("r.sweep_key", "l.sweep_key")                                                       \
    " and " SQL_JOINED_NEXT("r.number", "l.number") " and " SQL_JOINED_NEXT("r.rung", "l.rung")

static const struct stmt stmts[] = {
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
};
const struct stmt_set rung_stmts = {"rung", stmts, AS_ARRAY_LEN(stmts)};

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
