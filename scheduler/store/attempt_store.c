/* Tables attempt and trial_log.
 *
 * An attempt is one run of a trial. Its row stays after the end, with its outcome. A claim is not a
 * row: the attempts with its claim_id are what it got. So a repeated claim reads the same attempts,
 * and only those that are still current. */
#include "scheduler/store/attempt_store.h"

#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/gang_sql_priv.h"
#include "scheduler/store/has_work_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/said_sql_priv.h"
#include "scheduler/store/refs_priv.h"
#include "scheduler/store/sql_rungs_priv.h"
#include "scheduler/store/sets_priv.h"

enum {
    ATTEMPT_END,
    ATTEMPT_SAY,
    ATTEMPT_REPORTED,
    ATTEMPT_FAILED_BEFORE,
    ATTEMPT_OF_CLIENT,
    ATTEMPT_HOLDER,
    ATTEMPT_LIST,
    ATTEMPT_LOG_GET,
    ATTEMPT_LOG_PUT,
    ATTEMPT_CLAIMED,
    ATTEMPT_CLAIM_COUNT
};

/* The trials, and ranks of trials, that a claim got and still holds. */
#define CLAIM_FROM                                                                                 \
    "from (select sweep_key, number, attempt, null::int as seat from attempt where runner = $1 "   \
    "and claim_id = $3 union all select sweep_key, number, attempt, seat from gang_seat where "    \
    "runner = $1 and claim_id = $3 and epoch = $2 and state " LIVE ") x join trial t on "          \
    "" SAME("t",                                                                                   \
            "x") " join sweep_base s on s.key = t.sweep_key left join gang g on x.seat is not "    \
                 "null and " SAME(                                                                 \
                     "g", "x") " where t.state = 'running' and (x.seat is not null or t.epoch = "  \
                               "$2)"

/* Those of the runners of a gang, if they are alike. */
#define GANG_WALLS                                                                                 \
    "(select min(r.walls::text)::json from gang_seat q join runner r on r.name = q.runner where "  \
    "" SAME("q", "x") " having min(r.walls::text) = max(r.walls::text))"

#define ATTEMPT_FIELDS(FIRST, NEXT)                                                                \
    FIRST(i64, attempt, "x.attempt")                                                               \
    NEXT(text, runner, "x.runner")                                                                 \
    NEXT(text, client, "x.client")                                                                 \
    NEXT(text, group, "x.group_id")                                                                \
    NEXT(i64, started_ms, SQL_MS("x.started_at"))                                                  \
    NEXT(i64, ended_ms, SQL_MS("x.ended_at"))                                                      \
    NEXT(text, outcome, "x.outcome")                                                               \
    NEXT(text, reason, "x.reason")                                                                 \
    NEXT(bool, has_exit_code, "x.exit_code is not null")                                           \
    NEXT(i64, exit_code, "x.exit_code")                                                            \
    NEXT(bool, has_ran, "x.phase = 'ended'")                                                       \
    NEXT(i64, ran_ms, "x.ran_ms")                                                                  \
    NEXT(text, walls, "case when x.gang then " GANG_WALLS " else x.walls end")                     \
    NEXT(i64, gang.ranks, "g.ranks")                                                               \
    NEXT(text, gang.state, "g.state")                                                              \
    NEXT(i64, gang.epoch, "g.epoch")                                                               \
    NEXT(i64, gang.deaths, "g.deaths")                                                             \
    NEXT(i64, gang.live,                                                                           \
         "(select count(*) from gang_seat q where " SAME("q", "g") " and q.state " LIVE ")")
COLUMNS_WHOLE_ROW(struct attempt_row, ATTEMPT_FIELDS)
COLUMNS_READER(attempt, struct attempt_row, ATTEMPT_FIELDS)
#define ATTEMPT_COLUMNS COLUMNS_SQL(ATTEMPT_FIELDS)

#define HOLDER_FIELDS(FIRST, NEXT)                                                                 \
    FIRST(i64, sweep_key, "s.key")                                                                 \
    NEXT(bool, is_there, "x.attempt is not null")                                                  \
    NEXT(text, client, "x.client")                                                                 \
    NEXT(text, secret, "x.secret")                                                                 \
    NEXT(bool, gang, "x.gang")                                                                     \
    NEXT(i64, near.step, SQL_RUNG_NEXT("s", "t"))                                                  \
    NEXT(i64, near.after, SQL_RUNG_AFTER("s", "t"))
COLUMNS_WHOLE_ROW(struct attempt_holder, HOLDER_FIELDS)
COLUMNS_READER(holder, struct attempt_holder, HOLDER_FIELDS)
#define HOLDER_COLUMNS COLUMNS_SQL(HOLDER_FIELDS)

#define LOG_FIELDS(FIRST, NEXT)                                                                    \
    FIRST(i64, attempt, "attempt")                                                                 \
    NEXT(text, text, "text")                                                                       \
    NEXT(bool, truncated, "truncated")
COLUMNS_WHOLE_ROW(struct log_row, LOG_FIELDS)
COLUMNS_READER(log, struct log_row, LOG_FIELDS)
#define LOG_COLUMNS COLUMNS_SQL(LOG_FIELDS)

/* The sweep's document only in the first row of a sweep: it may be large. */
#define DOCUMENT_ONCE                                                                              \
    "case when lag(s.key) over (order by s.key, t.number, x.seat) is distinct from s.key then "    \
    "s.document "                                                                                  \
    "end"

/* A rank that takes the place of a lost one gets what is left of the trial's time. */
#define TIMEOUT_LEFT                                                                               \
    "case when g.started_at is null or s.trial_timeout_ms is null then s.trial_timeout_ms else "   \
    "greatest(1, s.trial_timeout_ms - " SQL_MS("(clock_timestamp() - g.started_at)") ") end"

#define CLAIMED_FIELDS(FIRST, NEXT)                                                                \
    FIRST(i64, sweep_key, "s.key")                                                                 \
    NEXT(text, document, DOCUMENT_ONCE)                                                            \
    NEXT(i64, max_group, "s.max_group")                                                            \
    NEXT(bool, group_given, "s.group_given")                                                       \
    NEXT(bool, is_fork, "t.parent is not null")                                                    \
    NEXT(text, row.sweep, "s.id")                                                                  \
    NEXT(i64, row.number, "t.number")                                                              \
    NEXT(i64, row.attempt, "t.attempt")                                                            \
    NEXT(i64, row.seed, "t.seed")                                                                  \
    NEXT(text, row.params, "t.params")                                                             \
    NEXT(text, row.metric, "s.metric")                                                             \
    NEXT(bool, row.maximize, "s.goal = 'maximize'")                                                \
    NEXT(i64, row.gpus, "s.gpus")                                                                  \
    NEXT(i64, row.cpus, "s.cpus")                                                                  \
    NEXT(i64, row.timeout_ms, TIMEOUT_LEFT)                                                        \
    NEXT(i64, row.grace_ms, "s.grace_ms")                                                          \
    NEXT(bool, row.early_stopping, "s.rungs is not null")                                          \
    NEXT(bool, row.gives_ahead, GIVES_AHEAD_OF("s."))                                              \
    NEXT(text, row.group, "t.group_id")                                                            \
    NEXT(text, row.shape, "t.shape")                                                               \
    NEXT(i64, row.bytes_per_member, "t.bytes_per_member")                                          \
    NEXT(bool, row.is_rank, "x.seat is not null")                                                  \
    NEXT(i64, row.seat, "x.seat")                                                                  \
    NEXT(i64, row.ranks, "g.ranks")                                                                \
    NEXT(i64, row.min_ranks, "g.min_ranks")                                                        \
    NEXT(bool, row.elastic, "g.elastic")                                                           \
    NEXT(text, row.launch, "g.launch")
COLUMNS_READER(claimed, struct attempt_claimed, CLAIMED_FIELDS)
#define CLAIMED_COLUMNS COLUMNS_SQL(CLAIMED_FIELDS)

static const struct stmt stmts[] = {
    [ATTEMPT_END] =
        {"attempt_end",
         "update attempt x set ended_at = coalesce(x.ended_at, clock_timestamp()), started_at = "
         "case when l.waited > 0 then least(x.started_at + l.waited * interval '1 ms', "
         "clock_timestamp()) else x.started_at end, outcome = "
         "l.outcome, reported = l.reported, reason = l.reason, exit_code = l.exit_code, phase = "
         "case when l.ran_ms is null then x.phase else 'ended' end, ran_ms = coalesce(l.ran_ms, "
         "x.ran_ms), said_at = case when l.ran_ms is null then x.said_at else clock_timestamp() "
         "end from unnest($1::bigint[], $2::int[], $3::int[], $4::text[], $5::text[], "
         "$6::text[], "
         "$7::int[], $8::bigint[], $9::bigint[]) as l(sweep_key, number, attempt, outcome, "
         "reported, reason, exit_code, ran_ms, waited) where " SQL_JOINED_ATTEMPT(
             "x", "l") " and (x.ended_at is null or "
                       "(x.reported is null and l.reported is not null))"},
    [ATTEMPT_SAY] =
        {"attempt_say",
         "update attempt x set " SAID_SET " from unnest($2::text[], $3::int[], $4::int[], "
         "$5::text[], $6::bigint[]) as l(id, number, attempt, phase, ran_ms) join sweep_base s on "
         "s.id = l.id where x.sweep_key = s.key and x.number = l.number and x.attempt = l.attempt "
         "and x.runner = $1 and " SAID_IS_NEWS},
    [ATTEMPT_REPORTED] = {"attempt_reported", "select reported from attempt where sweep_key = $1 "
                                              "and number = $2 and attempt = $3"},
    [ATTEMPT_FAILED_BEFORE] = {"attempt_failed_before",
                               "select 1 from attempt where sweep_key = $1 and number = $2 and "
                               "attempt = $3 - 1 and outcome = 'retry' and coalesce(exit_code, 75) "
                               "not in (75, -9)"},
    [ATTEMPT_OF_CLIENT] = {"attempt_of_client",
                           "select coalesce(max(attempt) filter (where is_mine), 0), count(*) "
                           "filter (where not is_mine) from (select attempt, token is null or "
                           "$4::text is null or token = $4 as is_mine from attempt where sweep_key "
                           "= $1 and number = $2 and client = $3) x"},
    [ATTEMPT_HOLDER] = {"attempt_holder",
                        "select " HOLDER_COLUMNS
                        " from sweep_base s left join attempt x on x.sweep_key "
                        "= s.key and x.number = $2 and x.attempt = $3 left join trial t on "
                        "t.sweep_key = s.key and t.number = $2 where s.id = $1"},
    [ATTEMPT_LIST] = {"attempt_list",
                      "select " ATTEMPT_COLUMNS " from attempt x left join gang g on " SAME(
                          "g", "x") " where x.sweep_key = $1 and x.number = $2 order by "
                                    "x.attempt"},
    [ATTEMPT_LOG_GET] = {"attempt_log_get",
                         "select " LOG_COLUMNS " from trial_log where sweep_key = $1 and "
                         "number = $2 and ($3::int = 0 or attempt = $3) order by attempt desc "
                         "limit 1"},
    [ATTEMPT_LOG_PUT] = {"attempt_log_put",
                         "insert into trial_log (sweep_key, number, attempt, text, truncated) "
                         "values ($1, $2, $3, $4, $5) on conflict (sweep_key, number, attempt) do "
                         "update set text = excluded.text, truncated = excluded.truncated, "
                         "updated_at = now()"},
    [ATTEMPT_CLAIMED] = {"attempt_claimed", "select " CLAIMED_COLUMNS " " CLAIM_FROM
                                            " order by s.key, t.number, x.seat"},
    [ATTEMPT_CLAIM_COUNT] = {"attempt_claim_count", "select count(*), " SQL_SLOTS " " CLAIM_FROM},
};
const struct stmt_set attempt_stmts = {"attempt", stmts, AS_ARRAY_LEN(stmts)};

static void put_end(struct arrays *x, const struct attempt_ended *ended)
{
    const struct attempt_end *e = &ended->end;
    array_i64(&x->c[0], ended->sweep_key);
    array_i64(&x->c[1], ended->number);
    array_i64(&x->c[2], ended->attempt);
    array_str(&x->c[3], e->outcome);
    array_str(&x->c[4], e->reported);
    array_str(&x->c[5], e->reason);
    array_i64_or_null(&x->c[6], e->has_exit_code, e->exit_code);
    array_i64_or_null(&x->c[7], e->has_ran, e->ran_ms);
    array_i64(&x->c[8], e->waited_ms);
}

as_status store_attempt_end_many(struct tx *t, const struct attempt_ended *ends, size_t n,
                                 struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    if (n == 0)
        return AS_OK;
    arrays_open(&x);
    for (size_t i = 0; i < n; i++)
        put_end(&x, &ends[i]);
    as_status st = arrays_close(&x, err);
    if (st != AS_OK)
        return st;
    return tx_exec(t, &stmts[ATTEMPT_END],
                   ARGS(arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2), arg_array(&x, 3),
                        arg_array(&x, 4), arg_array(&x, 5), arg_array(&x, 6), arg_array(&x, 7),
                        arg_array(&x, 8)),
                   NULL, err);
}

/* What runners say, as parameters of a statement: $2 to $6. */
struct sayings {
    struct refs refs;
    struct str phases, ran;
};

static void sayings_done(struct sayings *c)
{
    refs_done(&c->refs);
    str_done(&c->phases);
    str_done(&c->ran);
}

static as_status sayings_format(struct sayings *c, const struct attempt_said *said, size_t n,
                                struct as_err *err)
{
    struct str *const lists[] = {&c->refs.ids, &c->refs.numbers, &c->refs.attempts, &c->phases,
                                 &c->ran};
    for (size_t k = 0; k < AS_ARRAY_LEN(lists); k++)
        array_open(lists[k]);
    for (size_t i = 0; i < n; i++) {
        array_str(&c->refs.ids, said[i].ref.sweep);
        array_i64(&c->refs.numbers, said[i].ref.number);
        array_i64(&c->refs.attempts, said[i].ref.attempt);
        array_str(&c->phases, run_phase_words[said[i].phase]);
        array_i64(&c->ran, said[i].ran_ms);
    }
    bool failed = false;
    for (size_t k = 0; k < AS_ARRAY_LEN(lists); k++) {
        array_close(lists[k]);
        failed |= lists[k]->failed;
    }
    return failed ? as_fail_nomem(err) : AS_OK;
}

as_status store_attempt_say(struct tx *t, const char *runner, const struct attempt_said *said,
                            size_t n, struct as_err *err)
{
    AS_AUTO(sayings_done) struct sayings c = {0};
    if (n == 0)
        return AS_OK;
    as_status st = sayings_format(&c, said, n, err);
    if (st != AS_OK)
        return st;
    return tx_exec(t, &stmts[ATTEMPT_SAY],
                   ARGS(arg_str(runner), ARG_REFS(&c.refs), arg_str(str_cstr(&c.phases)),
                        arg_str(str_cstr(&c.ran))),
                   NULL, err);
}

as_status store_attempt_failed_before(struct tx *t, int64_t sweep_key, int64_t number,
                                      int64_t attempt, bool *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[ATTEMPT_FAILED_BEFORE],
                            ARGS(arg_i64(sweep_key), arg_i64(number), arg_i64(attempt)), &r, err);
    if (st == AS_OK)
        *ret = r.rows > 0;
    return st;
}

as_status store_attempt_reported(struct tx *t, struct arena *a, int64_t sweep_key, int64_t number,
                                 int64_t attempt, const char **ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[ATTEMPT_REPORTED],
                            ARGS(arg_i64(sweep_key), arg_i64(number), arg_i64(attempt)), &r, err);
    *ret = NULL;
    if (st != AS_OK || r.rows == 0)
        return st;
    struct reader rd;
    reader_init(&rd, &r, 0, a);
    *ret = read_str(&rd);
    return reader_check(&rd, err);
}

as_status store_attempt_of_client(struct tx *t, int64_t sweep_key, int64_t number,
                                  const char *client, const char *token, int64_t *ret,
                                  bool *ret_anothers, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(
        t, &stmts[ATTEMPT_OF_CLIENT],
        ARGS(arg_i64(sweep_key), arg_i64(number), arg_str(client), arg_str(token)), &r, err);
    if (st != AS_OK)
        return st;
    *ret = result_i64(&r, 0, 0);
    *ret_anothers = *ret == 0 && result_i64(&r, 0, 1) > 0;
    return AS_OK;
}

as_status store_attempt_holder(struct tx *t, struct arena *a, const struct attempt_ref *ref,
                               struct attempt_holder *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[ATTEMPT_HOLDER],
                 ARGS(arg_str(ref->sweep), arg_i64(ref->number), arg_i64(ref->attempt)), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "there is no sweep '%.80s'", ref->sweep);
    return read_holder_row(&r, 0, a, ret, err);
}

as_status store_attempt_list(struct tx *t, struct arena *a, int64_t sweep_key, int64_t number,
                             struct attempt_row **ret, size_t *ret_n, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[ATTEMPT_LIST], ARGS(arg_i64(sweep_key), arg_i64(number)), &r, err);
    if (st != AS_OK)
        return st;
    if ((st = read_attempt_rows(&r, r.rows, a, ret, err)) != AS_OK)
        return st;
    *ret_n = (size_t)r.rows;
    return AS_OK;
}

as_status store_attempt_log_get(struct tx *t, struct arena *a, int64_t sweep_key, int64_t number,
                                int64_t attempt, struct log_row *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[ATTEMPT_LOG_GET],
                            ARGS(arg_i64(sweep_key), arg_i64(number), arg_i64(attempt)), &r, err);
    if (st != AS_OK)
        return st;
    *ret = (struct log_row){.text = ""};
    if (r.rows == 0)
        return AS_OK;
    return read_log_row(&r, 0, a, ret, err);
}

as_status store_attempt_log_put(struct tx *t, int64_t sweep_key, int64_t number, int64_t attempt,
                                const char *text, bool truncated, struct as_err *err)
{
    return tx_exec(t, &stmts[ATTEMPT_LOG_PUT],
                   ARGS(arg_i64(sweep_key), arg_i64(number), arg_i64(attempt), arg_str(text),
                        arg_bool(truncated)),
                   NULL, err);
}

as_status store_attempt_claimed(struct tx *t, struct arena *a, const char *runner, int64_t epoch,
                                const char *claim_id, struct attempt_claimed **ret, size_t *ret_n,
                                struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[ATTEMPT_CLAIMED],
                            ARGS(arg_str(runner), arg_i64(epoch), arg_str(claim_id)), &r, err);
    if (st != AS_OK)
        return st;
    if ((st = read_claimed_rows(&r, r.rows, a, ret, err)) != AS_OK)
        return st;
    *ret_n = (size_t)r.rows;
    return AS_OK;
}

as_status store_attempt_claim_count(struct tx *t, const char *runner, int64_t epoch,
                                    const char *claim_id, int64_t *ret_trials, int64_t *ret_slots,
                                    struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[ATTEMPT_CLAIM_COUNT],
                            ARGS(arg_str(runner), arg_i64(epoch), arg_str(claim_id)), &r, err);
    if (st != AS_OK)
        return st;
    *ret_trials = result_i64(&r, 0, 0);
    *ret_slots = result_i64(&r, 0, 1);
    return AS_OK;
}
