/* Table installation_key, and which attempts are current. */
#include "scheduler/store/attempt_token_store.h"

#include <stdio.h>

#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"

enum { ATTEMPT_KEY, ATTEMPT_CURRENT };

#define CURRENT_FIELDS(FIRST, NEXT)                                                                \
    FIRST(i64, place, "u.place - 1")                                                               \
    NEXT(text, sweep, "s.id")
COLUMNS_WHOLE_ROW(struct attempt_current, CURRENT_FIELDS)
COLUMNS_READER(current, struct attempt_current, CURRENT_FIELDS)
#define CURRENT_COLUMNS COLUMNS_SQL(CURRENT_FIELDS)

static const struct stmt stmts[] = {
    [ATTEMPT_KEY] = {"attempt_key", "select key from installation_key where name = 'attempt'"},
    [ATTEMPT_CURRENT] =
        {"attempt_current",
         "select " CURRENT_COLUMNS " from unnest($1::bigint[], $2::int[], "
         "$3::int[]) with ordinality as u(sweep_key, number, attempt, place) join "
         "trial t on " SQL_JOINED("t.sweep_key", "u.sweep_key") " and " //
         SQL_JOINED_NEXT(
             "t.number",
             "u.number") " join sweep_base s on s.key = "
                         "t.sweep_key where t.state = 'running' and t.attempt = u.attempt"},
};
const struct stmt_set attempt_token_stmts = {"attempt_token", stmts, AS_ARRAY_LEN(stmts)};

as_status store_attempt_key(struct tx *t, char ret[SHA256_HEX_SIZE], struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[ATTEMPT_KEY], NULL, &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "the table installation_key has no key 'attempt'");
    struct reader rd;
    reader_init(&rd, &r, 0, &a);
    (void)snprintf(ret, SHA256_HEX_SIZE, "%s", read_view(&rd));
    return reader_check(&rd, err);
}

as_status store_attempt_current(struct tx *t, struct arena *a, const struct attempt_name *v,
                                size_t n, struct attempt_current **ret, size_t *ret_n,
                                struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    arrays_open(&x);
    for (size_t i = 0; i < n; i++) {
        array_i64(&x.c[0], v[i].sweep_key);
        array_i64(&x.c[1], v[i].number);
        array_i64(&x.c[2], v[i].attempt);
    }
    as_status st = arrays_close(&x, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[ATTEMPT_CURRENT],
                      ARGS(arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2)), &r, err);
    if (st == AS_OK)
        st = read_current_rows(&r, r.rows, a, ret, err);
    if (st == AS_OK)
        *ret_n = (size_t)r.rows;
    return st;
}
