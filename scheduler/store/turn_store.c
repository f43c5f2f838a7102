/* Whose turn it is. The order is made in one place for claims (TURN_LIST) and for groups that ask
 * whether they may go on (TURN_AHEAD).
 *
 * All that the order needs is in the rows of the sweep: priority, running trials, and what the
 * triggers keep when a trial begins: the number of turns, and `served`, a place in the order of all
 * turns. So a server that starts again changes nothing, and any number of servers agree. */
#include "scheduler/store/turn_store.h"

#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/has_work_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/refs_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sql_counts_priv.h"

enum { TURN_LIST, TURN_AHEAD, TURN_WAIT, TURN_TAKEN, TURN_OVER, TURN_LOCK_MACHINE, TURN_IS_IDLE };

/* A trial that did not fit has waited long enough: w is its row of runner_wait. */
#define WAIT_IS_OVER "w.since < clock_timestamp() - interval '" TURN_WAIT_S " s'"

/* How many turns the sweep s had. Who had fewer goes first, so that a sweep whose trials took
 * longer catches up; but it is owed at most 8 turns. */
#define TURNS(s) "greatest(" s ".turns, " SQL_MOST_TURNS " - 8)"

/* Does the sweep s come before the sweep `mine`, of which $2 trials run? */
#define GOES_FIRST                                                                                 \
    "(-s.priority, s.n_running, " TURNS("s") ", s.served, s.key) < (-mine.priority, $2, " TURNS(   \
        "mine") ", mine.served, mine.key)"

/* Are the runners r and o on one machine? */
#define SAME_MACHINE "(o.name = r.name or o.machine = r.machine)"

/* Running trials of the sweep s that do not end; $2: the sweeps of those that do. */
#define OTHERS_RUNNING                                                                             \
    "s.n_running - (select count(*) from unnest($2::bigint[]) as l(key) where l.key = s.key)"

#define CLAIMABLE_FIELDS(FIRST, NEXT)                                                              \
    FIRST(i64, key, "s.key")                                                                       \
    NEXT(i64, priority, "s.priority")                                                              \
    NEXT(i64, running, OTHERS_RUNNING)                                                             \
    NEXT(bool, is_gang, "s.gang")                                                                  \
    NEXT(bool, has_needs, "s.exclusive or s.cpus > 0 or s.memory_bytes > 0")                       \
    NEXT(bool, is_exclusive, "s.exclusive")                                                        \
    NEXT(bool, fits, "s.gpus <= $1 and s.cpus <= $5 and s.memory_bytes <= $6")                     \
    NEXT(bool, waits, "coalesce(w.here, false)")                                                   \
    NEXT(bool, closes, "coalesce(w.due, false)")                                                   \
    NEXT(i64, ahead_room, AHEAD_ROOM_OF("s."))
COLUMNS_WHOLE_ROW(struct claimable_sweep, CLAIMABLE_FIELDS)
COLUMNS_READER(claimable, struct claimable_sweep, CLAIMABLE_FIELDS)
#define CLAIMABLE_COLUMNS COLUMNS_SQL(CLAIMABLE_FIELDS)

static const struct stmt stmts[] = {
    /* A sweep whose trial does not fit now, but would if less ran there, is in the list. */
    [TURN_LIST] =
        {"turn_list",
         "select " CLAIMABLE_COLUMNS " from runner r cross join sweep s left join lateral (select "
         "bool_or(w.runner = r.name) as here, bool_or(" WAIT_IS_OVER ") as due from runner_wait w "
         "join runner o on o.name = w.runner where w.sweep_key = s.key and (w.runner = r.name or "
         "s.exclusive and o.machine = r.machine)) w on true where r.name = $4 and s.for_runners "
         "and " HAS_WORK_OF(
             "s.") " and s.gpus <= greatest($1, json_array_length(r.gpus) - "
                   "json_array_length(r.gpu_faults)) and s.cpus <= r.cpus and s.memory_bytes <= "
                   "r.memory_bytes and (not s.gang or ($3::boolean and " COULD_GATHER ")) "
                   "order by s.priority desc, " OTHERS_RUNNING
                   ", " TURNS("s") ", s.served, s.key limit 64"},
    /* The same order as TURN_LIST, as if only $2 of the sweep's trials ran. A gang that
     * gathers, or that waits for ranks, comes first; so does a trial that waits for room. */
    [TURN_AHEAD] =
        {"turn_ahead",
         "select exists (select from sweep s, sweep mine, runner r where mine.key = $1 and r.name "
         "= "
         "$4 and s.for_runners and s.key <> $1 and s.gpus <= $3 and s.cpus <= r.cpus and "
         "s.memory_bytes <= r.memory_bytes and " HAS_WORK_OF(
             "s.") " and (not s.gang and " GOES_FIRST " or "
                   "s.gang and " COULD_GATHER
                   " and exists (select from gathering g where g.sweep_key = s.key "
                   "or g.sweep_key is null and " GOES_FIRST
                   "))) or exists (select from gang where state = "
                   "'waiting') or exists (select from runner r join runner_wait w on w.sweep_key "
                   "<> $1 join "
                   "runner o on o.name = w.runner join sweep s on s.key = w.sweep_key where r.name "
                   "= $4 and "
                   "(o.name = r.name or s.exclusive and o.machine = r.machine) and " WAIT_IS_OVER
                   " and s.priority >= (select m.priority from sweep m where m.key = $1) "
                   "and " HAS_WORK_OF("s.") ")"},
    [TURN_WAIT] = {"turn_wait",
                   "insert into runner_wait as w (runner, sweep_key) values ($1, $2) on conflict "
                   "(runner) do update set sweep_key = excluded.sweep_key, since = "
                   "clock_timestamp() where not exists (select from sweep s where s.key = "
                   "w.sweep_key and " HAS_WORK_OF("s.") ")"},
    [TURN_TAKEN] = {"turn_taken",
                    "delete from runner_wait w using runner r, runner o where r.name = $1 and "
                    "o.name = w.runner and " SAME_MACHINE " and w.sweep_key = $2"},
    [TURN_OVER] = {"turn_over", "delete from runner_wait where sweep_key = $1"},
    [TURN_LOCK_MACHINE] =
        {"turn_lock_machine",
         "select 1 from runner o where o.name = $1 or o.machine = (select machine "
         "from runner where name = $1) order by o.name for no key update"},
    [TURN_IS_IDLE] = {"turn_is_idle",
                      "select not exists (select from runner r join runner o on " SAME_MACHINE
                      " join held h on h.runner = o.name left join sweep s on s.key = h.sweep_key "
                      "where r.name = $1 and not (o.name = r.name and h.seat is null and exists "
                      "(select from " LISTED " where l.id = s.id and l.number = h.number and "
                      "l.attempt = h.attempt)))"},
};
const struct stmt_set turn_stmts = {"turn", stmts, AS_ARRAY_LEN(stmts)};

as_status store_turn_list(struct tx *t, struct arena *a, const struct claimable_query *q,
                          struct claimable_sweep **ret, size_t *ret_n, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[TURN_LIST],
                            ARGS(arg_i64(q->gpus), arg_str(q->ending), arg_bool(q->takes_seats),
                                 arg_str(q->runner), arg_i64(q->cpus), arg_i64(q->memory_bytes)),
                            &r, err);
    if (st != AS_OK)
        return st;
    *ret_n = (size_t)r.rows;
    return read_claimable_rows(&r, r.rows, a, ret, err);
}

as_status store_turn_ahead(struct tx *t, const struct sweep_head *s, int64_t running, int64_t gpus,
                           const char *runner, bool *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[TURN_AHEAD],
                 ARGS(arg_i64(s->key), arg_i64(running), arg_i64(gpus), arg_str(runner)), &r, err);
    if (st != AS_OK)
        return st;
    struct reader rd;
    reader_init(&rd, &r, 0, NULL);
    *ret = read_bool(&rd);
    return AS_OK;
}

as_status store_turn_wait(struct tx *t, const char *runner, int64_t sweep_key, struct as_err *err)
{
    return tx_exec(t, &stmts[TURN_WAIT], ARGS(arg_str(runner), arg_i64(sweep_key)), NULL, err);
}

as_status store_turn_taken(struct tx *t, const char *runner, int64_t sweep_key, struct as_err *err)
{
    return tx_exec(t, &stmts[TURN_TAKEN], ARGS(arg_str(runner), arg_i64(sweep_key)), NULL, err);
}

as_status store_turn_over(struct tx *t, int64_t sweep_key, struct as_err *err)
{
    return tx_exec(t, &stmts[TURN_OVER], ARGS(arg_i64(sweep_key)), NULL, err);
}

as_status store_turn_lock_machine(struct tx *t, const char *runner, struct as_err *err)
{
    return tx_exec(t, &stmts[TURN_LOCK_MACHINE], ARGS(arg_str(runner)), NULL, err);
}

as_status store_turn_is_idle(struct tx *t, const char *runner, const struct attempt_ref *ending,
                             size_t n, bool *ret, struct as_err *err)
{
    AS_AUTO(refs_done) struct refs c = {0};
    as_status st = refs_format(&c, ending, n, err);
    if (st != AS_OK)
        return st;
    RESULT_AUTO r = {0};
    struct reader rd;
    st = tx_query(t, &stmts[TURN_IS_IDLE], ARGS(arg_str(runner), ARG_REFS(&c)), &r, err);
    if (st != AS_OK)
        return st;
    reader_init(&rd, &r, 0, NULL);
    *ret = read_bool(&rd);
    return AS_OK;
}
