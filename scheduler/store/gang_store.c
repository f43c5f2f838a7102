/* Tables gang and gang_seat: the world of a gang.
 *
 * The row of a gang is locked by whoever changes its world (GANG_LOCK), and shared by the writes of
 * the rank that leads (GANG_FENCE): so a write either comes before the next epoch or is refused.
 * GANG_EPOCH is the one statement that raises the epoch, and compares it. */
#include "scheduler/store/gang_store.h"

#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/gang_sql_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"

enum {
    GANG_GET,
    GANG_LOCK,
    GANG_SEATS,
    GANG_SEATS_NOW,
    GANG_SEAT,
    GANG_FENCE,
    GANG_FENCE_MANY,
    GANG_FENCE_FREE,
    GANG_LISTEN,
    GANG_JOIN,
    GANG_JOINED,
    GANG_SAID,
    GANG_REACHED,
    GANG_SET,
    GANG_EPOCH,
    GANG_STEP,
    GANG_DEATHS,
    GANG_ENDING,
    GANG_END,
    GANG_SEATS_OVER,
    GANG_ADD,
    GANG_LATE,
    GANG_STUCK,
    GANG_MARKS
};

static void column_seat_state(struct reader *rd, seat_state *ret)
{
    const char *word = read_view(rd);
    if (seat_state_parse(word, ret, NULL) != AS_OK)
        rd->unknown = word;
}

static void column_gang_state(struct reader *rd, gang_state *ret)
{
    const char *word = read_view(rd);
    if (gang_state_parse(word, ret, NULL) != AS_OK)
        rd->unknown = word;
}

#define GANG_FIELDS(FIRST, NEXT)                                                                   \
    FIRST(i64, id, "g.id")                                                                         \
    NEXT(i64, sweep_key, "g.sweep_key")                                                            \
    NEXT(i64, number, "g.number")                                                                  \
    NEXT(i64, attempt, "g.attempt")                                                                \
    NEXT(i64, ranks, "g.ranks")                                                                    \
    NEXT(i64, min_ranks, "g.min_ranks")                                                            \
    NEXT(bool, elastic, "g.elastic")                                                               \
    NEXT(text, launch, "g.launch")                                                                 \
    NEXT(text, secret, "g.secret")                                                                 \
    NEXT(gang_state, state, "g.state")                                                             \
    NEXT(i64, epoch, "g.epoch")                                                                    \
    NEXT(bool, has_joined, "g.has_joined")                                                         \
    NEXT(bool, is_ending, "g.is_ending")                                                           \
    NEXT(bool, has_step, "g.step is not null")                                                     \
    NEXT(i64, step, "g.step")                                                                      \
    NEXT(i64, deaths, "g.deaths")                                                                  \
    NEXT(i64, idle_deaths, "g.idle_deaths")                                                        \
    NEXT(i64, restarts, "t.restarts")                                                              \
    NEXT(i64, max_restarts, "s.max_restarts")                                                      \
    NEXT(i64, begun_ms, SQL_MS("g.begun_at"))                                                      \
    NEXT(i64, age_ms, SQL_MS("clock_timestamp() - g.begun_at"))
COLUMNS_WHOLE_ROW(struct gang_row, GANG_FIELDS)
COLUMNS_READER(gang, struct gang_row, GANG_FIELDS)
#define GANG_COLUMNS COLUMNS_SQL(GANG_FIELDS)
#define GANG_FROM                                                                                  \
    " from gang g join trial t on t.sweep_key = g.sweep_key and t.number = g.number join "         \
    "sweep_base s on s.key = g.sweep_key where g.sweep_key = $1 and g.number = $2 and g.attempt "  \
    "= $3"

#define SEAT_FIELDS(FIRST, NEXT)                                                                   \
    FIRST(i64, seat, "seat")                                                                       \
    NEXT(seat_state, state, "state")                                                               \
    NEXT(bool, is_member, "is_member")                                                             \
    NEXT(text, runner, "runner")                                                                   \
    NEXT(text, host, "host")                                                                       \
    NEXT(text, secret, "secret")                                                                   \
    NEXT(text, at.endpoint, "endpoint")                                                            \
    NEXT(text, at.address, "address")                                                              \
    NEXT(i64, at.port, "port")                                                                     \
    NEXT(i64, joined_epoch, "joined_epoch")                                                        \
    NEXT(bool, has_step, "step is not null")                                                       \
    NEXT(i64, step, "step")                                                                        \
    NEXT(i64, sent_bytes, "sent_bytes")                                                            \
    NEXT(text, outcome, "outcome")                                                                 \
    NEXT(bool, has_exit_code, "exit_code is not null")                                             \
    NEXT(i64, exit_code, "exit_code")                                                              \
    NEXT(bool, has_ran, "ran_ms is not null")                                                      \
    NEXT(i64, ran_ms, "ran_ms")                                                                    \
    NEXT(i64, since_ms, SQL_MS("since"))                                                           \
    NEXT(i64, ended_ms, SQL_MS("ended_at"))                                                        \
    NEXT(text, reason, "reason")
COLUMNS_WHOLE_ROW(struct gang_seat_row, SEAT_FIELDS)
COLUMNS_READER(seat, struct gang_seat_row, SEAT_FIELDS)
#define SEAT_COLUMNS COLUMNS_SQL(SEAT_FIELDS)

#define KEY_FIELDS(FIRST, NEXT)                                                                    \
    FIRST(i64, sweep_key, "g.sweep_key")                                                           \
    NEXT(i64, number, "g.number")                                                                  \
    NEXT(i64, attempt, "g.attempt")
COLUMNS_WHOLE_ROW(struct gang_key, KEY_FIELDS)
COLUMNS_READER(key, struct gang_key, KEY_FIELDS)
#define KEY_COLUMNS COLUMNS_SQL(KEY_FIELDS)

#define MARK_FIELDS(FIRST, NEXT)                                                                   \
    FIRST(i64, id, "id")                                                                           \
    NEXT(i64, epoch, "epoch")                                                                      \
    NEXT(bool, is_over, "state = 'over'")
COLUMNS_WHOLE_ROW(struct gang_mark, MARK_FIELDS)
COLUMNS_READER(mark, struct gang_mark, MARK_FIELDS)
#define MARK_COLUMNS COLUMNS_SQL(MARK_FIELDS)

#define FENCE_MANY(wait)                                                                           \
    "select u.place - 1, h.* from unnest($1::bigint[], $2::bigint[], $3::bigint[]) with "          \
    "ordinality as u(key, number, attempt, place) cross join lateral (select g.epoch, (select "    \
    "min(q.seat) from gang_seat q where q.is_member and " SAME(                                    \
        "q", "g") ") from gang g where g.sweep_key = u.key and g.number = u.number and g.attempt " \
                  "= u.attempt for share of g " wait ") h"

static const struct stmt stmts[] = {
    [GANG_GET] = {"gang_get", "select " GANG_COLUMNS GANG_FROM},
    [GANG_LOCK] = {"gang_lock", "select " GANG_COLUMNS GANG_FROM " for no key update of g"},
    [GANG_SEATS] = {"gang_seats", "select " SEAT_COLUMNS " from gang_seat where " THIS
                                  " and seat >= (select next_seat - 10000 from gang where " THIS
                                  ") order by seat"},
    [GANG_SEATS_NOW] = {"gang_seats_now", "select " SEAT_COLUMNS " from gang_seat where " THIS
                                          " and (state " LIVE " or is_member) order by seat"},
    [GANG_SEAT] = {"gang_seat",
                   "select " SEAT_COLUMNS " from gang_seat where " THIS " and seat = $4"},
    [GANG_FENCE] = {"gang_fence",
                    "select g.epoch, (select min(q.seat) from gang_seat q where q.is_member and "
                    "" SAME("q", "g") ") from gang g where g.sweep_key = $1 and g.number = $2 and "
                                      "g.attempt = $3 for share of g"},
    [GANG_FENCE_MANY] = {"gang_fence_many", FENCE_MANY("")},
    [GANG_FENCE_FREE] = {"gang_fence_free", FENCE_MANY("skip locked")},
    [GANG_LISTEN] = {"gang_listen",
                     "update gang_seat set state = 'listening', since = clock_timestamp(), "
                     "endpoint = $5, address = $6, port = $7 where " THIS
                     " and seat = $4 and state = 'seated'"},
    [GANG_JOIN] = {"gang_join",
                   "update gang_seat set state = 'running', since = case when state = 'running' "
                   "then since else clock_timestamp() end, joined_epoch = $5, step = "
                   "greatest(coalesce(step, 0), $6) where " THIS
                   " and seat = $4 and state in ('listening', 'running')"},
    [GANG_JOINED] = {"gang_joined",
                     "update gang set has_joined = true where " THIS " and not has_joined"},
    [GANG_SAID] = {"gang_said",
                   "update gang_seat set outcome = $5, exit_code = $6, phase = 'ended', ran_ms = "
                   "coalesce($7, ran_ms), step = greatest(step, $8::bigint), sent_bytes = "
                   "greatest(sent_bytes, $9) where " THIS " and seat = $4"},
    [GANG_REACHED] = {"gang_reached",
                      "update gang_seat set step = greatest(step, $5::bigint), sent_bytes = "
                      "greatest(sent_bytes, case when seat = $4 then $6 else 0 end) where " THIS
                      " and (seat = $4 or is_member)"},
    [GANG_SET] = {"gang_set",
                  "update gang_seat q set state = l.state, is_member = l.is_member, since = case "
                  "when q.state = l.state then q.since else clock_timestamp() end, ended_at = case "
                  "when l.state " LIVE " then null else coalesce(q.ended_at, clock_timestamp()) "
                  "end, reason = case when l.state " LIVE " or q.state = l.state then q.reason "
                  "else $7 end from unnest($4::int[], $5::text[], $6::bool[]) as l(seat, state, "
                  "is_member) where " THIS " and q.seat = l.seat and (q.state, q.is_member) is "
                  "distinct from (l.state, l.is_member)"},
    [GANG_EPOCH] = {"gang_epoch",
                    "update gang set epoch = epoch + 1, state = $5, started_at = "
                    "coalesce(started_at, clock_timestamp()), changed_at = case when state = $5 "
                    "then changed_at else clock_timestamp() end where " THIS
                    " and epoch = $4 and state <> 'over'"},
    [GANG_STEP] = {"gang_step",
                   "update gang set step = $4, idle_deaths = 0, progressed_at = clock_timestamp() "
                   "where " THIS " and coalesce(step, -1) < $4 and state <> 'over'"},
    [GANG_DEATHS] = {"gang_deaths", "update gang set deaths = deaths + $4, idle_deaths = "
                                    "idle_deaths + $4 where " THIS},
    [GANG_ENDING] = {"gang_ending",
                     "update gang set is_ending = $4 where " THIS " and is_ending <> $4"},
    [GANG_END] = {"gang_over",
                  "update gang g set state = 'over', changed_at = clock_timestamp() from "
                  "unnest($1::bigint[], $2::int[], $3::int[]) as l(sweep_key, number, attempt) "
                  "where " SQL_JOINED_ATTEMPT("g", "l") " and g.state <> 'over'"},
    [GANG_SEATS_OVER] =
        {"gang_seats_over",
         "update gang_seat q set state = 'ended', since = clock_timestamp(), ended_at = "
         "clock_timestamp(), reason = l.reason from unnest($1::bigint[], $2::int[], $3::int[], "
         "$4::text[]) as l(sweep_key, number, attempt, reason) where " SQL_JOINED_ATTEMPT(
             "q", "l") " and q.state " LIVE},
    /* Ranks of one runner stand side by side, as programs expect of ranks of one machine. */
    [GANG_ADD] =
        {"gang_add",
         "with g as (insert into gang (sweep_key, number, attempt, ranks, min_ranks, elastic, "
         "launch, secret, next_seat) select t.sweep_key, t.number, t.attempt, own.ranks, "
         "case when s.elastic or s.shrinks then least(s.min_ranks, own.ranks) else own.ranks end, "
         "s.elastic, s.launch, $2, own.ranks from trial t join sweep_base s on s.key = "
         "t.sweep_key cross join lateral (select least(coalesce((t.params ->> s.ranks_by)::int, "
         "s.ranks), (select count(*) from gathering_seat)) as ranks) own where t.sweep_key = $1 "
         "and t.state = 'running' and t.gang and not exists "
         "(select from gang o where " SAME(
             "o",
             "t") ") returning sweep_key, number, attempt, ranks), "
                  "placed as (select p.place, p.runner, p.epoch, min(p.place) over (partition "
                  "by p.runner) as first from "
                  "(select * from gathering_seat order by place limit (select ranks from g)) p), "
                  "seats as (insert into gang_seat (sweep_key, number, "
                  "attempt, seat, "
                  "runner, epoch, host, secret) select g.sweep_key, g.number, g.attempt, "
                  "row_number() over "
                  "(order by p.first, p.place) - 1, p.runner, p.epoch, r.host, r.secret from "
                  "g, placed p "
                  "join runner r on r.name = p.runner), turn as (update sweep_base set gang_at = "
                  "clock_timestamp() where key = $1) select " KEY_COLUMNS " from g"},
    [GANG_LATE] =
        {"gang_late",
         "select " KEY_COLUMNS " from gang g where g.state = 'gathering' and g.elastic and "
         "(select count(*) from gang_seat q where " SAME(
             "q", "g") " and q.state = 'listening') >= g.min_ranks and (select max(q.since) from "
                       "gang_seat q where " SAME("q",
                                                 "g") ") < clock_timestamp() - $1 * interval '1 "
                                                      "ms' order by 1, 2, 3 limit 100"},
    [GANG_STUCK] = {"gang_stuck",
                    "select " KEY_COLUMNS " from gang g where g.state = 'waiting' and g.changed_at "
                    "< clock_timestamp() - $1 * interval '1 ms' and exists (select from gang o "
                    "where o.state = 'waiting' and (o.begun_at, o.id) < (g.begun_at, g.id)) order "
                    "by 1, 2, 3 limit 100"},
    [GANG_MARKS] = {"gang_marks",
                    "select " MARK_COLUMNS " from gang where id = any ($1::bigint[])"},
};
const struct stmt_set gang_stmts = {"gang", stmts, AS_ARRAY_LEN(stmts)};

static as_status query_gang(struct tx *t, int which, struct arena *a, const struct gang_key *key,
                            struct gang_row *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[which], ARGS(ARG_KEY(key)), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "attempt %lld of trial %lld has no gang",
                       (long long)key->attempt, (long long)key->number);
    return read_gang_row(&r, 0, a, ret, err);
}

as_status store_gang_get(struct tx *t, struct arena *a, const struct gang_key *key,
                         struct gang_row *ret, struct as_err *err)
{
    return query_gang(t, GANG_GET, a, key, ret, err);
}

as_status store_gang_lock(struct tx *t, struct arena *a, const struct gang_key *key,
                          struct gang_row *ret, struct as_err *err)
{
    return query_gang(t, GANG_LOCK, a, key, ret, err);
}

static as_status query_seats(struct tx *t, int which, struct arena *a, const struct gang_key *key,
                             struct gang_seat_row **ret, size_t *ret_n, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[which], ARGS(ARG_KEY(key)), &r, err);
    if (st != AS_OK)
        return st;
    *ret_n = (size_t)r.rows;
    return read_seat_rows(&r, r.rows, a, ret, err);
}

as_status store_gang_seats(struct tx *t, struct arena *a, const struct gang_key *key,
                           struct gang_seat_row **ret, size_t *ret_n, struct as_err *err)
{
    return query_seats(t, GANG_SEATS, a, key, ret, ret_n, err);
}

as_status store_gang_seats_now(struct tx *t, struct arena *a, const struct gang_key *key,
                               struct gang_seat_row **ret, size_t *ret_n, struct as_err *err)
{
    return query_seats(t, GANG_SEATS_NOW, a, key, ret, ret_n, err);
}

as_status store_gang_seat(struct tx *t, struct arena *a, const struct gang_key *key, int64_t seat,
                          struct gang_seat_row *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[GANG_SEAT], ARGS(ARG_KEY(key), arg_i64(seat)), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "the gang has no seat %lld", (long long)seat);
    return read_seat_row(&r, 0, a, ret, err);
}

as_status store_gang_fence_many(struct tx *t, struct gang_fence *fences, size_t n, bool is_patient,
                                struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    arrays_open(&x);
    for (size_t i = 0; i < n; i++) {
        fences[i].is_held = false;
        array_i64(&x.c[0], fences[i].key.sweep_key);
        array_i64(&x.c[1], fences[i].key.number);
        array_i64(&x.c[2], fences[i].key.attempt);
    }
    as_status st = arrays_close(&x, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[is_patient ? GANG_FENCE_MANY : GANG_FENCE_FREE],
                      ARGS(arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2)), &r, err);
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, NULL);
        struct gang_fence *f = &fences[read_i64(&rd)];
        f->is_held = true;
        f->epoch = read_i64(&rd);
        f->leader = read_null(&rd) ? -1 : read_i64(&rd);
    }
    return st;
}

as_status store_gang_fence(struct tx *t, const struct gang_key *key, int64_t *ret_epoch,
                           int64_t *ret_leader, struct as_err *err)
{
    RESULT_AUTO r = {0};
    struct reader rd;
    as_status st = tx_query(t, &stmts[GANG_FENCE], ARGS(ARG_KEY(key)), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "attempt %lld of trial %lld has no gang",
                       (long long)key->attempt, (long long)key->number);
    reader_init(&rd, &r, 0, NULL);
    *ret_epoch = read_i64(&rd);
    *ret_leader = read_null(&rd) ? -1 : read_i64(&rd);
    return AS_OK;
}

as_status store_gang_listen(struct tx *t, const struct gang_key *key, int64_t seat,
                            const struct seat_address *at, struct as_err *err)
{
    return tx_exec(t, &stmts[GANG_LISTEN],
                   ARGS(ARG_KEY(key), arg_i64(seat), arg_str(at->endpoint), arg_str(at->address),
                        arg_i64(at->port)),
                   NULL, err);
}

as_status store_gang_join(struct tx *t, const struct gang_key *key, int64_t seat, int64_t epoch,
                          int64_t step, struct as_err *err)
{
    as_status st =
        tx_exec(t, &stmts[GANG_JOIN],
                ARGS(ARG_KEY(key), arg_i64(seat), arg_i64(epoch), arg_i64(step)), NULL, err);
    return st == AS_OK ? tx_exec(t, &stmts[GANG_JOINED], ARGS(ARG_KEY(key)), NULL, err) : st;
}

as_status store_gang_said(struct tx *t, const struct gang_key *key,
                          const struct gang_seat_row *seat, struct as_err *err)
{
    return tx_exec(t, &stmts[GANG_SAID],
                   ARGS(ARG_KEY(key), arg_i64(seat->seat), arg_str(seat->outcome),
                        arg_i64_or_null(seat->has_exit_code, seat->exit_code),
                        arg_i64_or_null(seat->has_ran, seat->ran_ms),
                        arg_i64_or_null(seat->has_step, seat->step), arg_i64(seat->sent_bytes)),
                   NULL, err);
}

as_status store_gang_reached(struct tx *t, const struct gang_key *key, int64_t seat, int64_t step,
                             int64_t sent_bytes, struct as_err *err)
{
    as_status st =
        tx_exec(t, &stmts[GANG_REACHED],
                ARGS(ARG_KEY(key), arg_i64(seat), arg_i64(step), arg_i64(sent_bytes)), NULL, err);
    return st == AS_OK ? store_gang_step(t, key, step, err) : st;
}

as_status store_gang_set(struct tx *t, const struct gang_key *key,
                         const struct gang_seat_row *seats, size_t n, const char *reason,
                         struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    arrays_open(&x);
    for (size_t i = 0; i < n; i++) {
        array_i64(&x.c[0], seats[i].seat);
        array_str(&x.c[1], seat_state_format(seats[i].state));
        array_str(&x.c[2], seats[i].is_member ? "t" : "f");
    }
    as_status st = arrays_close(&x, err);
    if (st != AS_OK)
        return st;
    return tx_exec(
        t, &stmts[GANG_SET],
        ARGS(ARG_KEY(key), arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2), arg_str(reason)),
        NULL, err);
}

as_status store_gang_epoch(struct tx *t, const struct gang_key *key, int64_t epoch,
                           gang_state state, struct as_err *err)
{
    int n = 0;
    as_status st =
        tx_exec(t, &stmts[GANG_EPOCH],
                ARGS(ARG_KEY(key), arg_i64(epoch), arg_str(gang_state_format(state))), &n, err);
    if (st == AS_OK && n == 0)
        return as_fail_at(err, AS_E_STALE, STALE_WORLD,
                          "epoch %lld is not current any more: read the world again",
                          (long long)epoch);
    return st;
}

as_status store_gang_step(struct tx *t, const struct gang_key *key, int64_t step,
                          struct as_err *err)
{
    return tx_exec(t, &stmts[GANG_STEP], ARGS(ARG_KEY(key), arg_i64(step)), NULL, err);
}

as_status store_gang_deaths(struct tx *t, const struct gang_key *key, int64_t n, struct as_err *err)
{
    return tx_exec(t, &stmts[GANG_DEATHS], ARGS(ARG_KEY(key), arg_i64(n)), NULL, err);
}

as_status store_gang_ending(struct tx *t, const struct gang_key *key, bool is_ending,
                            struct as_err *err)
{
    return tx_exec(t, &stmts[GANG_ENDING], ARGS(ARG_KEY(key), arg_bool(is_ending)), NULL, err);
}

as_status store_gang_over_many(struct tx *t, const struct gang_over *gangs, size_t n,
                               struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    if (n == 0)
        return AS_OK;
    arrays_open(&x);
    for (size_t i = 0; i < n; i++) {
        array_i64(&x.c[0], gangs[i].key.sweep_key);
        array_i64(&x.c[1], gangs[i].key.number);
        array_i64(&x.c[2], gangs[i].key.attempt);
        array_str(&x.c[3], gangs[i].reason);
    }
    as_status st = arrays_close(&x, err);
    if (st == AS_OK)
        st = tx_exec(t, &stmts[GANG_END],
                     ARGS(arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2)), NULL, err);
    if (st != AS_OK)
        return st;
    return tx_exec(t, &stmts[GANG_SEATS_OVER],
                   ARGS(arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2), arg_array(&x, 3)),
                   NULL, err);
}

as_status store_gang_add(struct tx *t, int64_t sweep_key, const char *secret, struct gang_key *ret,
                         struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[GANG_ADD], ARGS(arg_i64(sweep_key), arg_str(secret)), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows != 1)
        return as_fail(err, AS_E_INTERNAL, "%d trials of a sweep began for one gang", r.rows);
    return read_key_row(&r, 0, NULL, ret, err);
}

/* ---- the reaper, and waiting requests ---- */

static as_status query_keys(struct tx *t, int which, struct arena *a, int64_t patience_ms,
                            struct gang_key **ret, size_t *ret_n, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[which], ARGS(arg_i64(patience_ms)), &r, err);
    if (st != AS_OK)
        return st;
    *ret_n = (size_t)r.rows;
    return read_key_rows(&r, r.rows, a, ret, err);
}

as_status store_gang_late(struct tx *t, struct arena *a, int64_t patience_ms, struct gang_key **ret,
                          size_t *ret_n, struct as_err *err)
{
    return query_keys(t, GANG_LATE, a, patience_ms, ret, ret_n, err);
}

as_status store_gang_stuck(struct tx *t, struct arena *a, int64_t patience_ms,
                           struct gang_key **ret, size_t *ret_n, struct as_err *err)
{
    return query_keys(t, GANG_STUCK, a, patience_ms, ret, ret_n, err);
}

as_status store_gang_marks(struct tx *t, struct arena *a, const int64_t *ids, size_t n,
                           struct gang_mark **ret, size_t *ret_n, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    arrays_open(&x);
    for (size_t i = 0; i < n; i++)
        array_i64(&x.c[0], ids[i]);
    as_status st = arrays_close(&x, err);
    if (st != AS_OK)
        return st;
    st = tx_query(t, &stmts[GANG_MARKS], ARGS(arg_array(&x, 0)), &r, err);
    if (st != AS_OK)
        return st;
    *ret_n = (size_t)r.rows;
    return read_mark_rows(&r, r.rows, a, ret, err);
}
