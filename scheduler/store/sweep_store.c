/* Sweeps, and what is decided from their rows alone.
 *
 * `sweep` is a view of sweep_base, which stands still while trials run, and sweep_count, with the
 * counts of trials, which triggers maintain (decision 5020). So the statements that decide whether
 * a sweep has work (has_work_priv.h), how much room it has (capacity_store.c), and whether it is
 * over (WALL_TIME_OVER) read a row of each and no trials. What needs no counts reads sweep_base.
 *
 * The transaction that changes the state of a trial holds the sweep's row (SWEEP_LOCK, for no key
 * update). That lock does not stop the check of a foreign key, so other transactions can insert
 * rows that refer to the sweep meanwhile. */
#include "scheduler/store/sweep_store.h"

#include <math.h>

#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/sql_counts_priv.h"
#include "scheduler/store/page_fill_priv.h"
#include "scheduler/store/has_work_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sql_regret_priv.h"

enum {
    SWEEP_ADD,
    SWEEP_ADD_ENSEMBLE,
    SWEEP_ADD_DATASET,
    SWEEP_DATASETS,
    SWEEP_KEY,
    SWEEP_LOCK,
    SWEEP_LOCK_MANY,
    SWEEP_LOCK_FREE,
    SWEEP_STEPS_ROOM,
    SWEEP_JUDGED,
    SWEEP_GET,
    SWEEP_DOCUMENT,
    SWEEP_STANDING,
    SWEEP_DOCUMENTS,
    SWEEP_SEARCH,
    SWEEP_LIST,
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
    SWEEP_SEARCHED,
    SWEEP_DELETE,
    SWEEP_DELETE_PATIENCE,
    SWEEP_DELETE_POINTS,
    SWEEP_DELETE_EVENTS,
    SWEEP_TARGET,
    SWEEP_WAITING,
    SWEEP_DUE
};

/* The best trial by its value, of which only the branch of the sweep's goal is executed, the latest
 * bound of what is left to gain, and the best trial by a model that was kept with it. */
#define SWEEP_FROM                                                                                 \
    " from sweep s left join lateral ((select number, value, params from trial where sweep_key = " \
    "s.key and result is not null and s.goal = 'minimize' order by result, number limit 1) union " \
    "all (select number, value, params from trial where sweep_key = s.key and result is not null " \
    "and s.goal = 'maximize' order by result desc, number limit 1)) b on true left join "          \
    "lateral " SQL_REGRET_LATEST                                                                   \
    " on true left join lateral (select number, value, params from trial where sweep_key = s.key " \
    "and number = r.best and result is not null) m on true "

/* Milliseconds since the sweep began or ran on. A sweep that was created paused has not begun. */
#define RUN_MS                                                                                     \
    "greatest(0, coalesce(extract(epoch from now() - coalesce(reopened_at, started_at, case when " \
    "state <> 'paused' then created_at end)) * 1000, 0))"

/* The time between an end and running on does not count: spent_ms has what came before. */
#define WALL_TIME_OVER                                                                             \
    "coalesce(spent_ms + case when state in ('running', 'paused') then " RUN_MS                    \
    " else 0 end > wall_time_ms, false)"

/* Nothing runs, and what waits, or would be made, has no steps left to its next rung. */
#define STEPS_OVER                                                                                 \
    "case when s.max_steps is null or s.n_running > 0 or (s.n_queued = 0 and s.n_total >= "        \
    "s.planned) then false else steps_room(s.key) = 0 end"
/* No trial has a value at a rung that compares: the last one does not. */
#define NONE_BELOW_LAST                                                                            \
    "s.n_rung_results = 0 or not exists (select from rung_result r where r.sweep_key = s.key "     \
    "and r.rung < cardinality(s.rungs) - 1)"

/* A completed, feasible trial of sweep `s` is at least as good as the target. Reads one entry of
 * the index trial_best, and nothing if there is no target. */
#define REACHED(COMPARE)                                                                           \
    "exists (select from trial t where t.sweep_key = s.key and t.result " COMPARE " s.target)"
#define TARGET_REACHED                                                                             \
    "case when s.target is null then false when s.goal = 'maximize' then " REACHED(                \
        ">=") " else " REACHED("<=") " end"

/* Why no live runner is large enough for a trial of the sweep s; null if one is, or if none is
 * asked for. Without any live runner there is nothing to compare with. */
#define LIVE_RUNNER "r.state = 'live' and r.expires_at > clock_timestamp()"
#define LARGEST(what) "(select max(" what ") from runner r where " LIVE_RUNNER ")"
#define USABLE_GPUS "json_array_length(r.gpus) - json_array_length(r.gpu_faults)"
#define TOO_LARGE(need, what, unit)                                                                \
    "when " need " > " LARGEST(what) " then format('no runner has %s " unit                        \
                                     " (largest: %s)', " need ", " LARGEST(what) ") "
#define COULD_HOLD "seats_of_runners(s.gpus, s.cpus, s.memory_bytes)"
/* One condition on each line. */
/* clang-format off */
#define SWEEP_NOTE                                                                                 \
    "case when s.state = 'running' and s.for_runners "                                             \
    "and exists (select from runner r where " LIVE_RUNNER ") then "                                \
    "case when greatest(s.gpus, s.cpus, s.memory_bytes) > 0 "                                      \
    "and not exists (select from runner r where " LIVE_RUNNER " and r.cpus >= s.cpus "             \
    "and r.memory_bytes >= s.memory_bytes and " USABLE_GPUS " >= s.gpus) "                         \
    "then case " TOO_LARGE("s.cpus", "r.cpus", "cpus")                                             \
    TOO_LARGE("s.memory_bytes", "r.memory_bytes", "bytes of memory")                               \
    TOO_LARGE("s.gpus", USABLE_GPUS, "GPUs")                                                       \
    "else format('no runner has %s cpus, %s bytes of memory and %s GPUs together', s.cpus, "       \
    "s.memory_bytes, s.gpus) end "                                                                 \
    "when s.gang and s.ranks > 1 and s.n_running = 0 "                                             \
    "and " COULD_HOLD " < " RANKS_LEAST_OF("s.") " "                                                \
    "then format('a trial has %s ranks, and the runners have slots for %s', "                      \
    RANKS_LEAST_OF("s.") ", "                                                                       \
    COULD_HOLD ") end end"
/* clang-format on */

#define IS_STRICT "case when s.rungs_strict then " NONE_BELOW_LAST " else false end"

#define COUNT_FIELDS(NEXT)                                                                         \
    NEXT(i64, counts.by_state[TRIAL_QUEUED], "s.n_queued")                                         \
    NEXT(i64, counts.by_state[TRIAL_RUNNING], "s.n_running")                                       \
    NEXT(i64, counts.by_state[TRIAL_PAUSED], "s.n_paused")                                         \
    NEXT(i64, counts.by_state[TRIAL_COMPLETED], "s.n_completed")                                   \
    NEXT(i64, counts.by_state[TRIAL_PRUNED], "s.n_pruned")                                         \
    NEXT(i64, counts.by_state[TRIAL_FAILED], "s.n_failed")                                         \
    NEXT(i64, counts.by_state[TRIAL_CANCELLED], "s.n_cancelled")                                   \
    NEXT(i64, counts.total, "s.n_total")

/* WALL_TIME, TARGET, LITTLE, SPENT and STRICT need more than the row; or false (JUDGED_FIELDS). */
#define HEAD_FIELDS_WITH(FIRST, NEXT, WALL_TIME, TARGET, LITTLE, SPENT, STRICT)                    \
    FIRST(i64, key, "s.key")                                                                       \
    NEXT(text, id, "s.id")                                                                         \
    NEXT(sweep_state, state, "s.state")                                                            \
    NEXT(text, metric, "s.metric")                                                                 \
    NEXT(bool, maximize, "s.goal = 'maximize'")                                                    \
    NEXT(i64, seed, "s.seed")                                                                      \
    NEXT(i64, planned, "s.planned")                                                                \
    NEXT(i64, max_concurrent, "s.max_concurrent")                                                  \
    NEXT(i64, max_failed, "coalesce(s.max_failed, -1)")                                            \
    NEXT(i64, max_restarts, "s.max_restarts")                                                      \
    NEXT(i64, trial_timeout_ms, "coalesce(s.trial_timeout_ms, 0)")                                 \
    NEXT(i64, gpus, "s.gpus")                                                                      \
    NEXT(i64, ensemble_size, "s.ensemble_size")                                                    \
    NEXT(text, ensemble_method, "s.ensemble_method")                                               \
    NEXT(bool, ensemble_non_negative, "s.ensemble_non_negative")                                   \
    NEXT(bool, ensemble_calibrate, "s.ensemble_calibrate")                                         \
    COUNT_FIELDS(NEXT)                                                                             \
    NEXT(bool, wall_time_over, WALL_TIME)                                                          \
    NEXT(bool, target_reached, TARGET)                                                             \
    NEXT(bool, little_left, LITTLE)                                                                \
    NEXT(bool, keeps_timed_out, "s.keeps_timed_out")                                               \
    NEXT(bool, has_started, "s.started_at is not null")                                            \
    NEXT(text, objectives, "s.objectives")                                                         \
    NEXT(text, outcomes, "s.outcomes")                                                             \
    NEXT(bool, learns, "s.learns")                                                                 \
    NEXT(i64, suggested, "s.n_suggested")                                                          \
    NEXT(i64, known, "s.n_known")                                                                  \
    NEXT(i64, known_failed, "s.n_known_failed")                                                    \
    NEXT(i64, finish_seq, "s.finish_seq")                                                          \
    NEXT(i64, search_mark, "s.search_mark")                                                        \
    NEXT(i64, max_group, "s.max_group")                                                            \
    NEXT(bool, group_given, "s.group_given")                                                       \
    NEXT(i64, ranks, "s.ranks")                                                                    \
    NEXT(bool, shrinks, "s.shrinks")                                                               \
    NEXT(i64, priority, "s.priority")                                                              \
    NEXT(i64, cpus, "s.cpus")                                                                      \
    NEXT(i64, memory_bytes, "s.memory_bytes")                                                      \
    NEXT(bool, exclusive, "s.exclusive")                                                           \
    NEXT(bool, stops, "s.rungs is not null")                                                       \
    NEXT(bool, limits_steps, "s.max_steps is not null")                                            \
    NEXT(bool, is_spent, SPENT)                                                                    \
    NEXT(bool, is_strict, STRICT)                                                                  \
    NEXT(i64, forks_left, "coalesce(s.most + s.n_known - s.planned, 0)")
#define HEAD_FIELDS(FIRST, NEXT)                                                                   \
    HEAD_FIELDS_WITH(FIRST, NEXT, WALL_TIME_OVER, TARGET_REACHED, SQL_LITTLE_LEFT, STEPS_OVER,     \
                     IS_STRICT)
COLUMNS_WHOLE_ROW(struct sweep_head, HEAD_FIELDS)
COLUMNS_READER(head, struct sweep_head, HEAD_FIELDS)
#define HEAD_COLUMNS COLUMNS_SQL(HEAD_FIELDS)

#define SWEEP_FIELDS_WITH(FIRST, NEXT, DOCUMENT, REMARKS)                                          \
    FIRST(text, id, "s.id")                                                                        \
    NEXT(text, name, "s.name")                                                                     \
    NEXT(sweep_state, state, "s.state")                                                            \
    NEXT(text, reason, "s.reason")                                                                 \
    NEXT(text, document, DOCUMENT)                                                                 \
    NEXT(text, objectives, "s.objectives")                                                         \
    NEXT(text, outcomes, "s.outcomes")                                                             \
    NEXT(text, metric, "s.metric")                                                                 \
    NEXT(bool, maximize, "s.goal = 'maximize'")                                                    \
    NEXT(text, method, "s.method")                                                                 \
    NEXT(i64, seed, "s.seed")                                                                      \
    NEXT(i64, planned, "s.planned")                                                                \
    NEXT(i64, known, "s.n_known")                                                                  \
    NEXT(bool, for_runners, "s.for_runners")                                                       \
    NEXT(text, tags, "array_to_json(s.tags)")                                                      \
    NEXT(text, remarks, REMARKS)                                                                   \
    NEXT(i64, priority, "s.priority")                                                              \
    NEXT(text, note, SWEEP_NOTE)                                                                   \
    COUNT_FIELDS(NEXT)                                                                             \
    NEXT(bool, has_best, "b.number is not null")                                                   \
    NEXT(i64, best_number, "coalesce(m.number, b.number)")                                         \
    NEXT(f64, best_value, "coalesce(m.value, b.value)")                                            \
    NEXT(text, best_params, "coalesce(m.params, b.params)")                                        \
    NEXT(bool, best_is_by_model, "m.number is not null")                                           \
    NEXT(i64, told_number, "b.number")                                                             \
    NEXT(f64, told_value, "b.value")                                                               \
    NEXT(bool, has_regret, "r.completed is not null")                                              \
    SQL_REGRET_NEXT_FIELDS(NEXT, regret.)                                                          \
    NEXT(i64, created_ms, SQL_MS("s.created_at"))                                                  \
    NEXT(i64, started_ms, SQL_MS("s.started_at"))                                                  \
    NEXT(i64, finished_ms, SQL_MS("s.finished_at"))
#define SWEEP_FIELDS(FIRST, NEXT) SWEEP_FIELDS_WITH(FIRST, NEXT, "s.document", "s.remarks")
COLUMNS_WHOLE_ROW(struct sweep_row, SWEEP_FIELDS)
COLUMNS_READER(sweep, struct sweep_row, SWEEP_FIELDS)
#define SWEEP_COLUMNS COLUMNS_SQL(SWEEP_FIELDS)
/* In a list: $4 says whether documents are wanted. */
#define LISTED_FIELDS(FIRST, NEXT)                                                                 \
    SWEEP_FIELDS_WITH(FIRST, NEXT, "case when $4::boolean then s.document end",                    \
                      "case when $4::boolean then s.remarks end")
#define LISTED_COLUMNS COLUMNS_SQL(LISTED_FIELDS)

#define MAKING_FIELDS(FIRST, NEXT)                                                                 \
    FIRST(bool, learns, "learns")                                                                  \
    NEXT(i64, max_group, "max_group")                                                              \
    NEXT(text, document, "case when not learns or max_group is not null then document end")
COLUMNS_WHOLE_ROW(struct sweep_making, MAKING_FIELDS)
COLUMNS_READER(making, struct sweep_making, MAKING_FIELDS)
#define MAKING_COLUMNS COLUMNS_SQL(MAKING_FIELDS)

#define CHANGE_FIELDS(FIRST, NEXT)                                                                 \
    FIRST(i64, changed_ms, SQL_MS("changed_at"))                                                   \
    NEXT(text, by, "changed_by")                                                                   \
    NEXT(text, changes, "changes")
COLUMNS_WHOLE_ROW(struct sweep_change_row, CHANGE_FIELDS)
COLUMNS_READER(change, struct sweep_change_row, CHANGE_FIELDS)
#define CHANGE_COLUMNS COLUMNS_SQL(CHANGE_FIELDS)

#define TARGET_FIELDS(FIRST, NEXT)                                                                 \
    FIRST(i64, number, "number")                                                                   \
    NEXT(f64, value, "value")                                                                      \
    NEXT(f64, target, "s.target")
COLUMNS_WHOLE_ROW(struct sweep_target, TARGET_FIELDS)
COLUMNS_READER(target, struct sweep_target, TARGET_FIELDS)
#define TARGET_COLUMNS COLUMNS_SQL(TARGET_FIELDS)

#define LOCKED_FIELDS(FIRST, NEXT)                                                                 \
    FIRST(bool, has_target, "s.target is not null")                                                \
    NEXT(f64, target, "s.target")
COLUMNS_READER(locked, struct sweep_locked, LOCKED_FIELDS)

/* What the head of a sweep has beyond its row costs each statement that names it, and few sweeps
 * have such limits: it is read for these alone, after their rows are locked. */
#define LOCKED_HEAD_FIELDS(FIRST, NEXT)                                                            \
    HEAD_FIELDS_WITH(FIRST, NEXT, "false", "false", "false", "false", "false")
#define HAS_JUDGED                                                                                 \
    "s.wall_time_ms is not null or s.target is not null or s.stop_regret is not null or "          \
    "s.stop_relative is not null or s.max_steps is not null or s.rungs_strict"
#define JUDGED_FIELDS(FIRST, NEXT)                                                                 \
    FIRST(bool, wall_time_over, WALL_TIME_OVER)                                                    \
    NEXT(bool, target_reached, TARGET_REACHED)                                                     \
    NEXT(bool, little_left, SQL_LITTLE_LEFT)                                                       \
    NEXT(bool, is_spent, STEPS_OVER)                                                               \
    NEXT(bool, is_strict, IS_STRICT)
COLUMNS_READER(judged, struct sweep_head, JUDGED_FIELDS)

/* The lateral query cannot be merged into the outer one, so its rows are locked in the order of the
 * array, whatever the tables' statistics say. */
#define LOCK_MANY(wait)                                                                            \
    "select u.place - 1, h.* from unnest($1::bigint[]) with ordinality as u(key, place) cross "    \
    "join lateral (select " COLUMNS_SQL(LOCKED_HEAD_FIELDS) ", " COLUMNS_SQL(                      \
        LOCKED_FIELDS) ", " HAS_JUDGED                                                             \
                       " from sweep s where s.key = u.key for no key update of s " wait ") h"

static const struct stmt stmts[] = {
    [SWEEP_ADD] =
        {"sweep_add",
         "with made as (insert into sweep_base (id, name, document, metric, goal, method, seed, "
         "max_concurrent, max_failed, max_restarts, trial_timeout_ms, wall_time_ms, "
         "grace_ms, gpus, ensemble_size, objectives, outcomes, learns, for_runners, state, "
         "max_group, group_given, ranks, min_ranks, elastic, launch, gang, target, "
         "keeps_timed_out, priority, cpus, memory_bytes, exclusive, ensemble_method, "
         "ensemble_non_negative, rungs, rungs_late, max_steps, rungs_strict, stop_regret, "
         "stop_relative, stop_min_trials, regret_due, population, most, "
         "ensemble_calibrate, ranks_by, least_ranks, shrinks, tags) values "
         "($1, $2, $3, $4, $5, $6, $7, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, "
         "$20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, "
         "coalesce($35, 'greedy'), $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, "
         "$47, $48, $49, $50, array(select "
         "json_array_elements_text($3::json "
         "-> 'tags'))) on "
         "conflict (id) do nothing returning key, state) insert into sweep_count (sweep_key, "
         "is_running, is_live, planned, turns) select key, state = 'running', state in ('running', "
         "'paused'), $8, greatest(0, " SQL_MOST_TURNS " - 1) from made returning sweep_key"},
    [SWEEP_ADD_ENSEMBLE] = {"sweep_add_ensemble", "insert into ensemble (sweep_key) values ($1)"},
    [SWEEP_ADD_DATASET] =
        {"sweep_add_dataset",
         "insert into sweep_dataset (sweep_key, dataset, sha256, n_rows, n_features) "
         "select $1, name, sha256, n_rows, n_features from dataset where name = $2 "
         "on conflict do nothing"},
    [SWEEP_DATASETS] = {"sweep_datasets",
                        "select dataset from sweep_dataset where sweep_key = $1 order by dataset"},
    [SWEEP_KEY] = {"sweep_key", "select key from sweep_base where id = $1"},
    [SWEEP_LOCK] = {"sweep_lock",
                    "select " HEAD_COLUMNS " from sweep s where key = $1 for no key update"},
    [SWEEP_LOCK_MANY] = {"sweep_lock_many", LOCK_MANY("")},
    [SWEEP_LOCK_FREE] = {"sweep_lock_free", LOCK_MANY("skip locked")},
    [SWEEP_STEPS_ROOM] = {"sweep_steps_room",
                          "select u.place - 1, steps_room(u.key) from unnest($1::bigint[]) with "
                          "ordinality as u(key, place)"},
    [SWEEP_JUDGED] =
        {"sweep_judged",
         "select u.place - 1, h.* from unnest($1::bigint[]) with ordinality as u(key, place) cross "
         "join lateral (select " COLUMNS_SQL(
             JUDGED_FIELDS) " from sweep s where s.key = u.key limit 1) h"},
    [SWEEP_GET] = {"sweep_get", "select " SWEEP_COLUMNS SWEEP_FROM "where s.key = $1"},
    [SWEEP_DOCUMENTS] =
        {"sweep_documents",
         "select u.place - 1, h.document from unnest($1::bigint[]) with ordinality as u(key, "
         "place) cross join lateral (select document from sweep_base where key = u.key limit 1) h"},
    [SWEEP_DOCUMENT] = {"sweep_document", "select document from sweep_base where key = $1"},
    [SWEEP_STANDING] = {"sweep_standing", "select state, document from sweep_base where key = $1"},
    [SWEEP_SEARCH] = {"sweep_search", "select " MAKING_COLUMNS " from sweep_base where key = $1"},
    /* Tags are texts, and a filter compares whole ones: `key=value` is a habit without a meaning
     * here. They are a column with an index, because documents may have a megabyte each. */
    [SWEEP_LIST] =
        {"sweep_list",
         "select " LISTED_COLUMNS ", s.key" SWEEP_FROM
         "where ($1::text is null or s.state = $1) and ($2::bigint = 0 or s.key < $2) "
         "and ($5::text is null or s.tags @> array[$5]) and ($6::text is null or s.key in "
         "(select u.sweep_key from sweep_dataset u where u.dataset = $6)) order by "
         "s.key desc limit $3"},
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
    [SWEEP_DELETE] = {"sweep_delete", "delete from sweep_base where key = $1"},
    [SWEEP_DELETE_PATIENCE] = {"sweep_delete_patience",
                               "select set_config('statement_timeout', '300s', true)"},
    [SWEEP_DELETE_POINTS] = {"sweep_delete_points",
                             "delete from measurement_chunk where sweep_key = $1"},
    [SWEEP_DELETE_EVENTS] =
        {"sweep_delete_events",
         "with sets as (delete from event_set where sweep_key = $1) delete from "
         "event where sweep_key = $1"},
    [SWEEP_TARGET] = {"sweep_target",
                      "select " TARGET_COLUMNS " from trial t join sweep s on s.key = "
                      "t.sweep_key where t.sweep_key = $1 and case when s.goal = 'maximize' then "
                      "t.result >= s.target else t.result <= s.target end order by t.finish_seq "
                      "limit 1"},
    [SWEEP_WAITING] = {"sweep_waiting", "select key from sweep where state in ('running', "
                                        "'paused') and n_paused > 0 order by key limit 100"},
    [SWEEP_DUE] = {"sweep_due",
                   "select key from sweep s where state in ('running', 'paused') and ((n_total = "
                   "planned and n_queued = 0 and n_running = 0) or " STEPS_OVER " or n_failed - "
                   "n_known_failed > max_failed or " WALL_TIME_OVER " or " TARGET_REACHED
                   " or " SQL_LITTLE_LEFT ") order by key limit 100"},
};
const struct stmt_set sweep_stmts = {"sweep", stmts, AS_ARRAY_LEN(stmts)};

as_status store_sweep_add(struct tx *t, const struct sweep_new *s, int64_t *ret_key,
                          struct as_err *err)
{
    AS_AUTO(str_done) struct str rungs = {0};
    RESULT_AUTO r = {0};
    array_open(&rungs);
    for (size_t i = 0; i < s->n_rungs; i++)
        array_i64(&rungs, s->rungs[i]);
    array_close(&rungs);
    as_status st = str_check(&rungs, err);
    if (st != AS_OK)
        return st;
    st = tx_query(
        t, &stmts[SWEEP_ADD],
        ARGS(arg_str(s->id), arg_str(s->name), arg_str(s->document), arg_str(s->metric),
             arg_str(s->maximize ? "maximize" : "minimize"), arg_str(s->method), arg_i64(s->seed),
             arg_i64(s->planned), arg_i64_or_null(s->max_concurrent > 0, s->max_concurrent),
             arg_i64_or_null(s->max_failed >= 0, s->max_failed), arg_i64(s->max_restarts),
             arg_i64_or_null(s->trial_timeout_ms > 0, s->trial_timeout_ms),
             arg_i64_or_null(s->wall_time_ms > 0, s->wall_time_ms), arg_i64(s->grace_ms),
             arg_i64(s->gpus), arg_i64(s->ensemble_size), arg_str(s->objectives),
             arg_str(s->outcomes), arg_bool(s->learns), arg_bool(s->for_runners),
             arg_str(sweep_state_format(s->is_paused ? SWEEP_PAUSED : SWEEP_RUNNING)),
             arg_i64_or_null(s->max_group > 0, s->max_group), arg_bool(s->group_given),
             arg_i64(s->ranks), arg_i64(s->min_ranks), arg_bool(s->elastic), arg_str(s->launch),
             arg_bool(s->gang), arg_f64_or_null(!isnan(s->target), s->target),
             arg_bool(s->keeps_timed_out), arg_i64(s->priority), arg_i64(s->cpus),
             arg_i64(s->memory_bytes), arg_bool(s->exclusive), arg_str(s->ensemble_method),
             arg_bool(s->ensemble_non_negative), arg_str(s->n_rungs > 0 ? str_cstr(&rungs) : NULL),
             arg_bool(s->rungs_late), arg_i64_or_null(s->max_steps > 0, s->max_steps),
             arg_bool(s->rungs_strict),
             arg_f64_or_null(!isnan(s->stop_when.regret), s->stop_when.regret),
             arg_f64_or_null(!isnan(s->stop_when.relative), s->stop_when.relative),
             arg_i64(s->stop_when.min_trials), arg_i64_or_null(s->regret_due > 0, s->regret_due),
             arg_i64_or_null(s->population > 0, s->population),
             arg_i64_or_null(s->population > 0, s->most), arg_bool(s->ensemble_calibrate),
             arg_str(s->ranks_by), arg_i64_or_null(s->ranks_by != NULL, s->least_ranks),
             arg_bool(s->shrinks)),
        &r, err);
    if (st != AS_OK || r.rows == 0) {
        *ret_key = 0;
        return st;
    }
    *ret_key = result_i64(&r, 0, 0);
    return tx_exec(t, &stmts[SWEEP_ADD_ENSEMBLE], ARGS(arg_i64(*ret_key)), NULL, err);
}

as_status store_sweep_add_dataset(struct tx *t, int64_t key, const char *dataset,
                                  struct as_err *err)
{
    return tx_exec(t, &stmts[SWEEP_ADD_DATASET], ARGS(arg_i64(key), arg_str(dataset)), NULL, err);
}

as_status store_sweep_datasets(struct tx *t, struct arena *a, int64_t key, const char ***ret,
                               size_t *ret_n, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[SWEEP_DATASETS], ARGS(arg_i64(key)), &r, err);
    if (st != AS_OK)
        return st;
    const char **names = arena_alloc(a, (size_t)r.rows + 1, sizeof *names);
    if (!names)
        return as_fail_nomem(err);
    for (int i = 0; i < r.rows; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, a);
        names[i] = read_str(&rd);
        if ((st = reader_check(&rd, err)) != AS_OK)
            return st;
    }
    *ret = names;
    *ret_n = (size_t)r.rows;
    return AS_OK;
}

as_status store_sweep_key(struct tx *t, const char *id, int64_t *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[SWEEP_KEY], ARGS(arg_str(id)), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "there is no sweep '%.80s'", id);
    *ret = result_i64(&r, 0, 0);
    return AS_OK;
}

/* The single row of a sweep that a statement returns. */
static as_status query_sweep(struct tx *t, int statement, int64_t key, struct result *r,
                             struct as_err *err)
{
    as_status st = tx_query(t, &stmts[statement], ARGS(arg_i64(key)), r, err);
    if (st != AS_OK)
        return st;
    if (r->rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "the sweep was deleted");
    return AS_OK;
}

as_status store_sweep_lock(struct tx *t, struct arena *a, int64_t key, struct sweep_head *ret,
                           struct as_err *err)
{
    RESULT_AUTO r = {0};
    struct sweep_head s = {0};
    as_status st = query_sweep(t, SWEEP_LOCK, key, &r, err);
    if (st != AS_OK)
        return st;
    if ((st = read_head_row(&r, 0, a, &s, err)) == AS_OK)
        *ret = s;
    return st;
}

as_status store_sweep_get(struct tx *t, struct arena *a, int64_t key, struct sweep_row *ret,
                          struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = query_sweep(t, SWEEP_GET, key, &r, err);
    return st == AS_OK ? read_sweep_row(&r, 0, a, ret, err) : st;
}

as_status store_sweep_document(struct tx *t, struct arena *a, int64_t key, const char **ret,
                               struct as_err *err)
{
    RESULT_AUTO r = {0};
    struct reader rd;
    as_status st = query_sweep(t, SWEEP_DOCUMENT, key, &r, err);
    if (st != AS_OK)
        return st;
    reader_init(&rd, &r, 0, a);
    *ret = read_str(&rd);
    return reader_check(&rd, err);
}

as_status store_sweep_standing(struct tx *t, struct arena *a, int64_t key, sweep_state *ret_state,
                               const char **ret_document, struct as_err *err)
{
    RESULT_AUTO r = {0};
    struct reader rd;
    as_status st = query_sweep(t, SWEEP_STANDING, key, &r, err);
    if (st != AS_OK)
        return st;
    reader_init(&rd, &r, 0, a);
    st = sweep_state_parse(read_view(&rd), ret_state, err);
    *ret_document = read_str(&rd);
    return st == AS_OK ? reader_check(&rd, err) : st;
}

as_status store_sweep_documents(struct tx *t, struct arena *a, const int64_t *keys, size_t n,
                                const char **ret, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    arrays_open(&x);
    for (size_t i = 0; i < n; i++) {
        ret[i] = NULL;
        array_i64(&x.c[0], keys[i]);
    }
    as_status st = arrays_close(&x, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[SWEEP_DOCUMENTS], ARGS(arg_array(&x, 0)), &r, err);
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, a);
        int64_t place = read_i64(&rd);
        ret[place] = read_str(&rd);
        st = reader_check(&rd, err);
    }
    return st;
}

as_status store_sweep_steps_room(struct tx *t, const int64_t *keys, size_t n, int64_t *ret,
                                 struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    arrays_open(&x);
    for (size_t i = 0; i < n; i++)
        array_i64(&x.c[0], keys[i]);
    as_status st = arrays_close(&x, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[SWEEP_STEPS_ROOM], ARGS(arg_array(&x, 0)), &r, err);
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, NULL);
        int64_t *room = &ret[read_i64(&rd)];
        *room = read_null(&rd) ? INT64_MAX : read_i64(&rd);
        st = reader_check(&rd, err);
    }
    return st;
}

as_status store_sweep_search(struct tx *t, struct arena *a, int64_t key, struct sweep_making *ret,
                             struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = query_sweep(t, SWEEP_SEARCH, key, &r, err);
    return st == AS_OK ? read_making_row(&r, 0, a, ret, err) : st;
}

as_status store_sweep_list(struct tx *t, struct arena *a, const struct sweep_list_query *q,
                           struct sweep_row **ret, size_t *ret_n, int64_t *ret_next,
                           struct as_err *err)
{
    struct sweep_row *rows = arena_alloc(a, (size_t)q->size, sizeof *rows);
    struct page_fill f = page_fill_start(q->size);
    int64_t before = q->before;
    size_t n = 0;
    if (!rows)
        return as_fail_nomem(err);
    for (int64_t ask; (ask = page_fill_next(&f)) > 0;) {
        RESULT_AUTO r = {0};
        as_status st =
            tx_query(t, &stmts[SWEEP_LIST],
                     ARGS(arg_str(q->state), arg_i64(before), arg_i64(ask + 1),
                          arg_bool(q->with_documents), arg_str(q->tag), arg_str(q->dataset)),
                     &r, err);
        if (st != AS_OK)
            return st;
        int take = page_fill_take(&f, &r, ask);
        for (int i = 0; i < take; i++) {
            if ((st = read_sweep_row(&r, i, a, &rows[n++], err)) != AS_OK)
                return st;
            before = result_i64(&r, i, COLUMNS_COUNT(SWEEP_FIELDS));
        }
    }
    *ret = rows;
    *ret_n = n;
    *ret_next = f.has_more ? before : 0;
    return AS_OK;
}

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

/* Statements with the key as their only argument. */
static as_status exec_key(struct tx *t, int which, int64_t key, struct as_err *err)
{
    return tx_exec(t, &stmts[which], ARGS(arg_i64(key)), NULL, err);
}

as_status store_sweep_exhausted(struct tx *t, int64_t key, struct as_err *err)
{
    return exec_key(t, SWEEP_EXHAUSTED, key, err);
}

as_status store_sweep_started(struct tx *t, int64_t key, struct as_err *err)
{
    return exec_key(t, SWEEP_STARTED, key, err);
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

as_status store_sweep_delete(struct tx *t, int64_t key, struct as_err *err)
{
    as_status st = tx_exec(t, &stmts[SWEEP_DELETE_PATIENCE], NULL, NULL, err);
    if (st != AS_OK)
        return st;
    if ((st = exec_key(t, SWEEP_DELETE_POINTS, key, err)) != AS_OK)
        return st;
    if ((st = exec_key(t, SWEEP_DELETE_EVENTS, key, err)) != AS_OK)
        return st;
    return exec_key(t, SWEEP_DELETE, key, err);
}

/* Read what the heads of these sweeps, which are locked, have beyond their rows. */
static as_status judge_many(struct tx *t, struct sweep_locked *const *rows, size_t n,
                            struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    arrays_open(&x);
    for (size_t i = 0; i < n; i++)
        array_i64(&x.c[0], rows[i]->head.key);
    as_status st = arrays_close(&x, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[SWEEP_JUDGED], ARGS(arg_array(&x, 0)), &r, err);
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, NULL);
        int64_t place = read_i64(&rd);
        read_judged(&rd, &rows[place]->head);
        st = reader_check(&rd, err);
    }
    return st;
}

as_status store_sweep_lock_many(struct tx *t, struct arena *a, const int64_t *keys, size_t n,
                                bool is_patient, struct sweep_locked **ret, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    size_t n_judged = 0;
    arrays_open(&x);
    for (size_t i = 0; i < n; i++)
        array_i64(&x.c[0], keys[i]);
    as_status st = arrays_close(&x, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[is_patient ? SWEEP_LOCK_MANY : SWEEP_LOCK_FREE],
                      ARGS(arg_array(&x, 0)), &r, err);
    struct sweep_locked *rows = arena_alloc(a, (size_t)r.rows + 1, sizeof *rows);
    struct sweep_locked **judged =
        arena_alloc(a, (size_t)r.rows + 1, sizeof(struct sweep_locked *));
    if (st == AS_OK && (!rows || !judged))
        st = as_fail_nomem(err);
    for (size_t i = 0; i < n && st == AS_OK; i++)
        ret[i] = NULL;
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, a);
        int64_t place = read_i64(&rd);
        read_head(&rd, &rows[i].head);
        read_locked(&rd, &rows[i]);
        if (read_bool(&rd))
            judged[n_judged++] = &rows[i];
        ret[place] = &rows[i];
        st = reader_check(&rd, err);
    }
    return st == AS_OK && n_judged > 0 ? judge_many(t, judged, n_judged, err) : st;
}

/* Copy the keys of a result to the arena. */
static as_status read_keys(const struct result *r, struct arena *a, int64_t **ret, size_t *ret_n,
                           struct as_err *err)
{
    int64_t *keys = arena_alloc(a, (size_t)r->rows + 1, sizeof *keys);
    if (!keys)
        return as_fail_nomem(err);
    for (int i = 0; i < r->rows; i++)
        keys[i] = result_i64(r, i, 0);
    *ret = keys;
    *ret_n = (size_t)r->rows;
    return AS_OK;
}

as_status store_sweep_target(struct tx *t, int64_t key, struct sweep_target *ret,
                             struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = query_sweep(t, SWEEP_TARGET, key, &r, err);
    return st == AS_OK ? read_target_row(&r, 0, NULL, ret, err) : st;
}

as_status store_sweep_waiting(struct tx *t, struct arena *a, int64_t **ret, size_t *ret_n,
                              struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[SWEEP_WAITING], NULL, &r, err);
    return st == AS_OK ? read_keys(&r, a, ret, ret_n, err) : st;
}

as_status store_sweep_due(struct tx *t, struct arena *a, int64_t **ret, size_t *ret_n,
                          struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[SWEEP_DUE], NULL, &r, err);
    return st == AS_OK ? read_keys(&r, a, ret, ret_n, err) : st;
}
