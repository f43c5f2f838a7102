/* Table token. A token is never deleted: a revoked one keeps its row, so that its id stays taken.
 * The statements compare times by the database's clock. The secret's digest leaves this file only
 * through store_token_secret(); lists and rows do not contain it. */
#include "scheduler/store/token_store.h"

#include <stdio.h>

#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"

enum {
    TOKEN_ADD,
    TOKEN_SECRETS,
    TOKEN_USED,
    TOKEN_GET,
    TOKEN_LIST,
    TOKEN_OTHER_ADMINS,
    TOKEN_REVOKE
};

static void column_role(struct reader *rd, token_role *ret)
{
    const char *word = read_view(rd);
    if (token_role_parse(word, ret, NULL) != AS_OK)
        rd->unknown = word;
}

#define TOKEN_FIELDS(FIRST, NEXT)                                                                  \
    FIRST(text, id, "id")                                                                          \
    NEXT(role, role, "role")                                                                       \
    NEXT(text, name, "name")                                                                       \
    NEXT(i64, created_ms, SQL_MS("created_at"))                                                    \
    NEXT(i64, expires_ms, SQL_MS("expires_at"))                                                    \
    NEXT(i64, last_used_ms, SQL_MS("last_used_at"))
COLUMNS_WHOLE_ROW(struct token_row, TOKEN_FIELDS)
COLUMNS_READER(token, struct token_row, TOKEN_FIELDS)
#define TOKEN_COLUMNS COLUMNS_SQL(TOKEN_FIELDS)

static void column_digest(struct reader *rd, char (*ret)[SHA256_HEX_SIZE])
{
    snprintf(*ret, sizeof *ret, "%s", read_view(rd));
}

#define SECRET_LEFT_MS                                                                             \
    "coalesce(ceil(extract(epoch from expires_at - now()) * 1000)::bigint, 9223372036854775807)"

#define SECRET_FIELDS(FIRST, NEXT)                                                                 \
    FIRST(text, id, "id")                                                                          \
    NEXT(role, role, "role")                                                                       \
    NEXT(digest, sha256, "sha256")                                                                 \
    NEXT(bool, valid, "revoked_at is null and (expires_at is null or expires_at > now())")         \
    NEXT(bool, note_use, "last_used_at is null or last_used_at < now() - interval '1 min'")        \
    NEXT(i64, left_ms, SECRET_LEFT_MS)
COLUMNS_READER(secret, struct token_secret, SECRET_FIELDS)
#define SECRET_COLUMNS COLUMNS_SQL(SECRET_FIELDS)

#define CREATED_US "(extract(epoch from created_at) * 1000000)::bigint"

static const struct stmt stmts[] = {
    [TOKEN_ADD] = {"token_add",
                   "insert into token (id, role, name, sha256, expires_at) values ($1, $2, $3, $4, "
                   "now() + $5::bigint * interval '1 ms') on conflict (id) do nothing"},
    [TOKEN_SECRETS] = {"token_secrets",
                       "select " SECRET_COLUMNS " from token where id = any($1::text[])"},
    [TOKEN_USED] = {"token_used",
                    "update token set last_used_at = now() where id in (select id from token "
                    "where id = any($1::text[]) order by id for update skip locked)"},
    [TOKEN_GET] = {"token_get",
                   "select " TOKEN_COLUMNS " from token where id = $1 and revoked_at is null"},
    [TOKEN_LIST] = {"token_list",
                    "select " TOKEN_COLUMNS ", " CREATED_US " from token where revoked_at is null "
                    "and ($1::bigint = 0 or (" CREATED_US ", id) < ($1, $2)) order by " CREATED_US
                    " desc, id desc limit $3"},
    [TOKEN_OTHER_ADMINS] = {"token_other_admins",
                            "select id from token where role = 'admin' and id <> $1 and revoked_at "
                            "is null and expires_at is null order by id for update"},
    [TOKEN_REVOKE] = {"token_revoke", "update token set revoked_at = now() where id = $1 and "
                                      "revoked_at is null"},
};
const struct stmt_set token_stmts = {"token", stmts, AS_ARRAY_LEN(stmts)};

as_status store_token_add(struct tx *t, const struct token_new *n, bool *ret_created,
                          struct as_err *err)
{
    int rows = 0;
    as_status st = tx_exec(t, &stmts[TOKEN_ADD],
                           ARGS(arg_str(n->id), arg_str(n->role), arg_str(n->name),
                                arg_str(n->sha256), arg_i64_or_null(n->ttl_ms > 0, n->ttl_ms)),
                           &rows, err);
    if (st == AS_OK)
        *ret_created = rows > 0;
    return st;
}

/* The argument of a list of ids; the text is in *b. */
static as_status make_ids(const char *const *ids, size_t n, struct str *b, struct as_err *err)
{
    array_open(b);
    for (size_t i = 0; i < n; i++)
        array_str(b, ids[i]);
    array_close(b);
    return str_check(b, err);
}

as_status store_token_secrets(struct tx *t, struct arena *a, const char *const *ids, size_t n,
                              struct token_secret **ret, size_t *ret_n, struct as_err *err)
{
    AS_AUTO(str_done) struct str list = {0};
    RESULT_AUTO r = {0};
    as_status st = make_ids(ids, n, &list, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[TOKEN_SECRETS], ARGS(arg_str(list.s)), &r, err);
    if (st == AS_OK)
        st = read_secret_rows(&r, r.rows, a, ret, err);
    if (st == AS_OK)
        *ret_n = (size_t)r.rows;
    return st;
}

as_status store_token_used(struct tx *t, const char *const *ids, size_t n, struct as_err *err)
{
    AS_AUTO(str_done) struct str list = {0};
    as_status st = make_ids(ids, n, &list, err);
    return st == AS_OK ? tx_exec(t, &stmts[TOKEN_USED], ARGS(arg_str(list.s)), NULL, err) : st;
}

as_status store_token_get(struct tx *t, struct arena *a, const char *id, struct token_row *ret,
                          struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[TOKEN_GET], ARGS(arg_str(id)), &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "there is no token '%.32s'", id);
    return read_token_row(&r, 0, a, ret, err);
}

as_status store_token_list(struct tx *t, struct arena *a, int64_t after_us, const char *after_id,
                           int64_t size, struct token_row **ret, size_t *ret_n,
                           int64_t *ret_next_us, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[TOKEN_LIST],
                            ARGS(arg_i64(after_us), arg_str(after_id), arg_i64(size + 1)), &r, err);
    if (st != AS_OK)
        return st;
    int n = r.rows > size ? (int)size : r.rows;
    if ((st = read_token_rows(&r, n, a, ret, err)) != AS_OK)
        return st;
    *ret_n = (size_t)n;
    *ret_next_us = r.rows > n ? result_i64(&r, n - 1, COLUMNS_COUNT(TOKEN_FIELDS)) : 0;
    return AS_OK;
}

as_status store_token_other_admins(struct tx *t, const char *id, int64_t *ret, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[TOKEN_OTHER_ADMINS], ARGS(arg_str(id)), &r, err);
    if (st == AS_OK)
        *ret = r.rows;
    return st;
}

as_status store_token_revoke(struct tx *t, const char *id, struct as_err *err)
{
    int n = 0;
    as_status st = tx_exec(t, &stmts[TOKEN_REVOKE], ARGS(arg_str(id)), &n, err);
    if (st == AS_OK && n == 0)
        return as_fail(err, AS_E_NOT_FOUND, "there is no token '%.32s'", id);
    return st;
}
