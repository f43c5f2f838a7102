/* Table trial.
 *
 * Every change of state is one statement whose WHERE holds the old state and the attempt. If no row
 * matches, another writer was faster, and the function returns AS_E_CONFLICT. A trial that ends
 * takes the next finish_seq from the sweep's row, which the caller holds, so these numbers have no
 * gaps.
 *
 * The lists by number have a statement for each direction, and one more for trials of a state. */
#include "scheduler/store/trial_store.h"

#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/sql_counts_priv.h"
#include "scheduler/store/gang_sql_priv.h"
#include "scheduler/store/page_fill_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/refs_priv.h"
#include "scheduler/store/sql_rungs_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/trial_store_priv.h"
#include "scheduler/store/values_priv.h"

enum {
    TRIAL_HEAD,
    TRIAL_LOCK,
    TRIAL_LOCK_MANY,
    TRIAL_LOCK_EACH,
    TRIAL_LOCK_FREE,
    TRIAL_MOVE,
    TRIAL_COUNT,
    TRIAL_DROP,
    TRIAL_RETRY,
    TRIAL_GET,
    TRIAL_GET_MANY,
    TRIAL_LIST_UP,
    TRIAL_LIST_DOWN,
    TRIAL_LIST_OPEN_UP,
    TRIAL_LIST_OPEN_DOWN,
    TRIAL_BEST_MIN,
    TRIAL_BEST_MAX,
    TRIAL_LOCK_LIVE,
    TRIAL_ENDED,
    TRIAL_OF_CLIENT,
    TRIAL_HELD,
    TRIAL_OVERDUE,
    TRIAL_IS_OVERDUE,
    TRIAL_RESUME,
    TRIAL_NOT_CURRENT,
    TRIAL_MISSING,
    TRIAL_MEASURED
};

static void column_decision(struct reader *rd, trial_decision *ret)
{
    *ret = (trial_decision)word_place(trial_decision_words, read_view(rd));
}

#define HEAD_FIELDS(FIRST, NEXT)                                                                   \
    FIRST(i64, sweep_key, "t.sweep_key")                                                           \
    NEXT(i64, number, "t.number")                                                                  \
    NEXT(trial_state, state, "t.state")                                                            \
    NEXT(i64, attempt, "t.attempt")                                                                \
    NEXT(i64, restarts, "t.restarts")                                                              \
    NEXT(bool, has_value, "t.value is not null")                                                   \
    NEXT(f64, value, "t.value")                                                                    \
    NEXT(text, runner, "t.runner")                                                                 \
    NEXT(text, client, "t.client")                                                                 \
    NEXT(i64, epoch, "t.epoch")                                                                    \
    NEXT(bool, gang, "t.gang")                                                                     \
    NEXT(bool, is_known, "t.origin = 'known'")                                                     \
    NEXT(bool, is_fork, "t.fork_step is not null")                                                 \
    NEXT(i64, step, "t.step")                                                                      \
    NEXT(i64, spent, "t.spent")                                                                    \
    NEXT(i64, at.rung, "t.rung")                                                                   \
    NEXT(decision, at.decision, "t.decision")                                                      \
    NEXT(text, at.reason, "case when t.decision is not null then t.reason end")
COLUMNS_WHOLE_ROW(struct trial_head, HEAD_FIELDS)
COLUMNS_READER(head, struct trial_head, HEAD_FIELDS)
#define HEAD_COLUMNS COLUMNS_SQL(HEAD_FIELDS)

static void column_origin(struct reader *rd, trial_origin *ret)
{
    *ret = (trial_origin)word_place(trial_origin_words, read_view(rd));
}

#define TRIAL_FIELDS(FIRST, NEXT)                                                                  \
    FIRST(text, sweep, "s.id")                                                                     \
    NEXT(i64, number, "t.number")                                                                  \
    NEXT(trial_state, state, "t.state")                                                            \
    NEXT(origin, origin, "t.origin")                                                               \
    NEXT(i64, attempt, "t.attempt")                                                                \
    NEXT(i64, restarts, "t.restarts")                                                              \
    NEXT(text, params, "t.params")                                                                 \
    NEXT(i64, seed, "t.seed")                                                                      \
    NEXT(bool, has_value, "t.value is not null")                                                   \
    NEXT(f64, value, "t.value")                                                                    \
    NEXT(bool, has_step, "t.step is not null")                                                     \
    NEXT(i64, step, "t.step")                                                                      \
    NEXT(text, metrics, "t.metrics")                                                               \
    NEXT(text, suggestion, "t.suggestion")                                                         \
    NEXT(bool, is_fork, "t.parent is not null")                                                    \
    NEXT(i64, parent, "t.parent")                                                                  \
    NEXT(i64, fork_step, "t.fork_step")                                                            \
    NEXT(bool, has_index, "t.suggestion_index is not null")                                        \
    NEXT(i64, index, "t.suggestion_index")                                                         \
    NEXT(bool, has_seen, "t.seen is not null")                                                     \
    NEXT(i64, seen, "t.seen")                                                                      \
    NEXT(i64, finish_seq, "t.finish_seq")                                                          \
    NEXT(text, retries, "t.retries")                                                               \
    NEXT(text, rungs, SQL_RUNGS("t"))                                                              \
    NEXT(bool, has_feasible, "t.feasible is not null")                                             \
    NEXT(bool, feasible, "t.feasible")                                                             \
    NEXT(bool, timed_out, "t.timed_out")                                                           \
    NEXT(text, shape, "t.shape")                                                                   \
    NEXT(text, group, "t.group_id")                                                                \
    NEXT(text, runner, "t.runner")                                                                 \
    NEXT(text, client, "t.client")                                                                 \
    NEXT(text, reason, "t.reason")                                                                 \
    NEXT(text, tags, "array_to_json(coalesce(t.tags, '{}'))")                                      \
    NEXT(i64, created_ms, SQL_MS("t.created_at"))                                                  \
    NEXT(i64, started_ms, SQL_MS("t.started_at"))                                                  \
    NEXT(i64, finished_ms, SQL_MS("t.finished_at"))
COLUMNS_WHOLE_ROW(struct trial_row, TRIAL_FIELDS)
COLUMNS_READER(trial, struct trial_row, TRIAL_FIELDS)
#define TRIAL_COLUMNS COLUMNS_SQL(TRIAL_FIELDS)

#define TRIAL_FROM " from trial t join sweep_base s on s.key = t.sweep_key "

/* The running trials that are past their trial_timeout, as of $1 (Unix milliseconds), with $2
 * milliseconds of patience. The time counts from when the process began, if its runner said so,
 * else from the claim. What the runner prepares, or says ended in time, is never overdue. */
#define OVERDUE_FROM                                                                               \
    "from trial t join sweep_base s on s.key = t.sweep_key join attempt x on x.sweep_key = "       \
    "t.sweep_key and x.number = t.number and x.attempt = t.attempt left join gang g on t.gang "    \
    "and " SAME(                                                                                   \
        "g", "t") " where t.state = 'running' "                                                    \
                  "and s.state in ('running', 'paused') and s.trial_timeout_ms is not null and "   \
                  "coalesce(case "                                                                 \
                  "x.phase when 'preparing' then false when 'ended' then x.ran_ms > "              \
                  "s.trial_timeout_ms end, "                                                       \
                  "true) and (not t.gang or g.started_at is not null and not exists (select from " \
                  "gang_seat q "                                                                   \
                  "where " SAME(                                                                   \
                      "q",                                                                         \
                      "g") " and q.is_member and q.phase = 'ended' and q.ran_ms <= "               \
                           "s.trial_timeout_ms and q.seat = (select min(m.seat) from gang_seat m " \
                           "where "                                                                \
                           "" SAME("m",                                                            \
                                   "g") " and m.is_member))) and greatest(t.claimed_at, "          \
                                        "g.started_at, x.said_at - "                               \
                                        "x.ran_ms * interval '1 ms') < " SQL_TIME(                 \
                                            "$1") " - (s.trial_timeout_ms + s.grace_ms + $2) * "   \
                                                  "interval '1 ms'"

/* Trials by sweep and number: $1, $2, in their order. The lateral query cannot be merged into the
 * outer one, so each trial is found by its key and locked in this order. */
#define EACH(query)                                                                                \
    "select u.place - 1, h.* from unnest($1::bigint[], $2::bigint[]) with ordinality as u(key, "   \
    "number, place) cross join lateral (" query ") h"
#define LOCK_EACH(wait)                                                                            \
    EACH("select " HEAD_COLUMNS " from trial t where t.sweep_key = u.key and t.number = u.number " \
         "for no key update of t " wait)

/* The trials of a list by number. Those of a state that is not the common one, completed, are found
 * by the index trial_open, which needs the second condition in the text of the statement. */
#define LIST_UP(in_state)                                                                          \
    "select " TRIAL_COLUMNS ", true, t.number" TRIAL_FROM "where t.sweep_key = $1 and " in_state   \
    " and ($5::text is null or t.group_id = $5) and t.number > $3 order by t.number limit $4"
#define LIST_DOWN(in_state)                                                                        \
    "select " TRIAL_COLUMNS ", true, t.number" TRIAL_FROM "where t.sweep_key = $1 and " in_state   \
    " and ($5::text is null or t.group_id = $5) and t.number < $3 order by t.number desc limit $4"

/* Does the runner $1 hold the listed attempt? */
#define IS_HELD "coalesce(t.attempt = l.attempt and t.state = 'running' and t.runner = $1, false)"

static const struct stmt stmts[] = {
    [TRIAL_HEAD] = {"trial_head",
                    "select " HEAD_COLUMNS " from trial t where sweep_key = $1 and number = $2"},
    [TRIAL_LOCK] = {"trial_lock",
                    "select " HEAD_COLUMNS " from trial t where sweep_key = $1 and number = $2 "
                    "for no key update"},
    [TRIAL_LOCK_EACH] = {"trial_lock_each", LOCK_EACH("")},
    [TRIAL_LOCK_FREE] = {"trial_lock_free", LOCK_EACH("skip locked")},
    [TRIAL_LOCK_MANY] = {"trial_lock_many",
                         "select " HEAD_COLUMNS " from trial t where t.sweep_key = $1 and t.number "
                         "= any ($2::int[]) order by t.number for no key update"},
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
    [TRIAL_GET] = {"trial_get",
                   "select " TRIAL_COLUMNS TRIAL_FROM "where t.sweep_key = $1 and t.number = $2"},
    [TRIAL_GET_MANY] = {"trial_get_many",
                        EACH("select " TRIAL_COLUMNS TRIAL_FROM
                             "where t.sweep_key = u.key and t.number = u.number limit 1")},
    [TRIAL_LIST_UP] = {"trial_list_up", LIST_UP("($2::text is null or t.state = $2)")},
    [TRIAL_LIST_DOWN] = {"trial_list_down", LIST_DOWN("($2::text is null or t.state = $2)")},
    [TRIAL_LIST_OPEN_UP] = {"trial_list_open_up",
                            LIST_UP("t.state = $2 and t.state <> 'completed'")},
    [TRIAL_LIST_OPEN_DOWN] = {"trial_list_open_down",
                              LIST_DOWN("t.state = $2 and t.state <> 'completed'")},
    [TRIAL_BEST_MIN] = {"trial_best_min",
                        "select " TRIAL_COLUMNS ", true, t.value" TRIAL_FROM
                        "where t.sweep_key = $1 and t.result is not null and "
                        "(not $3::boolean or (t.result, t.number) > ($4::float8, $5::int)) "
                        "order by t.result, t.number limit $2"},
    [TRIAL_BEST_MAX] = {"trial_best_max",
                        "select " TRIAL_COLUMNS ", true, t.value" TRIAL_FROM
                        "where t.sweep_key = $1 and t.result is not null and "
                        "(not $3::boolean or t.result < $4::float8 or (t.result = $4::float8 and "
                        "t.number > $5::int)) order by t.result desc, t.number limit $2"},
    [TRIAL_LOCK_LIVE] = {"trial_lock_live",
                         "select " HEAD_COLUMNS " from trial t where sweep_key = $1 and number > "
                         "$2 and state in ('queued', 'running', 'paused') order by number limit $3 "
                         "for no key update"},
    [TRIAL_ENDED] = {"trial_ended", /* never of completed ones */
                     "select " HEAD_COLUMNS " from trial t where sweep_key = $1 and state = $2 and "
                     "state <> 'completed' and "
                     "origin <> 'known' order by number limit $3"},
    [TRIAL_OF_CLIENT] = {"trial_of_client",
                         "select " HEAD_COLUMNS " from trial t where sweep_key = $1 and client = "
                         "$2 and state = 'running' order by number limit $3"},
    [TRIAL_HELD] = {"trial_held", "select " HEAD_COLUMNS
                                  " from trial t join sweep_base s on s.key = t.sweep_key where "
                                  "t.runner = $1 and t.state = 'running' and not exists "
                                  "(select from " LISTED
                                  " where l.id = s.id and l.number = t.number and l.attempt = "
                                  "t.attempt) order by "
                                  "t.sweep_key, t.number"},
    [TRIAL_OVERDUE] = {"trial_overdue", "select " HEAD_COLUMNS " " OVERDUE_FROM
                                        " order by t.sweep_key, t.number limit 1000"},
    [TRIAL_IS_OVERDUE] = {"trial_is_overdue", "select " HEAD_COLUMNS " " OVERDUE_FROM
                                              " and t.sweep_key = $3 and t.number = $4"},
    [TRIAL_RESUME] = {"trial_resume",
                      "update trial t set epoch = $5, missing = 0 from " LISTED ", sweep s where "
                      "s.id = l.id and t.sweep_key = s.key and t.number = l.number and t.attempt = "
                      "l.attempt and t.runner = $1 and t.state = 'running'"},
    [TRIAL_NOT_CURRENT] =
        {"trial_not_current",
         "select l.place - 1, t.state, t.attempt, t.attempt = l.attempt, " IS_HELD
         ", t.decision, t.reason from "
         "unnest($2::text[], $3::int[], $4::int[]) with ordinality as l(id, "
         "number, attempt, place) left join sweep_base s on s.id = l.id left join "
         "trial t on t.sweep_key = s.key and t.number = l.number where not " IS_HELD
         " or t.decision is not null order by l.place"},
    /* A statement that updated every running trial would write a row for each trial and
     * heartbeat. So only trials that are missing, or were missing in the heartbeat before, are
     * updated. The CTE is materialized so that the list is compared once. */
    [TRIAL_MISSING] =
        {"trial_missing",
         "with held as materialized (select t.sweep_key, t.number, exists (select "
         "from " LISTED " where l.id = s.id and l.number = t.number and l.attempt = "
         "t.attempt) as listed from trial t join sweep_base s on s.key = t.sweep_key where "
         "t.runner = $1 and t.state = 'running') update trial t set missing = case "
         "when h.listed then 0 else t.missing + 1 end from held h where t.sweep_key = "
         "h.sweep_key and t.number = h.number and t.runner = $1 and t.state = "
         "'running' and (not h.listed or t.missing > 0) returning " HEAD_COLUMNS
         ", t.missing >= 2 and t.claimed_at < now() - $5 * interval '1 ms'"},
    [TRIAL_MEASURED] = {"trial_measured",
                        "select (select array_agg((t.metrics ->> u.name)::float8 order by u.place) "
                        "from unnest($3::text[]) with ordinality as u(name, place)) from trial t "
                        "where t.sweep_key = $1 and t.number = $2"},
};
const struct stmt_set trial_stmts = {"trial", stmts, AS_ARRAY_LEN(stmts)};

static as_status read_heads(const struct result *r, struct arena *a, struct trial_list_heads *ret,
                            struct as_err *err)
{
    as_status st = read_head_rows(r, r->rows, a, &ret->rows, err);
    if (st == AS_OK)
        ret->n = (size_t)r->rows;
    return st;
}

static as_status query_head(struct tx *t, int which, struct arena *a, int64_t sweep_key,
                            int64_t number, struct trial_head *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[which], ARGS(arg_i64(sweep_key), arg_i64(number)), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "the sweep has no trial %lld", (long long)number);
    return read_head_row(&r, 0, a, ret, err);
}

as_status store_trial_head(struct tx *t, struct arena *a, int64_t sweep_key, int64_t number,
                           struct trial_head *ret, struct as_err *err)
{
    return query_head(t, TRIAL_HEAD, a, sweep_key, number, ret, err);
}

as_status store_trial_lock(struct tx *t, struct arena *a, int64_t sweep_key, int64_t number,
                           struct trial_head *ret, struct as_err *err)
{
    return query_head(t, TRIAL_LOCK, a, sweep_key, number, ret, err);
}

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

/* The keys of trials as $1 and $2. */
static as_status keys_format(struct arrays *x, const struct trial_key *keys, size_t n,
                             struct as_err *err)
{
    arrays_open(x);
    for (size_t i = 0; i < n; i++) {
        array_i64(&x->c[0], keys[i].sweep_key);
        array_i64(&x->c[1], keys[i].number);
    }
    return arrays_close(x, err);
}

as_status trial_lock_send(struct tx *t, const struct trial_key *keys, size_t n, bool is_patient,
                          struct result *ret, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    as_status st = keys_format(&x, keys, n, err);
    return st == AS_OK ? tx_send(t, &stmts[is_patient ? TRIAL_LOCK_EACH : TRIAL_LOCK_FREE],
                                 ARGS(arg_array(&x, 0), arg_array(&x, 1)), ret, err)
                       : st;
}

as_status trial_lock_read(const struct result *r, struct arena *a, size_t n, struct trial_head *ret,
                          bool *ret_locked, struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; i < n; i++)
        ret_locked[i] = false;
    for (int i = 0; i < r->rows && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, r, i, a);
        int64_t place = read_i64(&rd);
        read_head(&rd, &ret[place]);
        ret_locked[place] = true;
        st = reader_check(&rd, err);
    }
    return st;
}

as_status store_trial_get_many(struct tx *t, const struct trial_key *keys, size_t n,
                               struct arena *const *arenas, struct trial_row *ret,
                               struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    as_status st = keys_format(&x, keys, n, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[TRIAL_GET_MANY], ARGS(arg_array(&x, 0), arg_array(&x, 1)), &r, err);
    if (st == AS_OK && (size_t)r.rows != n)
        return as_fail(err, AS_E_NOT_FOUND, "%d of %zu trials are there", r.rows, n);
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        struct reader rd;
        size_t place = (size_t)result_i64(&r, i, 0);
        reader_init(&rd, &r, i, arenas[place]);
        rd.col = 1;
        read_trial(&rd, &ret[place]);
        st = reader_check(&rd, err);
    }
    return st;
}

as_status store_trial_get(struct tx *t, struct arena *a, int64_t sweep_key, int64_t number,
                          struct trial_row *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[TRIAL_GET], ARGS(arg_i64(sweep_key), arg_i64(number)), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "the sweep has no trial %lld", (long long)number);
    return read_trial_row(&r, 0, a, ret, err);
}

/* The place of a trial, from the two columns after the trial's. */
static struct trial_place read_place(const struct result *r, int i, const struct trial_row *row)
{
    struct reader rd;
    reader_init(&rd, r, i, NULL);
    rd.col = COLUMNS_COUNT(TRIAL_FIELDS);
    struct trial_place p = {.set = true, .has_key = read_bool(&rd)};
    p.key = read_f64(&rd);
    p.number = row->number;
    return p;
}

/* Add the trials of `r` that belong to the page, and move *at behind the last of them. */
static as_status take_trials(struct page_fill *f, const struct result *r, int64_t ask,
                             struct arena *a, struct trial_page *page, struct trial_place *at,
                             struct as_err *err)
{
    int take = page_fill_take(f, r, ask);
    for (int i = 0; i < take; i++) {
        struct trial_row *row = &page->rows[page->n++];
        as_status st = read_trial_row(r, i, a, row, err);
        if (st != AS_OK)
            return st;
        *at = read_place(r, i, row);
    }
    return AS_OK;
}

static as_status query_list(struct tx *t, int64_t sweep_key, const struct trial_query *q,
                            const struct trial_place *after, int64_t limit, struct result *ret,
                            struct as_err *err)
{
    const char *state = q->state ? trial_state_format(*q->state) : NULL;
    int64_t number = after->set ? after->number : q->descending ? INT32_MAX : -1;
    bool is_open = q->state && *q->state != TRIAL_COMPLETED;
    int up = is_open ? TRIAL_LIST_OPEN_UP : TRIAL_LIST_UP;
    int down = is_open ? TRIAL_LIST_OPEN_DOWN : TRIAL_LIST_DOWN;
    return tx_query(t, &stmts[q->descending ? down : up],
                    ARGS(arg_i64(sweep_key), arg_str(state), arg_i64(number), arg_i64(limit),
                         arg_str(q->group)),
                    ret, err);
}

as_status store_trial_list(struct tx *t, struct arena *a, int64_t sweep_key,
                           const struct trial_query *q, const struct trial_place *after,
                           struct trial_page *ret, struct trial_place *ret_next, struct as_err *err)
{
    struct page_fill f = page_fill_start(q->page.size);
    struct trial_page page = {.rows = arena_alloc(a, (size_t)q->page.size, sizeof *page.rows)};
    struct trial_place at = *after;
    if (!page.rows)
        return as_fail_nomem(err);
    for (int64_t ask; (ask = page_fill_next(&f)) > 0;) {
        RESULT_AUTO r = {0};
        as_status st = query_list(t, sweep_key, q, &at, ask + 1, &r, err);
        if (st == AS_OK)
            st = take_trials(&f, &r, ask, a, &page, &at, err);
        if (st != AS_OK)
            return st;
    }
    at.set = f.has_more;
    *ret = page;
    *ret_next = at;
    return AS_OK;
}

as_status store_trial_best(struct tx *t, struct arena *a, int64_t sweep_key, bool maximize,
                           int64_t top, const struct trial_place *after, struct trial_page *ret,
                           struct trial_place *ret_next, struct as_err *err)
{
    struct page_fill f = page_fill_start(top);
    struct trial_page page = {.rows = arena_alloc(a, (size_t)top, sizeof *page.rows)};
    struct trial_place at = *after;
    if (!page.rows)
        return as_fail_nomem(err);
    for (int64_t ask; (ask = page_fill_next(&f)) > 0;) {
        RESULT_AUTO r = {0};
        as_status st = tx_query(t, &stmts[maximize ? TRIAL_BEST_MAX : TRIAL_BEST_MIN],
                                ARGS(arg_i64(sweep_key), arg_i64(ask + 1), arg_bool(at.set),
                                     arg_f64(at.key), arg_i64(at.number)),
                                &r, err);
        if (st == AS_OK)
            st = take_trials(&f, &r, ask, a, &page, &at, err);
        if (st != AS_OK)
            return st;
    }
    at.set = f.has_more;
    *ret = page;
    *ret_next = at;
    return AS_OK;
}

as_status store_trial_lock_live(struct tx *t, struct arena *a, int64_t sweep_key, int64_t after,
                                int64_t limit, struct trial_list_heads *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[TRIAL_LOCK_LIVE],
                            ARGS(arg_i64(sweep_key), arg_i64(after), arg_i64(limit)), &r, err);
    return st == AS_OK ? read_heads(&r, a, ret, err) : st;
}

as_status store_trial_lock_many(struct tx *t, struct arena *a, const struct trial_head *heads,
                                size_t n, struct trial_list_heads *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    AS_AUTO(str_done) struct str numbers = {0};
    *ret = (struct trial_list_heads){0};
    if (n == 0)
        return AS_OK;
    array_open(&numbers);
    for (size_t i = 0; i < n; i++)
        array_i64(&numbers, heads[i].number);
    array_close(&numbers);
    as_status st = str_check(&numbers, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[TRIAL_LOCK_MANY],
                      ARGS(arg_i64(heads[0].sweep_key), arg_str(str_cstr(&numbers))), &r, err);
    return st == AS_OK ? read_heads(&r, a, ret, err) : st;
}

as_status store_trial_ended(struct tx *t, struct arena *a, int64_t sweep_key, trial_state state,
                            int64_t limit, struct trial_list_heads *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(
        t, &stmts[TRIAL_ENDED],
        ARGS(arg_i64(sweep_key), arg_str(trial_state_format(state)), arg_i64(limit)), &r, err);
    return st == AS_OK ? read_heads(&r, a, ret, err) : st;
}

as_status store_trial_of_client(struct tx *t, struct arena *a, int64_t sweep_key,
                                const char *client, int64_t limit, struct trial_list_heads *ret,
                                struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[TRIAL_OF_CLIENT],
                            ARGS(arg_i64(sweep_key), arg_str(client), arg_i64(limit)), &r, err);
    return st == AS_OK ? read_heads(&r, a, ret, err) : st;
}

as_status store_trial_held(struct tx *t, struct arena *a, const char *runner,
                           const struct attempt_ref *but, size_t n, struct trial_list_heads *ret,
                           struct as_err *err)
{
    AS_AUTO(refs_done) struct refs c = {0};
    as_status st = refs_format(&c, but, n, err);
    if (st != AS_OK)
        return st;
    RESULT_AUTO r = {0};
    st = tx_query(t, &stmts[TRIAL_HELD], ARGS(arg_str(runner), ARG_REFS(&c)), &r, err);
    return st == AS_OK ? read_heads(&r, a, ret, err) : st;
}

as_status store_trial_overdue(struct tx *t, struct arena *a, int64_t as_of_ms, int64_t slack_ms,
                              struct trial_list_heads *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[TRIAL_OVERDUE], ARGS(arg_i64(as_of_ms), arg_i64(slack_ms)), &r, err);
    return st == AS_OK ? read_heads(&r, a, ret, err) : st;
}

as_status store_trial_is_overdue(struct tx *t, int64_t sweep_key, int64_t number, int64_t as_of_ms,
                                 int64_t slack_ms, bool *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(
        t, &stmts[TRIAL_IS_OVERDUE],
        ARGS(arg_i64(as_of_ms), arg_i64(slack_ms), arg_i64(sweep_key), arg_i64(number)), &r, err);
    if (st == AS_OK)
        *ret = r.rows > 0;
    return st;
}

as_status store_trial_resume(struct tx *t, const char *runner, int64_t epoch,
                             const struct attempt_ref *refs, size_t n, struct as_err *err)
{
    AS_AUTO(refs_done) struct refs c = {0};
    as_status st = refs_format(&c, refs, n, err);
    if (st != AS_OK)
        return st;
    return tx_exec(t, &stmts[TRIAL_RESUME], ARGS(arg_str(runner), ARG_REFS(&c), arg_i64(epoch)),
                   NULL, err);
}

static as_status read_directive(struct reader *rd, struct arena *a, const struct attempt_ref *refs,
                                struct directive_row *ret, struct as_err *err)
{
    ret->ref = refs[read_i64(rd)];
    bool exists = !read_null(rd);
    const char *state = read_view(rd);
    int64_t attempt = read_i64(rd);
    bool same = read_bool(rd), is_held = read_bool(rd);
    trial_decision decision;
    column_decision(rd, &decision);
    if (is_held) {
        ret->action = decision == DECIDED_PRUNE ? DIRECTIVE_PRUNE : DIRECTIVE_PAUSE;
        ret->reason = read_str(rd);
        return reader_check(rd, err);
    }
    if (!exists)
        ret->reason = "there is no such trial";
    else if (!same)
        ret->reason = arena_printf(a, "attempt %lld is the current one", (long long)attempt);
    else if (as_streq(state, "running"))
        ret->reason = "it runs on another runner";
    else
        ret->reason = arena_printf(a, "the trial is %s", state);
    return ret->reason ? AS_OK : as_fail_nomem(err);
}

as_status store_trial_not_current(struct tx *t, struct arena *a, const char *runner,
                                  const struct attempt_ref *refs, size_t n,
                                  struct directive_list *ret, struct as_err *err)
{
    AS_AUTO(refs_done) struct refs c = {0};
    as_status st = refs_format(&c, refs, n, err);
    if (st != AS_OK)
        return st;
    RESULT_AUTO r = {0};
    st = tx_query(t, &stmts[TRIAL_NOT_CURRENT], ARGS(arg_str(runner), ARG_REFS(&c)), &r, err);
    if (st != AS_OK)
        return st;
    struct directive_row *rows = arena_alloc(a, (size_t)r.rows + 1, sizeof *rows);
    if (!rows)
        return as_fail_nomem(err);
    for (int i = 0; i < r.rows; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, a);
        if ((st = read_directive(&rd, a, refs, &rows[i], err)) != AS_OK)
            return st;
    }
    *ret = (struct directive_list){rows, (size_t)r.rows};
    return AS_OK;
}

/* The last column says which of the rows are returned. */
static as_status read_missing(const struct result *r, struct arena *a, struct trial_list_heads *ret,
                              struct as_err *err)
{
    struct trial_head *rows = arena_alloc(a, (size_t)r->rows + 1, sizeof *rows);
    if (!rows)
        return as_fail_nomem(err);
    size_t n = 0;
    for (int i = 0; i < r->rows; i++) {
        struct reader rd;
        reader_init(&rd, r, i, a);
        read_head(&rd, &rows[n]);
        as_status st = reader_check(&rd, err);
        if (st != AS_OK)
            return st;
        if (read_bool(&rd))
            n++;
    }
    *ret = (struct trial_list_heads){rows, n};
    return AS_OK;
}

as_status store_trial_missing(struct tx *t, struct arena *a, const char *runner,
                              const struct attempt_ref *listed, size_t n, int64_t lease_ms,
                              struct trial_list_heads *ret, struct as_err *err)
{
    AS_AUTO(refs_done) struct refs c = {0};
    as_status st = refs_format(&c, listed, n, err);
    if (st != AS_OK)
        return st;
    RESULT_AUTO r = {0};
    st = tx_query(t, &stmts[TRIAL_MISSING], ARGS(arg_str(runner), ARG_REFS(&c), arg_i64(lease_ms)),
                  &r, err);
    return st == AS_OK ? read_missing(&r, a, ret, err) : st;
}

as_status store_trial_measured(struct tx *t, int64_t sweep_key, int64_t number,
                               const char *const *metrics, size_t n, double *ret, bool *ret_has,
                               struct as_err *err)
{
    AS_AUTO(str_done) struct str names = {0};
    as_status st = array_of_names(&names, metrics, n, err);
    if (st != AS_OK)
        return st;
    RESULT_AUTO r = {0};
    st = tx_query(t, &stmts[TRIAL_MEASURED],
                  ARGS(arg_i64(sweep_key), arg_i64(number), arg_str(str_cstr(&names))), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "the sweep has no trial %lld", (long long)number);
    struct reader rd;
    reader_init(&rd, &r, 0, NULL);
    return read_values(&rd, n, ret, ret_has, err);
}
