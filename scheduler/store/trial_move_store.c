/* Changes of a trial's state.
 *
 * Every one is a statement whose WHERE holds the old state and the attempt. If no row matches,
 * another writer was faster, and the function returns AS_E_CONFLICT. A trial that ends takes the
 * next finish_seq from the sweep's row, which the caller holds, so these numbers have no gaps. */
#include "scheduler/store/trial_move_store.h"

#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sql_counts_priv.h"
#include "scheduler/store/sql_rungs_priv.h"

enum { TRIAL_MOVE, TRIAL_COUNT, TRIAL_DROP, TRIAL_RETRY };

static const struct stmt stmts[] = {
    /* $15: the triggers shall not count (migration 0041). */
    [TRIAL_MOVE] =
        {"trial_move",
         "with l as materialized (select *, case when $15::boolean then "
         "set_config('assay.counted', "
         "'true', true) end, sum(is_final::int) over (partition by sweep_key order "
         "by place) as nth from unnest($1::bigint[], $2::int[], $3::text[], $4::int[], "
         "$5::text[], $6::bool[], $7::text[], $8::bool[], $9::bool[], $10::bool[], $11::text[], "
         "$12::bigint[], $13::float8[], $14::bigint[], $16::bigint[], $17::bool[]) with ordinality "
         "as l(sweep_key, number, "
         "old, attempt, state, burns, reason, is_final, feasible, timed_out, metrics, step, value, "
         "seq, waited, never_began, "
         "place)) update trial t set spent = case when t.state = 'running' then greatest(t.spent, "
         "coalesce(l.step, t.step, 0) - " SQL_OWN_AFTER
         ") else t.spent end, state = l.state, restarts = t.restarts + l.burns::int, reason = "
         "l.reason, missing = 0, started_at = case when t.started_at = t.claimed_at and "
         "l.never_began "
         "then null when t.started_at = t.claimed_at and l.waited > 0 then least(t.started_at + "
         "l.waited * interval '1 ms', clock_timestamp()) else t.started_at end, finished_at = case "
         "when l.is_final then clock_timestamp() end, "
         "finish_seq = case when l.is_final then coalesce(nullif(l.seq, 0), (select s.finish_seq "
         "from sweep s where s.key = l.sweep_key) + l.nth) end, feasible = l.feasible, timed_out = "
         "l.timed_out, metrics = case when l.metrics is null then t.metrics else t.metrics || "
         "l.metrics::jsonb end, step = coalesce(l.step, t.step), value = coalesce(l.value, "
         "t.value) from l where " SQL_JOINED("t.sweep_key", "l.sweep_key") " and " SQL_JOINED_NEXT(
             "t.number", "l.number") " and t.state = l.old and "
                                     "t.attempt = l.attempt"},
    [TRIAL_COUNT] =
        {"trial_count", SQL_COUNTS_CHANGE
         "n_queued = c.n_queued + f.queued, n_running = c.n_running + f.running, n_paused = "
         "c.n_paused + f.paused, n_completed = c.n_completed + f.completed, n_pruned = c.n_pruned "
         "+ f.pruned, n_failed = c.n_failed + f.failed, n_cancelled = c.n_cancelled + "
         "f.cancelled, finish_seq = c.finish_seq + f.ended, steps_spent = least(c.steps_spent + "
         "f.spent, 9223372036854775807) from unnest($1::bigint[], $2::int[], $3::int[], "
         "$4::int[], $5::int[], $6::int[], $7::int[], $8::int[], $9::int[], $10::numeric[]) as "
         "f(sweep_key, queued, running, paused, completed, pruned, failed, cancelled, ended, "
         "spent)" SQL_COUNTS_OF_EACH},
    [TRIAL_DROP] = {"trial_drop",
                    "delete from trial_file f using unnest($1::bigint[], $2::int[]) as "
                    "l(sweep_key, number) where f.kind = 'checkpoint' and " SQL_JOINED(
                        "f.sweep_key", "l.sweep_key") " and " SQL_JOINED_NEXT("f.number",
                                                                              "l.number")},
    /* Its earlier end goes to `retries`, with the numbers of that end and of the retry. Without a
     * checkpoint the trial begins anew, so what it measured last is no longer its value. */
    [TRIAL_RETRY] =
        {"trial_retry",
         "update trial t set state = 'queued', timed_out = false, restarts = 0, missing = 0, "
         "decision = null, "
         "reason = $5, started_at "
         "= null, finished_at = null, finish_seq = null, retry_seq = s.finish_seq + 1, retries = "
         "coalesce(t.retries, '[]') || jsonb_build_object('state', t.state, 'reason', t.reason, "
         "'attempt', t.attempt, 'finish_seq', t.finish_seq, 'retry_seq', s.finish_seq + 1, "
         "'retried_at', to_char(now() at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'), "
         "'retried_by', $6::text), value = case when c.has then t.value end, step = case when "
         "c.has then t.step end, metrics = case when c.has then t.metrics else '{}' end from sweep "
         "s, lateral (select exists (select from trial_file f where f.sweep_key = $1 and f.number "
         "= $2 and f.kind = 'checkpoint') as has) c where s.key = $1 and t.sweep_key = $1 and "
         "t.number = $2 and t.state = $3 and t.attempt = $4"},
};
const struct stmt_set trial_move_stmts = {"trial_move", stmts, AS_ARRAY_LEN(stmts)};

static void put_move(struct arrays *x, const struct trial_moved *moved)
{
    const struct trial_move *m = &moved->move;
    const struct trial_latest *l = &moved->latest;
    array_i64(&x->c[0], moved->sweep_key);
    array_i64(&x->c[1], moved->number);
    array_str(&x->c[2], trial_state_format(m->from));
    array_i64(&x->c[3], m->attempt);
    array_str(&x->c[4], trial_state_format(m->to));
    array_str(&x->c[5], m->burns_restart ? "t" : "f");
    array_str(&x->c[6], m->reason);
    array_str(&x->c[7], trial_state_is_final(m->to) ? "t" : "f");
    array_str(&x->c[8], m->to != TRIAL_COMPLETED ? NULL : m->feasible ? "t" : "f");
    array_str(&x->c[9], m->timed_out ? "t" : "f");
    array_str(&x->c[10], l->metrics);
    array_i64_or_null(&x->c[11], l->metrics, l->step);
    array_f64_or_null(&x->c[12], l->has_value, l->value);
    array_i64(&x->c[13], m->seq);
    array_i64(&x->c[14], m->waited_ms);
    array_str(&x->c[15], m->never_began ? "t" : "f");
}

/* Nothing goes on from the checkpoints of trials that are pruned. */
static as_status drop_checkpoints(struct tx *t, const struct trial_moved *moves, size_t n,
                                  struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    size_t n_pruned = 0;
    arrays_open(&x);
    for (size_t i = 0; i < n; i++) {
        if (moves[i].move.to != TRIAL_PRUNED)
            continue;
        array_i64(&x.c[0], moves[i].sweep_key);
        array_i64(&x.c[1], moves[i].number);
        n_pruned++;
    }
    as_status st = arrays_close(&x, err);
    if (st != AS_OK || n_pruned == 0)
        return st;
    return tx_exec(t, &stmts[TRIAL_DROP], ARGS(arg_array(&x, 0), arg_array(&x, 1)), NULL, err);
}

static as_status move_many(struct tx *t, const struct trial_moved *moves, size_t n, bool is_counted,
                           struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    int moved = 0;
    if (n == 0)
        return AS_OK;
    arrays_open(&x);
    for (size_t i = 0; i < n; i++)
        put_move(&x, &moves[i]);
    as_status st = arrays_close(&x, err);
    if (st == AS_OK)
        st = tx_exec(t, &stmts[TRIAL_MOVE],
                     ARGS(arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2), arg_array(&x, 3),
                          arg_array(&x, 4), arg_array(&x, 5), arg_array(&x, 6), arg_array(&x, 7),
                          arg_array(&x, 8), arg_array(&x, 9), arg_array(&x, 10), arg_array(&x, 11),
                          arg_array(&x, 12), arg_array(&x, 13), arg_bool(is_counted),
                          arg_array(&x, 14), arg_array(&x, 15)),
                     &moved, err);
    if (st == AS_OK && moved == 0 && n == 1)
        return as_fail(err, AS_E_CONFLICT, "trial %lld is no longer %s at attempt %lld",
                       (long long)moves[0].number, trial_state_format(moves[0].move.from),
                       (long long)moves[0].move.attempt);
    if (st == AS_OK && (size_t)moved != n)
        return as_fail(err, AS_E_CONFLICT, "%zu of %zu trials changed meanwhile", n - (size_t)moved,
                       n);
    for (size_t i = 0; i < n && st == AS_OK; i++) {
        if (trial_state_is_final(moves[i].move.to) && moves[i].move.attempt > 0)
            tx_finished(t, moves[i].sweep_key);
    }
    return st == AS_OK ? drop_checkpoints(t, moves, n, err) : st;
}

as_status store_trial_move_many(struct tx *t, const struct trial_moved *moves, size_t n,
                                struct as_err *err)
{
    return move_many(t, moves, n, false, err);
}

/* How the counts of a sweep change. */
struct count_change {
    int64_t sweep_key, by_state[TRIAL_STATES], ended, spent;
};

static struct count_change *count_change_of(struct count_change *list, size_t *n, int64_t sweep_key)
{
    for (size_t i = *n; i > 0; i--)
        if (list[i - 1].sweep_key == sweep_key)
            return &list[i - 1];
    list[*n] = (struct count_change){.sweep_key = sweep_key};
    return &list[(*n)++];
}

static size_t list_count_changes(const struct trial_moved *moves, size_t n,
                                 struct count_change *ret)
{
    size_t n_sweeps = 0;
    for (size_t i = 0; i < n; i++) {
        struct count_change *s = count_change_of(ret, &n_sweeps, moves[i].sweep_key);
        s->by_state[moves[i].move.from]--;
        s->by_state[moves[i].move.to]++;
        s->ended += trial_state_is_final(moves[i].move.to);
        if (__builtin_add_overflow(s->spent, moves[i].spent, &s->spent))
            s->spent = INT64_MAX; /* the row has no more either */
    }
    return n_sweeps;
}

as_status store_trial_move_counted(struct tx *t, struct arena *a, const struct trial_moved *moves,
                                   size_t n, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    struct count_change *list = arena_alloc(a, n + 1, sizeof *list);
    if (!list)
        return as_fail_nomem(err);
    as_status st = move_many(t, moves, n, true, err);
    if (st != AS_OK)
        return st;
    size_t n_sweeps = list_count_changes(moves, n, list);
    arrays_open(&x);
    for (size_t i = 0; i < n_sweeps; i++) {
        array_i64(&x.c[0], list[i].sweep_key);
        for (int state = 0; state < TRIAL_STATES; state++)
            array_i64(&x.c[1 + state], list[i].by_state[state]);
        array_i64(&x.c[1 + TRIAL_STATES], list[i].ended);
        array_i64(&x.c[2 + TRIAL_STATES], list[i].spent);
    }
    st = arrays_close(&x, err);
    return st != AS_OK ? st
                       : tx_exec(t, &stmts[TRIAL_COUNT],
                                 ARGS(arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2),
                                      arg_array(&x, 3), arg_array(&x, 4), arg_array(&x, 5),
                                      arg_array(&x, 6), arg_array(&x, 7), arg_array(&x, 8),
                                      arg_array(&x, 9)),
                                 NULL, err);
}

as_status store_trial_retry(struct tx *t, const struct trial_head *x, const char *reason,
                            const char *by, struct as_err *err)
{
    int n = 0;
    as_status st = tx_exec(t, &stmts[TRIAL_RETRY],
                           ARGS(arg_i64(x->sweep_key), arg_i64(x->number),
                                arg_str(trial_state_format(x->state)), arg_i64(x->attempt),
                                arg_str(reason), arg_str(by)),
                           &n, err);
    if (st == AS_OK && n == 0)
        return as_fail(err, AS_E_CONFLICT, "trial %lld is no longer %s at attempt %lld",
                       (long long)x->number, trial_state_format(x->state), (long long)x->attempt);
    return st;
}
