/* Table idempotency. */
#include "scheduler/store/idempotency_store.h"

#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"

enum { IDEM_ADD, IDEM_GET, IDEM_HOLD, IDEM_MADE, IDEM_ANSWER, IDEM_PRUNE };

#define IDEM_FIELDS(FIRST, NEXT)                                                                   \
    FIRST(bool, same_body, "body_sha256 = $3")                                                     \
    NEXT(text, sweep, "sweep")                                                                     \
    NEXT(i64, number, "coalesce(number, -1)")                                                      \
    NEXT(i64, status, "status")                                                                    \
    NEXT(text, body, "body")                                                                       \
    NEXT(text, location, "location")
COLUMNS_WHOLE_ROW(struct idem_row, IDEM_FIELDS)
COLUMNS_READER(idem, struct idem_row, IDEM_FIELDS)
#define IDEM_COLUMNS COLUMNS_SQL(IDEM_FIELDS)

static const struct stmt stmts[] = {
    [IDEM_ADD] = {"idempotency_add",
                  "insert into idempotency (scope, key, body_sha256) values ($1, "
                  "$2, $3) on conflict (scope, key) do nothing"},
    [IDEM_GET] = {"idempotency_get", "select " IDEM_COLUMNS " from idempotency where "
                                     "scope = $1 and key = $2"},
    [IDEM_HOLD] = {"idempotency_hold", "select " IDEM_COLUMNS " from idempotency where "
                                       "scope = $1 and key = $2 for key share"},
    [IDEM_MADE] = {"idempotency_made", "update idempotency set sweep = $4, number = $5 where scope "
                                       "= $1 and key = $2 and body_sha256 = $3"},
    [IDEM_ANSWER] =
        {"idempotency_answer",
         "insert into idempotency (scope, key, body_sha256, status, body, location) "
         "values ($1, $2, $3, $4, $5, $6) on conflict (scope, key) do update set status "
         "= excluded.status, body = excluded.body, location = excluded.location where "
         "idempotency.status is null and idempotency.body_sha256 = "
         "excluded.body_sha256"},
    [IDEM_PRUNE] = {"idempotency_prune",
                    "delete from idempotency where (scope, key) in (select scope, key from "
                    "idempotency where created_at < now() - interval '24 h' order by created_at "
                    "limit 1000)"},
};
const struct stmt_set idempotency_stmts = {"idempotency", stmts, AS_ARRAY_LEN(stmts)};

#define ARG_KEY(k) arg_str((k)->scope), arg_str((k)->key), arg_str((k)->body_sha256)

as_status store_idempotency_add(struct tx *t, const struct idem_key *k, bool *ret_new,
                                struct as_err *err)
{
    int n = 0;
    as_status st = tx_exec(t, &stmts[IDEM_ADD], ARGS(ARG_KEY(k)), &n, err);
    if (st == AS_OK)
        *ret_new = n > 0;
    return st;
}

static as_status read_key(struct tx *t, int stmt, struct arena *a, const struct idem_key *k,
                          struct idem_row *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[stmt], ARGS(ARG_KEY(k)), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "the idempotency key is new");
    return read_idem_row(&r, 0, a, ret, err);
}

as_status store_idempotency_get(struct tx *t, struct arena *a, const struct idem_key *k,
                                struct idem_row *ret, struct as_err *err)
{
    return read_key(t, IDEM_GET, a, k, ret, err);
}

as_status store_idempotency_hold(struct tx *t, struct arena *a, const struct idem_key *k,
                                 struct idem_row *ret, struct as_err *err)
{
    return read_key(t, IDEM_HOLD, a, k, ret, err);
}

as_status store_idempotency_made(struct tx *t, const struct idem_key *k, const char *sweep,
                                 int64_t number, struct as_err *err)
{
    return tx_exec(t, &stmts[IDEM_MADE],
                   ARGS(ARG_KEY(k), arg_str(sweep), arg_i64_or_null(number >= 0, number)), NULL,
                   err);
}

as_status store_idempotency_answer(struct tx *t, const struct idem_key *k, int64_t status,
                                   const char *body, const char *location, struct as_err *err)
{
    return tx_exec(t, &stmts[IDEM_ANSWER],
                   ARGS(ARG_KEY(k), arg_i64(status), arg_str(body), arg_str(location)), NULL, err);
}

as_status store_idempotency_prune(struct tx *t, int64_t *ret_removed, struct as_err *err)
{
    int n = 0;
    as_status st = tx_exec(t, &stmts[IDEM_PRUNE], NULL, &n, err);
    if (st == AS_OK)
        *ret_removed = n;
    return st;
}
