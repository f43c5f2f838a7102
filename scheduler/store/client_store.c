/* Table client. Times are the database's. */
#include "scheduler/store/client_store.h"

#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"

enum { CLIENT_LEASE, CLIENT_EXTEND, CLIENT_EXPIRED, CLIENT_LOSE };

#define CLIENT_FIELDS(FIRST, NEXT)                                                                 \
    FIRST(i64, sweep_key, "sweep_key")                                                             \
    NEXT(text, name, "name")
COLUMNS_WHOLE_ROW(struct client_head, CLIENT_FIELDS)
COLUMNS_READER(client, struct client_head, CLIENT_FIELDS)
#define CLIENT_COLUMNS COLUMNS_SQL(CLIENT_FIELDS)

static const struct stmt stmts[] = {
    [CLIENT_LEASE] =
        {"client_lease",
         "insert into client as c (sweep_key, name, lease_ms, expires_at, token) values "
         "($1, $2, $3::bigint, clock_timestamp() + $3::bigint * interval '1 ms', $4) "
         "on conflict (sweep_key, name) do update set lease_ms = excluded.lease_ms, "
         "expires_at = excluded.expires_at, token = excluded.token where c.token is "
         "null or c.token = excluded.token returning " SQL_MS("expires_at")},
    [CLIENT_EXTEND] = {"client_extend",
                       "update client set lease_ms = coalesce(nullif($3::bigint, 0), lease_ms), "
                       "expires_at = clock_timestamp() + coalesce(nullif($3::bigint, 0), lease_ms) "
                       "* interval '1 ms' where sweep_key = $1 and name = $2 returning " SQL_MS(
                           "expires_at")},
    [CLIENT_EXPIRED] = {"client_expired",
                        "select " CLIENT_COLUMNS " from client where expires_at < " SQL_TIME(
                            "$1") " "
                                  "order by sweep_key, name limit 1000"},
    [CLIENT_LOSE] = {"client_lose", "delete from client where sweep_key = $1 and name = $2 and "
                                    "expires_at < clock_timestamp()"},
};
const struct stmt_set client_stmts = {"client", stmts, AS_ARRAY_LEN(stmts)};

as_status store_client_lease(struct tx *t, int64_t sweep_key, const char *name, const char *token,
                             int64_t lease_ms, int64_t *ret_until_ms, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(
        t, &stmts[CLIENT_LEASE],
        ARGS(arg_i64(sweep_key), arg_str(name), arg_i64(lease_ms), arg_str(token)), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail_at(err, AS_E_CONFLICT, "/client",
                          "/client: '%.64s' asks with another token: choose another name, or wait "
                          "until its lease has ended",
                          name);
    *ret_until_ms = result_i64(&r, 0, 0);
    return AS_OK;
}

as_status store_client_extend(struct tx *t, int64_t sweep_key, const char *name, int64_t lease_ms,
                              int64_t *ret_until_ms, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[CLIENT_EXTEND],
                            ARGS(arg_i64(sweep_key), arg_str(name), arg_i64(lease_ms)), &r, err);
    if (st != AS_OK)
        return st;
    *ret_until_ms = r.rows == 0 ? 0 : result_i64(&r, 0, 0);
    return AS_OK;
}

as_status store_client_expired(struct tx *t, struct arena *a, int64_t as_of_ms,
                               struct client_head **ret, size_t *ret_n, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[CLIENT_EXPIRED], ARGS(arg_i64(as_of_ms)), &r, err);
    if (st != AS_OK)
        return st;
    if ((st = read_client_rows(&r, r.rows, a, ret, err)) != AS_OK)
        return st;
    *ret_n = (size_t)r.rows;
    return AS_OK;
}

as_status store_client_lose(struct tx *t, int64_t sweep_key, const char *name, bool *ret_done,
                            struct as_err *err)
{
    int n = 0;
    as_status st =
        tx_exec(t, &stmts[CLIENT_LOSE], ARGS(arg_i64(sweep_key), arg_str(name)), &n, err);
    if (st == AS_OK)
        *ret_done = n > 0;
    return st;
}
