/* Tables attempt and trial_log. */
#include "scheduler/store/attempt_store.h"

#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"

enum {
    ATTEMPT_END,
    ATTEMPT_REPORTED,
    ATTEMPT_OF_CLIENT,
    ATTEMPT_LIST,
    ATTEMPT_LOG_GET,
    ATTEMPT_LOG_PUT,
    ATTEMPT_CLAIMED,
    ATTEMPT_CLAIM_COUNT
};

/* What a claim got and still holds. */
#define CLAIM_FROM                                                                                 \
    "from attempt x join trial t on t.sweep_key = x.sweep_key and t.number = x.number and "        \
    "t.attempt = x.attempt join sweep s on s.key = t.sweep_key where x.runner = $1 and "           \
    "x.claim_id = $3 and t.state = 'running' and t.epoch = $2"

static const struct stmt stmts[] = {
    [ATTEMPT_END] = {"attempt_end",
                     "update attempt set ended_at = coalesce(ended_at, clock_timestamp()), outcome "
                     "= $4, reported = $5, reason = $6, exit_code = $7 where sweep_key = $1 and "
                     "number = $2 and attempt = $3 and (ended_at is null or (reported is null and "
                     "$5::text is not null))"},
    [ATTEMPT_REPORTED] = {"attempt_reported", "select reported from attempt where sweep_key = $1 "
                                              "and number = $2 and attempt = $3"},
    [ATTEMPT_OF_CLIENT] = {"attempt_of_client",
                           "select coalesce(max(attempt), 0) from attempt where sweep_key = $1 and "
                           "number = $2 and client = $3"},
    [ATTEMPT_LIST] =
        {"attempt_list",
         "select attempt, runner, client, group_id, " SQL_MS("started_at") ", " SQL_MS(
             "ended_at") ", outcome, reason, exit_code is not null, exit_code from attempt where "
                         "sweep_key = $1 and number = $2 order by attempt"},
    [ATTEMPT_LOG_GET] = {"attempt_log_get",
                         "select attempt, text, truncated from trial_log where sweep_key = $1 and "
                         "number = $2 and ($3::int = 0 or attempt = $3) order by attempt desc "
                         "limit 1"},
    [ATTEMPT_LOG_PUT] = {"attempt_log_put",
                         "insert into trial_log (sweep_key, number, attempt, text, truncated) "
                         "values ($1, $2, $3, $4, $5) on conflict (sweep_key, number, attempt) do "
                         "update set text = excluded.text, truncated = excluded.truncated, "
                         "updated_at = now()"},
    [ATTEMPT_CLAIMED] =
        {"attempt_claimed",
         "select s.key, case when lag(s.key) over (order by s.key, t.number) is distinct from "
         "s.key "
         "then s.document end, s.max_group, s.group_given, s.id, t.number, t.attempt, t.seed, "
         "t.params, s.metric, "
         "s.goal = 'maximize', s.gpus, s.trial_timeout_ms, s.grace_ms, t.group_id, t.shape, "
         "t.bytes_per_member " CLAIM_FROM " order by s.key, t.number"},
    [ATTEMPT_CLAIM_COUNT] = {"attempt_claim_count", "select count(*), " SQL_SLOTS " " CLAIM_FROM},
};
const struct stmt_set attempt_stmts = {"attempt", stmts, AS_ARRAY_LEN(stmts)};

as_status store_attempt_end(struct tx *t, int64_t sweep_key, int64_t number, int64_t attempt,
                            const struct attempt_end *e, struct as_err *err)
{
    return tx_exec(t, &stmts[ATTEMPT_END],
                   ARGS(arg_i64(sweep_key), arg_i64(number), arg_i64(attempt), arg_str(e->outcome),
                        arg_str(e->reported), arg_str(e->reason),
                        arg_i64_or_null(e->has_exit_code, e->exit_code)),
                   NULL, err);
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
                                  const char *client, int64_t *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[ATTEMPT_OF_CLIENT],
                            ARGS(arg_i64(sweep_key), arg_i64(number), arg_str(client)), &r, err);
    if (st != AS_OK)
        return st;
    struct reader rd;
    reader_init(&rd, &r, 0, NULL);
    *ret = read_i64(&rd);
    return AS_OK;
}

as_status store_attempt_list(struct tx *t, struct arena *a, int64_t sweep_key, int64_t number,
                             struct attempt_row **ret, size_t *ret_n, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[ATTEMPT_LIST], ARGS(arg_i64(sweep_key), arg_i64(number)), &r, err);
    if (st != AS_OK)
        return st;
    struct attempt_row *rows = arena_alloc(a, (size_t)r.rows + 1, sizeof *rows);
    if (!rows)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, a);
        rows[i].attempt = read_i64(&rd);
        rows[i].runner = read_str(&rd);
        rows[i].client = read_str(&rd);
        rows[i].group = read_str(&rd);
        rows[i].started_ms = read_i64(&rd);
        rows[i].ended_ms = read_i64(&rd);
        rows[i].outcome = read_str(&rd);
        rows[i].reason = read_str(&rd);
        rows[i].has_exit_code = read_bool(&rd);
        rows[i].exit_code = read_i64(&rd);
        st = reader_check(&rd, err);
    }
    *ret = rows;
    *ret_n = (size_t)r.rows;
    return st;
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
    struct reader rd;
    reader_init(&rd, &r, 0, a);
    ret->attempt = read_i64(&rd);
    ret->text = read_str(&rd);
    ret->truncated = read_bool(&rd);
    return reader_check(&rd, err);
}

as_status store_attempt_log_put(struct tx *t, int64_t sweep_key, int64_t number, int64_t attempt,
                                const char *text, bool truncated, struct as_err *err)
{
    return tx_exec(t, &stmts[ATTEMPT_LOG_PUT],
                   ARGS(arg_i64(sweep_key), arg_i64(number), arg_i64(attempt), arg_str(text),
                        arg_bool(truncated)),
                   NULL, err);
}

static void read_claimed(struct reader *rd, struct attempt_claimed *c)
{
    c->sweep_key = read_i64(rd);
    c->document = read_str(rd);
    c->max_group = read_i64(rd);
    c->group_given = read_bool(rd);
    c->row.sweep = read_str(rd);
    c->row.number = read_i64(rd);
    c->row.attempt = read_i64(rd);
    c->row.seed = read_i64(rd);
    c->row.params = read_str(rd);
    c->row.metric = read_str(rd);
    c->row.maximize = read_bool(rd);
    c->row.gpus = read_i64(rd);
    c->row.timeout_ms = read_i64(rd);
    c->row.grace_ms = read_i64(rd);
    c->row.group = read_str(rd);
    c->row.shape = read_str(rd);
    c->row.bytes_per_member = read_i64(rd);
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
    struct attempt_claimed *rows = arena_alloc(a, (size_t)r.rows + 1, sizeof *rows);
    if (!rows)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, a);
        read_claimed(&rd, &rows[i]);
        st = reader_check(&rd, err);
    }
    *ret = rows;
    *ret_n = (size_t)r.rows;
    return st;
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
    struct reader rd;
    reader_init(&rd, &r, 0, NULL);
    *ret_trials = read_i64(&rd);
    *ret_slots = read_i64(&rd);
    return AS_OK;
}
