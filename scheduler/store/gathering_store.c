/* Tables gathering (one row: the sweep whose gang gathers) and gathering_seat (slots that are kept
 * free for it). Times are the database's. A seat belongs to a runner and its epoch and lapses by
 * time, so a runner that is gone needs no care here. The decisions are in
 * scheduler/assign/gathering.c and decision 5010. */
#include "scheduler/store/gathering_store.h"

#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/gang_sql_priv.h"
#include "scheduler/store/has_work_priv.h"
#include "scheduler/store/sets_priv.h"

enum {
    GATHERING_HOLD,
    GATHERING_LAPSE,
    GATHERING_GET,
    GATHERING_SET,
    GATHERING_CLEAR,
    GATHERING_RESERVE,
    GATHERING_PROGRESS,
    GATHERING_EXTEND,
    GATHERING_GIVE_UP,
    GATHERING_TAKES,
    GATHERING_NEWS,
    GATHERING_PENDING
};

#define HAS_GANGS "s.for_runners and s.gang and " HAS_WORK_OF("s.")

#define GATHERING_FIELDS(FIRST, NEXT)                                                              \
    FIRST(i64, sweep_key, "g.sweep_key")                                                           \
    NEXT(bool, has_work, "coalesce(" HAS_GANGS ", false)")                                         \
    NEXT(i64, ranks, RANKS_NEXT_OF("s."))                                                          \
    NEXT(i64, least_ranks, RANKS_LEAST_OF("s."))                                                   \
    NEXT(bool, has_run,                                                                            \
         "coalesce((select q.attempt > 0 from trial q where q.sweep_key = s.key and q.state = "    \
         "'queued' order by q.number limit 1), false)")                                            \
    NEXT(i64, gpus, "s.gpus")                                                                      \
    NEXT(i64, cpus, "s.cpus")                                                                      \
    NEXT(i64, memory_bytes, "s.memory_bytes")                                                      \
    NEXT(i64, seats, "(select count(*) from gathering_seat)")                                      \
    NEXT(i64, could_hold, "seats_of_runners(s.gpus, s.cpus, s.memory_bytes)")                      \
    NEXT(i64, idle_ms, SQL_MS("clock_timestamp() - g.idle_at"))                                    \
    NEXT(i64, unprogress_ms, SQL_MS("clock_timestamp() - g.progress_at"))
COLUMNS_WHOLE_ROW(struct gathering, GATHERING_FIELDS)
COLUMNS_READER(gathering, struct gathering, GATHERING_FIELDS)
#define GATHERING_COLUMNS COLUMNS_SQL(GATHERING_FIELDS)

#define NEWS_FIELDS(FIRST, NEXT)                                                                   \
    FIRST(bool, takes_seats, "r.takes_seats")                                                      \
    NEXT(bool, has_seats,                                                                          \
         "exists (select from gang_seat q where q.runner = r.name and q.epoch = r.epoch and "      \
         "q.state = 'seated' and q.claim_id is null)")                                             \
    NEXT(bool, has_gangs,                                                                          \
         "exists (select from gang o where o.state <> 'over' and o.elastic and not o.is_ending)")  \
    NEXT(bool, gathers, "g.sweep_key is not null")                                                 \
    NEXT(i64, idle_ms, SQL_MS("clock_timestamp() - g.idle_at"))
COLUMNS_WHOLE_ROW(struct gathering_news, NEWS_FIELDS)
COLUMNS_READER(news, struct gathering_news, NEWS_FIELDS)
#define NEWS_COLUMNS COLUMNS_SQL(NEWS_FIELDS)

static const struct stmt stmts[] = {
    [GATHERING_HOLD] = {"gathering_hold", "select 1 from gathering for no key update"},
    [GATHERING_LAPSE] =
        {"gathering_lapse",
         "with gone as (delete from gathering_seat p where p.until_at < clock_timestamp() or not "
         "exists (select from runner r where r.name = p.runner and r.epoch = p.epoch and r.state = "
         "'live' and r.expires_at > clock_timestamp()) returning 1) update gathering set "
         "changed_at = clock_timestamp() where exists (select from gone)"},
    [GATHERING_GET] = {"gathering_get", "select " GATHERING_COLUMNS " from gathering g left join "
                                        "sweep s on s.key = g.sweep_key"},
    [GATHERING_SET] = {"gathering_set",
                       "update gathering set sweep_key = nullif($1::bigint, 0), changed_at = "
                       "clock_timestamp(), progress_at = clock_timestamp(), idle_at = "
                       "clock_timestamp()"},
    [GATHERING_CLEAR] = {"gathering_clear", "delete from gathering_seat"},
    [GATHERING_RESERVE] = {"gathering_reserve",
                           "insert into gathering_seat (runner, epoch, until_at) select $1, $2, "
                           "clock_timestamp() + $4 * interval '1 ms' from generate_series(1, "
                           "$3::int)"},
    [GATHERING_PROGRESS] = {"gathering_progress",
                            "update gathering set progress_at = clock_timestamp()"},
    [GATHERING_EXTEND] = {"gathering_extend",
                          "update gathering_seat set until_at = greatest(until_at, "
                          "clock_timestamp() + $3 * interval '1 ms') where runner = $1 and epoch = "
                          "$2"},
    [GATHERING_GIVE_UP] = {"gathering_give_up",
                           "delete from gathering_seat where place in (select place from "
                           "gathering_seat where runner = $1 order by place desc limit $2)"},
    [GATHERING_TAKES] = {"gathering_takes",
                         "update runner set takes_seats = $3 where name = $1 and epoch = $2 and "
                         "takes_seats <> $3"},
    [GATHERING_NEWS] = {"gathering_news",
                        "select " NEWS_COLUMNS " from gathering g, runner r where "
                        "r.name = $1 and r.epoch = $2"},
    /* Fresh seats that their runners do not know of, a gathering that has just begun or lost a
     * seat: all waiting claims look, because nobody knows which of them can take part. Later, and
     * for the rest, a few at a time. */
    [GATHERING_PENDING] =
        {"gathering_pending",
         "select case when exists (select from gang_seat q where q.state = 'seated' and q.claim_id "
         "is null and q.seated_at > clock_timestamp() - interval '2 s') or (g.sweep_key is not "
         "null "
         "and g.changed_at > clock_timestamp() - interval '1 s') then 9223372036854775807 else "
         "(select count(*) from gang_seat q where q.state = 'seated' and q.claim_id is null) + "
         "least(8, (select coalesce(sum(o.ranks - (select count(*) from gang_seat q where "
         "" SAME("q", "o") " and q.state " LIVE ")), 0) from gang o where o.state <> 'over' and "
                           "o.elastic and not o.is_ending)) + case when g.sweep_key is not null "
                           "then ((select "
                           "count(*) from gathering_seat) < " RANKS_NEXT_OF(
                               "c.") " or not c.learns)::int else "
                                     "(exists (select from "
                                     "sweep s where " HAS_GANGS " and " COULD_GATHER
                                     "))::int end end from "
                                     "gathering g left join sweep_base c on c.key = g.sweep_key"},
};
const struct stmt_set gathering_stmts = {"gathering", stmts, AS_ARRAY_LEN(stmts)};

as_status store_gathering_get(struct tx *t, struct gathering *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[GATHERING_GET], NULL, &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows != 1)
        return as_fail(err, AS_E_INTERNAL, "the table gathering has %d rows", r.rows);
    return read_gathering_row(&r, 0, NULL, ret, err);
}

as_status store_gathering_lock(struct tx *t, struct gathering *ret, struct as_err *err)
{
    as_status st = tx_exec(t, &stmts[GATHERING_HOLD], NULL, NULL, err);
    if (st == AS_OK)
        st = tx_exec(t, &stmts[GATHERING_LAPSE], NULL, NULL, err);
    return st == AS_OK ? store_gathering_get(t, ret, err) : st;
}

as_status store_gathering_set(struct tx *t, int64_t sweep_key, struct as_err *err)
{
    as_status st = tx_exec(t, &stmts[GATHERING_SET], ARGS(arg_i64(sweep_key)), NULL, err);
    return st == AS_OK ? tx_exec(t, &stmts[GATHERING_CLEAR], NULL, NULL, err) : st;
}

as_status store_gathering_reserve(struct tx *t, const struct runner_id *id, int64_t n,
                                  int64_t until_ms, struct as_err *err)
{
    as_status st = tx_exec(
        t, &stmts[GATHERING_RESERVE],
        ARGS(arg_str(id->name), arg_i64(id->epoch), arg_i64(n), arg_i64(until_ms)), NULL, err);
    return st == AS_OK ? tx_exec(t, &stmts[GATHERING_PROGRESS], NULL, NULL, err) : st;
}

as_status store_gathering_extend(struct tx *t, const struct runner_id *id, int64_t until_ms,
                                 int64_t *ret_n, struct as_err *err)
{
    int n = 0;
    as_status st = tx_exec(t, &stmts[GATHERING_EXTEND],
                           ARGS(arg_str(id->name), arg_i64(id->epoch), arg_i64(until_ms)), &n, err);
    if (st == AS_OK)
        *ret_n = n;
    return st;
}

as_status store_gathering_news(struct tx *t, const struct runner_id *id, struct gathering_news *ret,
                               struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[GATHERING_NEWS], ARGS(arg_str(id->name), arg_i64(id->epoch)), &r, err);
    *ret = (struct gathering_news){0};
    return st == AS_OK && r.rows > 0 ? read_news_row(&r, 0, NULL, ret, err) : st;
}

as_status store_gathering_give_up(struct tx *t, const char *runner, int64_t n, int64_t *ret_n,
                                  struct as_err *err)
{
    int done = 0;
    as_status st =
        tx_exec(t, &stmts[GATHERING_GIVE_UP], ARGS(arg_str(runner), arg_i64(n)), &done, err);
    if (st == AS_OK)
        *ret_n = done;
    return st;
}

as_status store_gathering_takes(struct tx *t, const struct runner_id *id, bool takes,
                                struct as_err *err)
{
    return tx_exec(t, &stmts[GATHERING_TAKES],
                   ARGS(arg_str(id->name), arg_i64(id->epoch), arg_bool(takes)), NULL, err);
}

as_status store_gathering_pending(struct tx *t, int64_t *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[GATHERING_PENDING], NULL, &r, err);
    if (st == AS_OK)
        *ret = r.rows ? result_i64(&r, 0, 0) : 0;
    return st;
}
