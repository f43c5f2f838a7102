/* No table of its own: the demand follows from the rows of sweeps, whose counts triggers keep, and
 * from what live runners hold. So every server answers the same, whatever it did before. */
#include "scheduler/store/demand_store.h"

#include "scheduler/store/gang_sql_priv.h"
#include "scheduler/store/has_work_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/runner_sql_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sql_columns_priv.h"

enum { DEMAND_SWEEPS, DEMAND_RUNNERS, DEMAND_NOW };

/* Ranks that running elastic gangs of the sweep s lack. */
#define MISSING                                                                                    \
    "coalesce((select sum(o.ranks - (select count(*) from gang_seat q where " SAME(                \
        "q", "o") " and q.state " LIVE ")) from gang o where o.sweep_key = s.key and o.state <> "  \
                  "'over' and o.elastic and not o.is_ending and s.elastic), 0)"

/* The latest of: it was made, it ran on after an end, people changed it, its newest trial began. A
 * sweep gets its slots one by one, so this is how long it has got none. */
#define SINCE                                                                                      \
    "greatest(s.created_at, s.reopened_at, (select max(c.changed_at) from sweep_change c where "   \
    "c.sweep_key = s.key), (select t.claimed_at from trial t where t.sweep_key = s.key order by "  \
    "t.number desc limit 1))"

/* How many trials of the sweep s wait, by the ranks that they run with. Those that are queued have
 * their number; those that are not made yet count as the smallest ones. */
#define ROOM_NOW "case when " HAS_WORK_OF("s.") " then " ROOM_OF("s.") " else 0 end"
#define KINDS                                                                                      \
    "(select s.ranks as ranks, r.room as n, true as is_next, true as is_rest from "                \
    "(select " ROOM_NOW                                                                            \
    " as room) r where s.ranks_by is null union all select w.ranks, count(*), "                    \
    "bool_or(w.place = 1), false from (select (t.params ->> s.ranks_by)::int as ranks, "           \
    "row_number() over (order by t.number) as place from trial t where s.ranks_by is not null "    \
    "and t.sweep_key = s.key and t.state = 'queued' order by t.number limit " ROOM_NOW ") w "      \
    "group by w.ranks union all select s.least_ranks, greatest(r.room - s.n_queued, 0), false, "   \
    "true from (select " ROOM_NOW " as room) r where s.ranks_by is not null)"

#define SWEEP_FIELDS(FIRST, NEXT)                                                                  \
    FIRST(i64, key, "s.key")                                                                       \
    NEXT(i64, room, "k.n")                                                                         \
    NEXT(i64, group, "coalesce(s.max_group, 1)")                                                   \
    NEXT(i64, ranks, "k.ranks")                                                                    \
    NEXT(i64, kept,                                                                                \
         "case when g.sweep_key is null or not k.is_next then 0 else (select count(*) from "       \
         "gathering_seat) end")                                                                    \
    NEXT(i64, missing, "case when k.is_rest then " MISSING " else 0 end")                          \
    NEXT(i64, gpus, "s.gpus")                                                                      \
    NEXT(i64, cpus, "s.cpus")                                                                      \
    NEXT(i64, memory_bytes, "s.memory_bytes")                                                      \
    NEXT(bool, is_gang, "s.gang")                                                                  \
    NEXT(bool, is_exclusive, "s.exclusive")                                                        \
    NEXT(i64, since_ms, SQL_MS(SINCE))
COLUMNS_WHOLE_ROW(struct demand_sweep, SWEEP_FIELDS)
COLUMNS_READER(sweep, struct demand_sweep, SWEEP_FIELDS)
#define SWEEP_COLUMNS COLUMNS_SQL(SWEEP_FIELDS)

/* GPUs that the attempts, ranks and groups of the runner r have. */
#define GPUS_USED                                                                                  \
    "(select coalesce(sum(x.gpus), 0) from " HELD_NEEDS                                            \
    " m join sweep_base x on x.key = m.needs_key where m.is_first)"

#define RUNNER_FIELDS(FIRST, NEXT)                                                                 \
    FIRST(i64, slots, "r.slots")                                                                   \
    NEXT(i64, slots_used, "u.used")                                                                \
    NEXT(i64, gpus, "json_array_length(r.gpus) - json_array_length(r.gpu_faults)")                 \
    NEXT(i64, gpus_used, "case when json_array_length(r.gpus) = 0 then 0 else " GPUS_USED " end")  \
    NEXT(i64, cpus, "r.cpus")                                                                      \
    NEXT(i64, cpus_used, "u.cpus_used")                                                            \
    NEXT(i64, memory_bytes, "r.memory_bytes")                                                      \
    NEXT(i64, memory_used, "u.memory_used")                                                        \
    NEXT(text, machine, "r.machine")                                                               \
    NEXT(bool, shares, "r.shares")                                                                 \
    NEXT(bool, takes_seats, "r.takes_seats")                                                       \
    NEXT(bool, is_shut, "u.is_shut")
COLUMNS_WHOLE_ROW(struct demand_runner, RUNNER_FIELDS)
COLUMNS_READER(runner, struct demand_runner, RUNNER_FIELDS)
#define RUNNER_COLUMNS COLUMNS_SQL(RUNNER_FIELDS)

static const struct stmt stmts[] = {
    [DEMAND_SWEEPS] = {"demand_sweeps",
                       "select " SWEEP_COLUMNS " from sweep s left join gathering g on "
                       "g.sweep_key = s.key cross join lateral " KINDS
                       " k where s.state = 'running' and s.for_runners and "
                       "((" HAS_WORK_OF("s.") ") or s.elastic and " MISSING " > 0) order by "
                                              "s.priority desc, s.n_running, s.served, s.key, "
                                              "k.is_rest, k.ranks limit $1"},
    [DEMAND_RUNNERS] = {"demand_runners",
                        "select " RUNNER_COLUMNS " from runner r cross join lateral " HELD_COUNTS
                        " u where r.state = 'live' and r.expires_at > clock_timestamp() order by "
                        "r.machine, r.name"},
    [DEMAND_NOW] = {"demand_now", "select " SQL_MS("clock_timestamp()")},
};
const struct stmt_set demand_stmts = {"demand", stmts, AS_ARRAY_LEN(stmts)};

as_status store_demand_sweeps(struct tx *t, struct arena *a, struct demand_sweep **ret,
                              size_t *ret_n, int64_t *ret_now_ms, struct as_err *err)
{
    RESULT_AUTO now = {0};
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[DEMAND_NOW], NULL, &now, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[DEMAND_SWEEPS], ARGS(arg_i64(DEMAND_SWEEPS_MAX)), &r, err);
    if (st != AS_OK || (st = read_sweep_rows(&r, r.rows, a, ret, err)) != AS_OK)
        return st;
    *ret_n = (size_t)r.rows;
    *ret_now_ms = result_i64(&now, 0, 0);
    return AS_OK;
}

as_status store_demand_runners(struct tx *t, struct arena *a, struct demand_runner **ret,
                               size_t *ret_n, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[DEMAND_RUNNERS], NULL, &r, err);
    if (st != AS_OK || (st = read_runner_rows(&r, r.rows, a, ret, err)) != AS_OK)
        return st;
    *ret_n = (size_t)r.rows;
    return AS_OK;
}
