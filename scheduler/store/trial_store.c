/* Heads of trials: the columns that decisions need, and the locks of their rows.
 *
 * The other files about trials: trial_move_store (changes of state), trial_held_store (what runners
 * hold), trial_row_store (what the API shows). */
#include "scheduler/store/trial_store.h"

#include "scheduler/store/gang_sql_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/trial_store_priv.h"
#include "scheduler/store/values_priv.h"

enum {
    TRIAL_HEAD,
    TRIAL_LOCK,
    TRIAL_LOCK_EACH,
    TRIAL_LOCK_FREE,
    TRIAL_LOCK_MANY,
    TRIAL_LOCK_LIVE,
    TRIAL_ENDED,
    TRIAL_OF_CLIENT,
    TRIAL_OVERDUE,
    TRIAL_IS_OVERDUE,
    TRIAL_MEASURED
};

/* The running trials that are past their trial_timeout, as of $1 (Unix milliseconds), with $2
 * milliseconds of patience. The time counts from when the process began, if its runner said so,
 * else from the claim. What the runner prepares, or says ended in time, is never overdue. */
#define OVERDUE_FROM                                                                               \
    "from trial t join sweep_base s on s.key = t.sweep_key join attempt x on x.sweep_key = "       \
    "t.sweep_key and x.number = t.number and x.attempt = t.attempt left join gang g on t.gang "    \
    "and " SAME(                                                                                   \
        "g", "t") " where t.state = 'running' "                                                    \
                  "and s.state in ('running', 'paused') and s.trial_timeout_ms is not null and "   \
                  "coalesce(case "                                                                 \
                  "x.phase when 'preparing' then false when 'ended' then x.ran_ms > "              \
                  "s.trial_timeout_ms end, "                                                       \
                  "true) and (not t.gang or g.started_at is not null and not exists (select from " \
                  "gang_seat q "                                                                   \
                  "where " SAME(                                                                   \
                      "q",                                                                         \
                      "g") " and q.is_member and q.phase = 'ended' and q.ran_ms <= "               \
                           "s.trial_timeout_ms and q.seat = (select min(m.seat) from gang_seat m " \
                           "where "                                                                \
                           "" SAME("m",                                                            \
                                   "g") " and m.is_member))) and greatest(t.claimed_at, "          \
                                        "g.started_at, x.said_at - "                               \
                                        "x.ran_ms * interval '1 ms') < " SQL_TIME(                 \
                                            "$1") " - (s.trial_timeout_ms + s.grace_ms + $2) * "   \
                                                  "interval '1 ms'"

#define LOCK_EACH(wait)                                                                            \
    EACH_TRIAL("select " TRIAL_HEAD_COLUMNS                                                        \
               " from trial t where t.sweep_key = u.key and t.number = u.number "                  \
               "for no key update of t " wait)

static const struct stmt stmts[] = {
    [TRIAL_HEAD] = {"trial_head", "select " TRIAL_HEAD_COLUMNS
                                  " from trial t where sweep_key = $1 and number = $2"},
    [TRIAL_LOCK] = {"trial_lock", "select " TRIAL_HEAD_COLUMNS
                                  " from trial t where sweep_key = $1 and number = $2 "
                                  "for no key update"},
    [TRIAL_LOCK_EACH] = {"trial_lock_each", LOCK_EACH("")},
    [TRIAL_LOCK_FREE] = {"trial_lock_free", LOCK_EACH("skip locked")},
    [TRIAL_LOCK_MANY] = {"trial_lock_many",
                         "select " TRIAL_HEAD_COLUMNS
                         " from trial t where t.sweep_key = $1 and t.number "
                         "= any ($2::int[]) order by t.number for no key update"},
    [TRIAL_LOCK_LIVE] = {"trial_lock_live",
                         "select " TRIAL_HEAD_COLUMNS
                         " from trial t where sweep_key = $1 and number > "
                         "$2 and state in ('queued', 'running', 'paused') order by number limit $3 "
                         "for no key update"},
    [TRIAL_ENDED] = {"trial_ended", /* never of completed ones */
                     "select " TRIAL_HEAD_COLUMNS
                     " from trial t where sweep_key = $1 and state = $2 and "
                     "state <> 'completed' and "
                     "origin <> 'known' order by number limit $3"},
    [TRIAL_OF_CLIENT] = {"trial_of_client", "select " TRIAL_HEAD_COLUMNS
                                            " from trial t where sweep_key = $1 and client = "
                                            "$2 and state = 'running' order by number limit $3"},
    [TRIAL_OVERDUE] = {"trial_overdue", "select " TRIAL_HEAD_COLUMNS " " OVERDUE_FROM
                                        " order by t.sweep_key, t.number limit 1000"},
    [TRIAL_IS_OVERDUE] = {"trial_is_overdue", "select " TRIAL_HEAD_COLUMNS " " OVERDUE_FROM
                                              " and t.sweep_key = $3 and t.number = $4"},
    [TRIAL_MEASURED] = {"trial_measured",
                        "select (select array_agg((t.metrics ->> u.name)::float8 order by u.place) "
                        "from unnest($3::text[]) with ordinality as u(name, place)) from trial t "
                        "where t.sweep_key = $1 and t.number = $2"},
};
const struct stmt_set trial_stmts = {"trial", stmts, AS_ARRAY_LEN(stmts)};

as_status trial_heads_read(const struct result *r, struct arena *a, struct trial_list_heads *ret,
                           struct as_err *err)
{
    as_status st = read_trial_head_rows(r, r->rows, a, &ret->rows, err);
    if (st == AS_OK)
        ret->n = (size_t)r->rows;
    return st;
}

static as_status query_head(struct tx *t, int which, struct arena *a, int64_t sweep_key,
                            int64_t number, struct trial_head *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[which], ARGS(arg_i64(sweep_key), arg_i64(number)), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "the sweep has no trial %lld", (long long)number);
    return read_trial_head_row(&r, 0, a, ret, err);
}

as_status store_trial_head(struct tx *t, struct arena *a, int64_t sweep_key, int64_t number,
                           struct trial_head *ret, struct as_err *err)
{
    return query_head(t, TRIAL_HEAD, a, sweep_key, number, ret, err);
}

as_status store_trial_lock(struct tx *t, struct arena *a, int64_t sweep_key, int64_t number,
                           struct trial_head *ret, struct as_err *err)
{
    return query_head(t, TRIAL_LOCK, a, sweep_key, number, ret, err);
}

as_status trial_keys_format(struct arrays *x, const struct trial_key *keys, size_t n,
                            struct as_err *err)
{
    arrays_open(x);
    for (size_t i = 0; i < n; i++) {
        array_i64(&x->c[0], keys[i].sweep_key);
        array_i64(&x->c[1], keys[i].number);
    }
    return arrays_close(x, err);
}

as_status trial_lock_send(struct tx *t, const struct trial_key *keys, size_t n, bool is_patient,
                          struct result *ret, struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    as_status st = trial_keys_format(&x, keys, n, err);
    return st == AS_OK ? tx_send(t, &stmts[is_patient ? TRIAL_LOCK_EACH : TRIAL_LOCK_FREE],
                                 ARGS(arg_array(&x, 0), arg_array(&x, 1)), ret, err)
                       : st;
}

as_status trial_lock_read(const struct result *r, struct arena *a, size_t n, struct trial_head *ret,
                          bool *ret_locked, struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; i < n; i++)
        ret_locked[i] = false;
    for (int i = 0; i < r->rows && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, r, i, a);
        int64_t place = read_i64(&rd);
        read_trial_head(&rd, &ret[place]);
        ret_locked[place] = true;
        st = reader_check(&rd, err);
    }
    return st;
}

as_status store_trial_lock_live(struct tx *t, struct arena *a, int64_t sweep_key, int64_t after,
                                int64_t limit, struct trial_list_heads *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[TRIAL_LOCK_LIVE],
                            ARGS(arg_i64(sweep_key), arg_i64(after), arg_i64(limit)), &r, err);
    return st == AS_OK ? trial_heads_read(&r, a, ret, err) : st;
}

as_status store_trial_lock_many(struct tx *t, struct arena *a, const struct trial_head *heads,
                                size_t n, struct trial_list_heads *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    AS_AUTO(str_done) struct str numbers = {0};
    *ret = (struct trial_list_heads){0};
    if (n == 0)
        return AS_OK;
    array_open(&numbers);
    for (size_t i = 0; i < n; i++)
        array_i64(&numbers, heads[i].number);
    array_close(&numbers);
    as_status st = str_check(&numbers, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[TRIAL_LOCK_MANY],
                      ARGS(arg_i64(heads[0].sweep_key), arg_str(str_cstr(&numbers))), &r, err);
    return st == AS_OK ? trial_heads_read(&r, a, ret, err) : st;
}

as_status store_trial_ended(struct tx *t, struct arena *a, int64_t sweep_key, trial_state state,
                            int64_t limit, struct trial_list_heads *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(
        t, &stmts[TRIAL_ENDED],
        ARGS(arg_i64(sweep_key), arg_str(trial_state_format(state)), arg_i64(limit)), &r, err);
    return st == AS_OK ? trial_heads_read(&r, a, ret, err) : st;
}

as_status store_trial_of_client(struct tx *t, struct arena *a, int64_t sweep_key,
                                const char *client, int64_t limit, struct trial_list_heads *ret,
                                struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[TRIAL_OF_CLIENT],
                            ARGS(arg_i64(sweep_key), arg_str(client), arg_i64(limit)), &r, err);
    return st == AS_OK ? trial_heads_read(&r, a, ret, err) : st;
}

as_status store_trial_overdue(struct tx *t, struct arena *a, int64_t as_of_ms, int64_t slack_ms,
                              struct trial_list_heads *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[TRIAL_OVERDUE], ARGS(arg_i64(as_of_ms), arg_i64(slack_ms)), &r, err);
    return st == AS_OK ? trial_heads_read(&r, a, ret, err) : st;
}

as_status store_trial_is_overdue(struct tx *t, int64_t sweep_key, int64_t number, int64_t as_of_ms,
                                 int64_t slack_ms, bool *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(
        t, &stmts[TRIAL_IS_OVERDUE],
        ARGS(arg_i64(as_of_ms), arg_i64(slack_ms), arg_i64(sweep_key), arg_i64(number)), &r, err);
    if (st == AS_OK)
        *ret = r.rows > 0;
    return st;
}

as_status store_trial_measured(struct tx *t, int64_t sweep_key, int64_t number,
                               const char *const *metrics, size_t n, double *ret, bool *ret_has,
                               struct as_err *err)
{
    AS_AUTO(str_done) struct str names = {0};
    as_status st = array_of_names(&names, metrics, n, err);
    if (st != AS_OK)
        return st;
    RESULT_AUTO r = {0};
    st = tx_query(t, &stmts[TRIAL_MEASURED],
                  ARGS(arg_i64(sweep_key), arg_i64(number), arg_str(str_cstr(&names))), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "the sweep has no trial %lld", (long long)number);
    struct reader rd;
    reader_init(&rd, &r, 0, NULL);
    return read_values(&rd, n, ret, ret_has, err);
}
