/* Table attempt_usage. */
#include "scheduler/store/usage_store.h"

#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"

enum { USAGE_PUT, USAGE_LIST };

#define USAGE_FIELDS(FIRST, NEXT)                                                                  \
    FIRST(i64, attempt, "u.attempt")                                                               \
    NEXT(i64, seat, "u.seat")                                                                      \
    NEXT(text, usage, "u.usage")
COLUMNS_WHOLE_ROW(struct usage_row, USAGE_FIELDS)
COLUMNS_READER(usage, struct usage_row, USAGE_FIELDS)
#define USAGE_COLUMNS COLUMNS_SQL(USAGE_FIELDS)

static const struct stmt stmts[] = {
    [USAGE_PUT] = {"usage_put",
                   "insert into attempt_usage (sweep_key, number, attempt, seat, usage) values "
                   "($1, $2, $3, $4, $5) on conflict (sweep_key, number, attempt, seat) do update "
                   "set usage = excluded.usage, updated_at = now()"},
    [USAGE_LIST] = {"usage_list",
                    "select " USAGE_COLUMNS " from attempt_usage u where u.sweep_key = $1 and "
                    "u.number = $2 and u.attempt = case when $3::int > 0 then $3 else (select "
                    "max(attempt) from attempt_usage where sweep_key = $1 and number = $2) end "
                    "order by u.seat"},
};
const struct stmt_set usage_stmts = {"usage", stmts, AS_ARRAY_LEN(stmts)};

as_status store_usage_put(struct tx *t, int64_t sweep_key, int64_t number, int64_t attempt,
                          int64_t seat, const char *usage, struct as_err *err)
{
    return tx_exec(
        t, &stmts[USAGE_PUT],
        ARGS(arg_i64(sweep_key), arg_i64(number), arg_i64(attempt), arg_i64(seat), arg_str(usage)),
        NULL, err);
}

as_status store_usage_list(struct tx *t, struct arena *a, int64_t sweep_key, int64_t number,
                           int64_t attempt, struct usage_row **ret, size_t *ret_n,
                           struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[USAGE_LIST],
                            ARGS(arg_i64(sweep_key), arg_i64(number), arg_i64(attempt)), &r, err);
    if (st != AS_OK || (st = read_usage_rows(&r, r.rows, a, ret, err)) != AS_OK)
        return st;
    *ret_n = (size_t)r.rows;
    return AS_OK;
}
