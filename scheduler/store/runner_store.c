/* Table runner. Times are the database's: a runner's clock never counts.
 *
 * A runner's row is its lease, so a heartbeat updates one row and no index. Each change names the
 * epoch and the state that it expects in its WHERE; no row means that the runner was replaced, has
 * left or was lost. */
#include "scheduler/store/runner_store.h"

#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/page_fill_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/refs_priv.h"
#include "scheduler/store/runner_sql_priv.h"
#include "scheduler/store/sets_priv.h"

enum {
    RUNNER_HOLDER,
    RUNNER_REGISTER,
    RUNNER_EXTEND,
    RUNNER_BEAT,
    RUNNER_FAULTS,
    RUNNER_REVIVE,
    RUNNER_GET,
    RUNNER_CLAIMS,
    RUNNER_LEAVE,
    RUNNER_EXPIRED,
    RUNNER_LOSE,
    RUNNER_REMOVE,
    RUNNER_PRUNE,
    RUNNER_DRAIN,
    RUNNER_LIST
};

#define HEAD_FIELDS(FIRST, NEXT)                                                                   \
    FIRST(i64, epoch, "r.epoch")                                                                   \
    NEXT(text, state, "r.state")                                                                   \
    NEXT(text, secret, "r.secret")                                                                 \
    NEXT(i64, slots, "r.slots")                                                                    \
    NEXT(i64, running, "u.running")                                                                \
    NEXT(i64, used, "u.used")                                                                      \
    NEXT(i64, cpus, "r.cpus")                                                                      \
    NEXT(i64, memory_bytes, "r.memory_bytes")                                                      \
    NEXT(i64, cpus_used, "u.cpus_used")                                                            \
    NEXT(i64, memory_used, "u.memory_used")                                                        \
    NEXT(bool, is_shut, "u.is_shut")
COLUMNS_WHOLE_ROW(struct runner_head, HEAD_FIELDS)
COLUMNS_READER(head, struct runner_head, HEAD_FIELDS)
#define HEAD_COLUMNS COLUMNS_SQL(HEAD_FIELDS)

#define ENDING_FIELDS(FIRST, NEXT)                                                                 \
    FIRST(text, sweeps, "u.ending")                                                                \
    NEXT(i64, here, "u.here")
COLUMNS_WHOLE_ROW(struct runner_ending, ENDING_FIELDS)
COLUMNS_READER(ending, struct runner_ending, ENDING_FIELDS)
#define ENDING_COLUMNS COLUMNS_SQL(ENDING_FIELDS)

#define RUNNER_FIELDS(FIRST, NEXT)                                                                 \
    FIRST(text, name, "r.name")                                                                    \
    NEXT(text, state, "r.state")                                                                   \
    NEXT(text, host, "r.host")                                                                     \
    NEXT(text, version, "r.version")                                                               \
    NEXT(i64, slots, "r.slots")                                                                    \
    NEXT(text, gpus, "r.gpus")                                                                     \
    NEXT(text, gpu_faults, "r.gpu_faults")                                                         \
    NEXT(i64, running, "u.running")                                                                \
    NEXT(i64, used, "least(u.used, r.slots)")                                                      \
    NEXT(i64, cpus, "r.cpus")                                                                      \
    NEXT(i64, memory_bytes, "r.memory_bytes")                                                      \
    NEXT(i64, cpus_used, "u.cpus_used")                                                            \
    NEXT(i64, memory_used, "u.memory_used")                                                        \
    NEXT(text, machine, "r.machine")                                                               \
    NEXT(text, job, "r.job")                                                                       \
    NEXT(text, fleet, "r.fleet")                                                                   \
    NEXT(text, walls, "r.walls")                                                                   \
    NEXT(bool, is_draining, "r.draining")                                                          \
    NEXT(i64, epoch, "r.epoch")                                                                    \
    NEXT(i64, registered_ms, SQL_MS("r.registered_at"))                                            \
    NEXT(i64, seen_ms, SQL_MS("r.seen_at"))
COLUMNS_WHOLE_ROW(struct runner_row, RUNNER_FIELDS)
COLUMNS_READER(runner, struct runner_row, RUNNER_FIELDS)
#define RUNNER_COLUMNS COLUMNS_SQL(RUNNER_FIELDS)

static const struct stmt stmts[] = {
    [RUNNER_HOLDER] = {"runner_holder", "select secret is null or coalesce(secret = $2, false) "
                                        "from runner where name = $1 for update"},
    /* The WHERE decides, and not RUNNER_HOLDER: two may register a new name at once. */
    [RUNNER_REGISTER] =
        {"runner_register",
         "insert into runner as r (name, epoch, state, slots, gpus, host, version, expires_at, "
         "gpu_faults, secret, cpus, memory_bytes, machine, shares, job, fleet, walls) "
         "values ($1, 1, 'live', $2, $3, $4, $5, clock_timestamp() + $6 * interval '1 ms', $7, $8, "
         "$9, $10, $11, $12, $13, $14, $15) "
         "on conflict (name) do update set epoch = r.epoch + 1, state = 'live', slots = "
         "excluded.slots, gpus = excluded.gpus, gpu_faults = excluded.gpu_faults, "
         "host = excluded.host, version = excluded.version, registered_at = now(), seen_at = "
         "now(), "
         "expires_at = excluded.expires_at, secret = excluded.secret, cpus = excluded.cpus, "
         "memory_bytes = excluded.memory_bytes, machine = excluded.machine, "
         "shares = excluded.shares, job = excluded.job, fleet = excluded.fleet, walls = "
         "excluded.walls, "
         "draining = r.draining and r.state <> 'left' "
         "where r.secret is null or r.secret = excluded.secret or r.state <> 'live' or "
         "r.expires_at < clock_timestamp() returning r.epoch"},
    [RUNNER_EXTEND] = {"runner_extend",
                       "update runner set seen_at = clock_timestamp(), expires_at = "
                       "clock_timestamp() + $4 * interval '1 ms' where name = $1 and epoch = $2 "
                       "and (secret is null or secret = $3) and state = 'live'"},
    [RUNNER_BEAT] = {"runner_beat",
                     "update runner r set seen_at = clock_timestamp(), expires_at = "
                     "clock_timestamp() + $4 * interval '1 ms' where name = $1 and epoch = $2 "
                     "and (secret is null or secret = $3) and state = 'live' returning exists "
                     "(select from gang_seat q where q.runner = r.name and q.state in ('seated', "
                     "'listening', 'running')), exists (select from trial h where h.runner = "
                     "r.name and h.state = 'running'), r.draining"},
    [RUNNER_FAULTS] = {"runner_faults",
                       "update runner set gpu_faults = $4 where name = $1 and epoch = $2 and "
                       "(secret is null or secret = $3)"},
    [RUNNER_REVIVE] = {"runner_revive",
                       "update runner set state = 'live', seen_at = clock_timestamp(), expires_at "
                       "= clock_timestamp() + $4 * interval '1 ms' where name = $1 and epoch = $2 "
                       "and (secret is null or secret = $3) and state = 'lost'"},
    [RUNNER_GET] = {"runner_get",
                    "select " HEAD_COLUMNS " from runner r cross join lateral " HELD_COUNTS
                    " u where name = $1"},
    /* `used`: a trial alone takes a slot, and so does a rank, and a group takes one for all its
     * members. A trial that the runner calls ending frees its slot; a group frees its slot when all
     * its members are ending. */
    [RUNNER_CLAIMS] =
        {"runner_claims",
         "select " HEAD_COLUMNS ", " ENDING_COLUMNS " from runner r cross join lateral (select "
         "count(t.number) as running, count(*) filter (where t.group_id is null "
         "and not t.ends) + "
         "count(distinct t.group_id) filter (where not t.ends) as used, "
         "coalesce(sum(t.cpus) "
         "filter (where t.is_first and not t.ends), 0) + " TAKEN_BY_OTHERS(
             "cpus") " as cpus_used, "
                     "coalesce(sum(t.memory_bytes) "
                     "filter (where t.is_first and not t.ends), 0) + " TAKEN_BY_OTHERS(
                         "memory_bytes") " as memory_used, "
                                         "coalesce(array_agg("
                                         "t.sweep_key) filter (where t.ends), '{}') as ending, "
                                         "count(*) filter "
                                         "(where t.ends and "
                                         "t.sweep_key = $5) as here, " IS_SHUT(
                                             "not (o.name = r.name and h.seat is null and exists "
                                             "(select "
                                             "from " LISTED " where l.id = x.id and l.number = "
                                             "h.number and l.attempt = "
                                             "h.attempt))") " as is_shut "
                                                            "from (select n.*, e.ends, n.group_id "
                                                            "is null or "
                                                            "row_number() over (partition by "
                                                            "n.group_id, e.ends order by n.number) "
                                                            "= 1 as "
                                                            "is_first from held_needs n left join "
                                                            "sweep s "
                                                            "on s.key = n.sweep_key left join "
                                                            "(select distinct "
                                                            "l.id, l.number, l.attempt from " LISTED
                                                            ") l on l.id = s.id and l.number = "
                                                            "n.number and "
                                                            "l.attempt = n.attempt and n.seat is "
                                                            "null "
                                                            "cross join lateral (select l.id is "
                                                            "not null as ends) "
                                                            "e where n.runner = r.name) t) u "
                                                            "where r.name = $1"},
    [RUNNER_LEAVE] = {"runner_leave",
                      "update runner set state = 'left', seen_at = now() where name "
                      "= $1 and epoch = $2 and (secret is null or secret = $3) and state <> "
                      "'left'"},
    /* The left join returns one row also if no lease has run out, because the caller needs the
     * database's time in any case. */
    [RUNNER_EXPIRED] = {"runner_expired",
                        "select " SQL_MS(
                            "clock_timestamp()") ", r.name from (select 1) one left join "
                                                 "runner r on r.state = 'live' and r.expires_at < "
                                                 "clock_timestamp() "
                                                 "order by r.name limit 1000"},
    [RUNNER_LOSE] = {"runner_lose", "update runner set state = 'lost' where name = $1 and state = "
                                    "'live' and expires_at < clock_timestamp()"},
    [RUNNER_REMOVE] = {"runner_remove", "delete from runner where name = $1"},
    /* A runner that has left or was lost holds nothing that another one could get by its name. */
    [RUNNER_PRUNE] = {"runner_prune",
                      "delete from runner where name in (select r.name from runner r where "
                      "r.state <> 'live' and r.seen_at < clock_timestamp() - $1 * interval '1 ms' "
                      "and not exists (select from held h where h.runner = r.name) order by "
                      "r.seen_at limit 1000)"},
    [RUNNER_DRAIN] = {"runner_drain", "update runner set draining = $2 where name = $1 and "
                                      "state <> 'left'"},
    [RUNNER_LIST] = {"runner_list", "select " RUNNER_COLUMNS
                                    " from runner r cross join lateral " HELD_COUNTS " u where "
                                    "((r.state <> 'live')::int, r.name) > ($1::int, $2::text) "
                                    "order by (r.state <> 'live')::int, r.name limit $3"},
};
const struct stmt_set runner_stmts = {"runner", stmts, AS_ARRAY_LEN(stmts)};

as_status store_runner_is_same(struct tx *t, const char *name, const char *secret, bool *ret,
                               struct as_err *err)
{
    RESULT_AUTO r = {0};
    struct reader rd;
    as_status st =
        tx_query(t, &stmts[RUNNER_HOLDER], ARGS(arg_str(name), arg_str(secret)), &r, err);
    if (st != AS_OK)
        return st;
    *ret = true;
    if (r.rows == 0)
        return AS_OK;
    reader_init(&rd, &r, 0, NULL);
    column_bool(&rd, ret);
    return reader_check(&rd, err);
}

as_status store_runner_register(struct tx *t, const struct runner_new *n, int64_t *ret_epoch,
                                struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[RUNNER_REGISTER],
                            ARGS(arg_str(n->name), arg_i64(n->slots), arg_str(n->gpus),
                                 arg_str(n->host), arg_str(n->version), arg_i64(n->lease_ms),
                                 arg_str(n->gpu_faults ? n->gpu_faults : "[]"), arg_str(n->secret),
                                 arg_i64(n->cpus), arg_i64(n->memory_bytes), arg_str(n->machine),
                                 arg_bool(n->shares && n->machine), arg_str(n->job),
                                 arg_str(n->fleet), arg_str(n->walls)),
                            &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_CONFLICT,
                       "a runner '%.63s' is live and has another secret: choose another name, or "
                       "wait until its lease has ended",
                       n->name);
    *ret_epoch = result_i64(&r, 0, 0);
    return AS_OK;
}

static as_status exec_lease(struct tx *t, int which, const struct runner_id *id, int64_t lease_ms,
                            bool *ret_done, struct as_err *err)
{
    const struct args *args =
        lease_ms > 0
            ? ARGS(arg_str(id->name), arg_i64(id->epoch), arg_str(id->secret), arg_i64(lease_ms))
            : ARGS(arg_str(id->name), arg_i64(id->epoch), arg_str(id->secret));
    int n = 0;
    as_status st = tx_exec(t, &stmts[which], args, &n, err);
    if (st == AS_OK)
        *ret_done = n > 0;
    return st;
}

as_status store_runner_extend(struct tx *t, const struct runner_id *id, int64_t lease_ms,
                              bool *ret_done, struct as_err *err)
{
    return exec_lease(t, RUNNER_EXTEND, id, lease_ms, ret_done, err);
}

as_status store_runner_beat(struct tx *t, const struct runner_id *id, int64_t lease_ms,
                            struct runner_beat *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    struct reader rd;
    as_status st = tx_query(
        t, &stmts[RUNNER_BEAT],
        ARGS(arg_str(id->name), arg_i64(id->epoch), arg_str(id->secret), arg_i64(lease_ms)), &r,
        err);
    if (st != AS_OK)
        return st;
    *ret = (struct runner_beat){.is_live = r.rows > 0, .has_seats = true, .has_trials = true};
    if (r.rows == 0)
        return AS_OK;
    reader_init(&rd, &r, 0, NULL);
    ret->has_seats = read_bool(&rd);
    ret->has_trials = read_bool(&rd);
    ret->is_draining = read_bool(&rd);
    return AS_OK;
}

as_status store_runner_faults(struct tx *t, const struct runner_id *id, const char *gpu_faults,
                              bool *ret_done, struct as_err *err)
{
    int n = 0;
    as_status st = tx_exec(
        t, &stmts[RUNNER_FAULTS],
        ARGS(arg_str(id->name), arg_i64(id->epoch), arg_str(id->secret), arg_str(gpu_faults)), &n,
        err);
    if (st == AS_OK)
        *ret_done = n > 0;
    return st;
}

as_status store_runner_revive(struct tx *t, const struct runner_id *id, int64_t lease_ms,
                              bool *ret_done, struct as_err *err)
{
    return exec_lease(t, RUNNER_REVIVE, id, lease_ms, ret_done, err);
}

as_status store_runner_leave(struct tx *t, const struct runner_id *id, bool *ret_done,
                             struct as_err *err)
{
    return exec_lease(t, RUNNER_LEAVE, id, 0, ret_done, err);
}

as_status store_runner_remove(struct tx *t, const char *name, bool *ret_done, struct as_err *err)
{
    int n = 0;
    as_status st = tx_exec(t, &stmts[RUNNER_REMOVE], ARGS(arg_str(name)), &n, err);
    if (st == AS_OK)
        *ret_done = n > 0;
    return st;
}

as_status store_runner_prune(struct tx *t, int64_t keep_ms, int64_t *ret_removed,
                             struct as_err *err)
{
    int n = 0;
    as_status st = tx_exec(t, &stmts[RUNNER_PRUNE], ARGS(arg_i64(keep_ms)), &n, err);
    if (st == AS_OK)
        *ret_removed = n;
    return st;
}

as_status store_runner_drain(struct tx *t, const char *name, bool is_draining, bool *ret_done,
                             struct as_err *err)
{
    int n = 0;
    as_status st =
        tx_exec(t, &stmts[RUNNER_DRAIN], ARGS(arg_str(name), arg_bool(is_draining)), &n, err);
    if (st == AS_OK)
        *ret_done = n > 0;
    return st;
}

as_status runner_id_check(const struct runner_id *id, const struct runner_head *runner,
                          struct as_err *err)
{
    if (runner->epoch != id->epoch || !runner->secret || as_streq(runner->secret, id->secret))
        return AS_OK;
    if (!id->secret)
        return as_fail(err, AS_E_DENIED,
                       "the header Assay-Runner-Secret is missing: runner '%.63s' registered with "
                       "a secret",
                       id->name);
    return as_fail(err, AS_E_DENIED,
                   "the header Assay-Runner-Secret does not hold the secret of runner '%.63s'",
                   id->name);
}

static as_status no_runner(const char *name, struct as_err *err)
{
    return as_fail(err, AS_E_NOT_FOUND, "there is no runner '%.63s': it has to register first",
                   name);
}

as_status store_runner_get(struct tx *t, struct arena *a, const char *name, struct runner_head *ret,
                           struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[RUNNER_GET], ARGS(arg_str(name)), &r, err);
    if (st != AS_OK)
        return st;
    return r.rows == 0 ? no_runner(name, err) : read_head_row(&r, 0, a, ret, err);
}

as_status store_runner_claims(struct tx *t, struct arena *a, const char *name,
                              const struct attempt_ref *ending, size_t n, int64_t sweep_key,
                              struct runner_head *ret, struct runner_ending *ret_ending,
                              struct as_err *err)
{
    AS_AUTO(refs_done) struct refs c = {0};
    as_status st = refs_format(&c, ending, n, err);
    if (st != AS_OK)
        return st;
    RESULT_AUTO r = {0};
    struct reader rd;
    st = tx_query(t, &stmts[RUNNER_CLAIMS], ARGS(arg_str(name), ARG_REFS(&c), arg_i64(sweep_key)),
                  &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return no_runner(name, err);
    reader_init(&rd, &r, 0, a);
    read_head(&rd, ret);
    read_ending(&rd, ret_ending);
    return reader_check(&rd, err);
}

as_status store_runner_expired(struct tx *t, struct arena *a, int64_t *ret_now_ms,
                               const char ***ret, size_t *ret_n, struct as_err *err)
{
    size_t n = 0;
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[RUNNER_EXPIRED], NULL, &r, err);
    if (st != AS_OK)
        return st;
    const char **names = arena_alloc(a, (size_t)r.rows + 1, sizeof *names);
    if (!names)
        return as_fail_nomem(err);
    for (int i = 0; i < r.rows; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, a);
        *ret_now_ms = read_i64(&rd);
        if (read_null(&rd))
            break; /* this row has only the time */
        names[n++] = read_str(&rd);
        if ((st = reader_check(&rd, err)) != AS_OK)
            return st;
    }
    *ret = names;
    *ret_n = n;
    return AS_OK;
}

as_status store_runner_lose(struct tx *t, const char *name, bool *ret_done, struct as_err *err)
{
    int n = 0;
    as_status st = tx_exec(t, &stmts[RUNNER_LOSE], ARGS(arg_str(name)), &n, err);
    if (st == AS_OK)
        *ret_done = n > 0;
    return st;
}

as_status store_runner_list(struct tx *t, struct arena *a, int64_t after_rank,
                            const char *after_name, int64_t size, struct runner_row **ret,
                            size_t *ret_n, int64_t *ret_next_rank, struct as_err *err)
{
    struct page_fill f = page_fill_start(size);
    struct runner_row *rows = arena_alloc(a, (size_t)size, sizeof *rows);
    size_t n = 0;
    if (!rows)
        return as_fail_nomem(err);
    for (int64_t ask; (ask = page_fill_next(&f)) > 0;) {
        RESULT_AUTO r = {0};
        as_status st =
            tx_query(t, &stmts[RUNNER_LIST],
                     ARGS(arg_i64(after_rank), arg_str(after_name), arg_i64(ask + 1)), &r, err);
        if (st != AS_OK)
            return st;
        int take = page_fill_take(&f, &r, ask);
        for (int i = 0; i < take; i++, n++) {
            if ((st = read_runner_row(&r, i, a, &rows[n], err)) != AS_OK)
                return st;
            after_rank = !as_streq(rows[n].state, "live");
            after_name = rows[n].name;
        }
    }
    *ret = rows;
    *ret_n = n;
    *ret_next_rank = f.has_more ? after_rank : -1;
    return AS_OK;
}
