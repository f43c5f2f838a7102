/* Heads of sweeps, and what is decided from their rows alone.
 *
 * `sweep` is a view of sweep_base and sweep_count (decision 5020). So the statements that decide
 * whether a sweep has work (has_work_priv.h), how much room it has (capacity_store.c), and whether
 * it is over (WALL_TIME_OVER) read a row of each and no trials.
 *
 * The transaction that changes the state of a trial holds the sweep's row (SWEEP_LOCK, for no key
 * update). That lock does not stop the check of a foreign key, so other transactions can insert
 * rows that refer to the sweep meanwhile. */
#include "scheduler/store/sweep_head_store.h"

#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/sql_counts_priv.h"
#include "scheduler/store/sql_limits_priv.h"
#include "scheduler/store/sql_regret_priv.h"
#include "scheduler/store/sweep_store_priv.h"

enum {
    SWEEP_LOCK,
    SWEEP_LOCK_MANY,
    SWEEP_LOCK_FREE,
    SWEEP_JUDGED,
    SWEEP_STEPS_ROOM,
    SWEEP_TARGET,
    SWEEP_WAITING,
    SWEEP_DUE
};

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
    SQL_COUNT_FIELDS(NEXT)                                                                         \
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
    [SWEEP_LOCK] = {"sweep_lock",
                    "select " HEAD_COLUMNS " from sweep s where key = $1 for no key update"},
    [SWEEP_LOCK_MANY] = {"sweep_lock_many", LOCK_MANY("")},
    [SWEEP_LOCK_FREE] = {"sweep_lock_free", LOCK_MANY("skip locked")},
    [SWEEP_JUDGED] =
        {"sweep_judged",
         "select u.place - 1, h.* from unnest($1::bigint[]) with ordinality as u(key, place) cross "
         "join lateral (select " COLUMNS_SQL(
             JUDGED_FIELDS) " from sweep s where s.key = u.key limit 1) h"},
    [SWEEP_STEPS_ROOM] = {"sweep_steps_room",
                          "select u.place - 1, steps_room(u.key) from unnest($1::bigint[]) with "
                          "ordinality as u(key, place)"},
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
const struct stmt_set sweep_head_stmts = {"sweep_head", stmts, AS_ARRAY_LEN(stmts)};

as_status store_sweep_lock(struct tx *t, struct arena *a, int64_t key, struct sweep_head *ret,
                           struct as_err *err)
{
    RESULT_AUTO r = {0};
    struct sweep_head s = {0};
    as_status st = sweep_query(t, &stmts[SWEEP_LOCK], key, &r, err);
    if (st != AS_OK)
        return st;
    if ((st = read_head_row(&r, 0, a, &s, err)) == AS_OK)
        *ret = s;
    return st;
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

as_status store_sweep_target(struct tx *t, int64_t key, struct sweep_target *ret,
                             struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = sweep_query(t, &stmts[SWEEP_TARGET], key, &r, err);
    return st == AS_OK ? read_target_row(&r, 0, NULL, ret, err) : st;
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
