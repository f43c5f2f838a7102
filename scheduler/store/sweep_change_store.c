/* What changes of a sweep that exists: its state, its limits and other fields that people change,
 * the record of these changes, and how far its search is. The caller holds the sweep's row. */
#include "scheduler/store/sweep_change_store.h"

#include <math.h>

#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/sql_counts_priv.h"
#include "scheduler/store/sql_limits_priv.h"
#include "scheduler/store/sweep_store_priv.h"

enum {
    SWEEP_MOVE,
    SWEEP_LIMIT,
    SWEEP_PRIORITIZE,
    SWEEP_TAG,
    SWEEP_REMARK,
    SWEEP_REMARKS,
    SWEEP_CHANGE_ADD,
    SWEEP_CHANGES,
    SWEEP_EXHAUSTED,
    SWEEP_STARTED,
    SWEEP_KNOWN,
    SWEEP_SEARCHED
};

#define CHANGE_FIELDS(FIRST, NEXT)                                                                 \
    FIRST(i64, changed_ms, SQL_MS("changed_at"))                                                   \
    NEXT(text, by, "changed_by")                                                                   \
    NEXT(text, changes, "changes")
COLUMNS_WHOLE_ROW(struct sweep_change_row, CHANGE_FIELDS)
COLUMNS_READER(change, struct sweep_change_row, CHANGE_FIELDS)
#define CHANGE_COLUMNS COLUMNS_SQL(CHANGE_FIELDS)

static const struct stmt stmts[] = {
    [SWEEP_MOVE] =
        {"sweep_move",
         "update sweep_base set state = $3, reason = case when $3 = 'completed' then reason "
         "else $4 end, finished_at = case when $5 then clock_timestamp() end, "
         "started_at = case when $3 = 'running' then coalesce(started_at, now()) else "
         "started_at end, spent_ms = spent_ms + case when state in ('running', "
         "'paused') and $3 not in ('running', 'paused') then ceil(" RUN_MS
         ") else 0 end, reopened_at = case when $3 = 'running' and state not in "
         "('running', 'paused') then now() else reopened_at end where key = $1 and "
         "state = $2"},
    [SWEEP_LIMIT] =
        {"sweep_limit",
         "with counted as (" SQL_COUNTS_CHANGE
         "planned = greatest(least($3, (select population from sweep_base where key = $1) + "
         "(select count(*) from trial t where t.sweep_key = $1 and t.origin = 'forked')) + "
         "n_known, n_total)" SQL_COUNTS_OF_FIRST
         " and $3::int is not null) update sweep_base set document = $2, most = case when "
         "population is not null then coalesce($3, most) end, max_concurrent = $4, max_failed = "
         "$5, max_restarts = $6, trial_timeout_ms = $7, wall_time_ms = $8, grace_ms = $9, target "
         "= $10, keeps_timed_out = $11, max_steps = $12, stop_regret = $13, stop_relative = $14, "
         "stop_min_trials = $15 where key = $1"},
    [SWEEP_PRIORITIZE] = {"sweep_prioritize",
                          "update sweep_base set document = $2, priority = $3 where key = $1"},
    [SWEEP_TAG] = {"sweep_tag", "update sweep_base set document = $2, tags = array(select "
                                "json_array_elements_text($2::json -> 'tags')) where key = $1"},
    [SWEEP_REMARK] = {"sweep_remark", "update sweep_base set remarks = $2 where key = $1"},
    [SWEEP_REMARKS] = {"sweep_remarks", "select remarks from sweep_base where key = $1"},
    [SWEEP_CHANGE_ADD] = {"sweep_change_add",
                          "insert into sweep_change (sweep_key, number, changed_by, changes) "
                          "select $1, coalesce(max(number), 0) + 1, $2, $3 from sweep_change where "
                          "sweep_key = $1"},
    [SWEEP_CHANGES] = {"sweep_changes",
                       "select " CHANGE_COLUMNS " from sweep_change where sweep_key = $1 order by "
                       "number desc limit $2"},
    [SWEEP_EXHAUSTED] = {"sweep_exhausted", SQL_COUNTS_CHANGE
                         "planned = n_total" SQL_COUNTS_OF_FIRST " and n_total > 0"},
    [SWEEP_STARTED] =
        {"sweep_started",
         "update sweep_base set started_at = now() where key = $1 and started_at is null"},
    [SWEEP_KNOWN] = {"sweep_known", SQL_COUNTS_CHANGE "planned = planned + $2" SQL_COUNTS_OF_FIRST},
    [SWEEP_SEARCHED] = {"sweep_searched", SQL_COUNTS_CHANGE
                        "search_state = $2, search_mark = $3" SQL_COUNTS_OF_FIRST},
};
const struct stmt_set sweep_change_stmts = {"sweep_change", stmts, AS_ARRAY_LEN(stmts)};

as_status store_sweep_move(struct tx *t, int64_t key, sweep_state from, sweep_state to,
                           const char *reason, struct as_err *err)
{
    int n = 0;
    as_status st = tx_exec(t, &stmts[SWEEP_MOVE],
                           ARGS(arg_i64(key), arg_str(sweep_state_format(from)),
                                arg_str(sweep_state_format(to)), arg_str(reason),
                                arg_bool(sweep_state_is_final(to))),
                           &n, err);
    if (st == AS_OK && n == 0)
        return as_fail(err, AS_E_CONFLICT, "the sweep is no longer %s", sweep_state_format(from));
    return st;
}

as_status store_sweep_limit(struct tx *t, int64_t key, const char *document,
                            const struct sweep_limits *l, bool set_max_trials, struct as_err *err)
{
    return tx_exec(t, &stmts[SWEEP_LIMIT],
                   ARGS(arg_i64(key), arg_str(document),
                        arg_i64_or_null(set_max_trials, l->max_trials),
                        arg_i64_or_null(l->max_concurrent_trials > 0, l->max_concurrent_trials),
                        arg_i64_or_null(l->max_failed_trials >= 0, l->max_failed_trials),
                        arg_i64(l->max_restarts),
                        arg_i64_or_null(l->trial_timeout_ms > 0, l->trial_timeout_ms),
                        arg_i64_or_null(l->wall_time_ms > 0, l->wall_time_ms), arg_i64(l->grace_ms),
                        arg_f64_or_null(!isnan(l->target), l->target), arg_bool(l->keeps_timed_out),
                        arg_i64_or_null(l->max_steps > 0, l->max_steps),
                        arg_f64_or_null(!isnan(l->stop_when.regret), l->stop_when.regret),
                        arg_f64_or_null(!isnan(l->stop_when.relative), l->stop_when.relative),
                        arg_i64(l->stop_when.min_trials)),
                   NULL, err);
}

as_status store_sweep_prioritize(struct tx *t, int64_t key, const char *document, int64_t priority,
                                 struct as_err *err)
{
    return tx_exec(t, &stmts[SWEEP_PRIORITIZE],
                   ARGS(arg_i64(key), arg_str(document), arg_i64(priority)), NULL, err);
}

as_status store_sweep_tag(struct tx *t, int64_t key, const char *document, struct as_err *err)
{
    return tx_exec(t, &stmts[SWEEP_TAG], ARGS(arg_i64(key), arg_str(document)), NULL, err);
}

as_status store_sweep_remark(struct tx *t, int64_t key, const char *remarks, struct as_err *err)
{
    return tx_exec(t, &stmts[SWEEP_REMARK], ARGS(arg_i64(key), arg_str(remarks)), NULL, err);
}

as_status store_sweep_remarks(struct tx *t, struct arena *a, int64_t key, const char **ret,
                              struct as_err *err)
{
    RESULT_AUTO r = {0};
    struct reader rd;
    as_status st = tx_query(t, &stmts[SWEEP_REMARKS], ARGS(arg_i64(key)), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "the sweep was deleted");
    reader_init(&rd, &r, 0, a);
    *ret = read_str(&rd);
    return reader_check(&rd, err);
}

as_status store_sweep_change_add(struct tx *t, int64_t key, const char *by, const char *changes,
                                 struct as_err *err)
{
    return tx_exec(t, &stmts[SWEEP_CHANGE_ADD], ARGS(arg_i64(key), arg_str(by), arg_str(changes)),
                   NULL, err);
}

as_status store_sweep_changes(struct tx *t, struct arena *a, int64_t key, int64_t limit,
                              struct sweep_change_row **ret, size_t *ret_n, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[SWEEP_CHANGES], ARGS(arg_i64(key), arg_i64(limit)), &r, err);
    if (st != AS_OK)
        return st;
    *ret_n = (size_t)r.rows;
    return read_change_rows(&r, r.rows, a, ret, err);
}

as_status store_sweep_exhausted(struct tx *t, int64_t key, struct as_err *err)
{
    return tx_exec(t, &stmts[SWEEP_EXHAUSTED], ARGS(arg_i64(key)), NULL, err);
}

as_status store_sweep_started(struct tx *t, int64_t key, struct as_err *err)
{
    return tx_exec(t, &stmts[SWEEP_STARTED], ARGS(arg_i64(key)), NULL, err);
}

as_status store_sweep_known(struct tx *t, int64_t key, int64_t n, struct as_err *err)
{
    return tx_exec(t, &stmts[SWEEP_KNOWN], ARGS(arg_i64(key), arg_i64(n)), NULL, err);
}

as_status store_sweep_searched(struct tx *t, int64_t key, const char *state, int64_t mark,
                               struct as_err *err)
{
    return tx_exec(t, &stmts[SWEEP_SEARCHED], ARGS(arg_i64(key), arg_str(state), arg_i64(mark)),
                   NULL, err);
}
