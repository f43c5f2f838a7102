/* Table token. */
#include "scheduler/store/token_store.h"

#include <stdio.h>

#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"

enum {
    TOKEN_ADD,
    TOKEN_SECRET,
    TOKEN_USED,
    TOKEN_GET,
    TOKEN_LIST,
    TOKEN_OTHER_ADMINS,
    TOKEN_REVOKE
};

#define TOKEN_COLUMNS                                                                              \
    "id, role, name, " SQL_MS("created_at") ", " SQL_MS("expires_at") ", " SQL_MS("last_used_at")

#define CREATED_US "(extract(epoch from created_at) * 1000000)::bigint"

static const struct stmt stmts[] = {
    [TOKEN_ADD] = {"token_add",
                   "insert into token (id, role, name, sha256, expires_at) values ($1, $2, $3, $4, "
                   "now() + $5::bigint * interval '1 ms') on conflict (id) do nothing"},
    [TOKEN_SECRET] =
        {"token_secret",
         "select role, sha256, revoked_at is null and (expires_at is null or "
         "expires_at > now()), last_used_at is null or last_used_at < now() - "
         "interval '1 min', coalesce(ceil(extract(epoch from expires_at - now()) * 1000)::bigint, "
         "9223372036854775807) from token where id = $1"},
    [TOKEN_USED] = {"token_used", "update token set last_used_at = now() where id = $1 and "
                                  "(last_used_at is null or last_used_at < now() - interval "
                                  "'1 min')"},
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
    struct args a = {0};
    args_str(&a, n->id);
    args_str(&a, n->role);
    args_str(&a, n->name);
    args_str(&a, n->sha256);
    args_i64_or_null(&a, n->ttl_ms > 0, n->ttl_ms);
    int rows = 0;
    as_status st = tx_exec(t, &stmts[TOKEN_ADD], &a, &rows, err);
    if (st == AS_OK)
        *ret_created = rows > 0;
    return st;
}

as_status store_token_secret(struct tx *t, const char *id, struct token_secret *ret,
                             struct as_err *err)
{
    struct args a = {0};
    args_str(&a, id);
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[TOKEN_SECRET], &a, &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "there is no token '%.32s'", id);
    struct reader rd;
    reader_init(&rd, &r, 0, NULL);
    st = token_role_parse(read_view(&rd), &ret->role, err);
    snprintf(ret->sha256, sizeof ret->sha256, "%s", read_view(&rd));
    ret->valid = read_bool(&rd);
    ret->note_use = read_bool(&rd);
    ret->left_ms = read_i64(&rd);
    return st;
}

as_status store_token_used(struct tx *t, const char *id, struct as_err *err)
{
    struct args a = {0};
    args_str(&a, id);
    return tx_exec(t, &stmts[TOKEN_USED], &a, NULL, err);
}

static as_status read_token(struct reader *rd, struct token_row *x, struct as_err *err)
{
    x->id = read_str(rd);
    as_status st = token_role_parse(read_view(rd), &x->role, err);
    x->name = read_str(rd);
    x->created_ms = read_i64(rd);
    x->expires_ms = read_i64(rd);
    x->last_used_ms = read_i64(rd);
    return st == AS_OK ? reader_check(rd, err) : st;
}

as_status store_token_get(struct tx *t, struct arena *a, const char *id, struct token_row *ret,
                          struct as_err *err)
{
    struct args args = {0};
    args_str(&args, id);
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[TOKEN_GET], &args, &r, err);
    if (st != AS_OK)
        return st;
    if (r.rows == 0)
        return as_fail(err, AS_E_NOT_FOUND, "there is no token '%.32s'", id);
    struct reader rd;
    reader_init(&rd, &r, 0, a);
    return read_token(&rd, ret, err);
}

as_status store_token_list(struct tx *t, struct arena *a, int64_t after_us, const char *after_id,
                           int64_t size, struct token_row **ret, size_t *ret_n,
                           int64_t *ret_next_us, struct as_err *err)
{
    struct args args = {0};
    args_i64(&args, after_us);
    args_str(&args, after_id);
    args_i64(&args, size + 1);
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[TOKEN_LIST], &args, &r, err);
    if (st != AS_OK)
        return st;
    int n = r.rows > size ? (int)size : r.rows;
    struct token_row *rows = arena_alloc(a, (size_t)n + 1, sizeof *rows);
    if (!rows)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    int64_t last_us = 0;
    for (int i = 0; i < n && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, a);
        st = read_token(&rd, &rows[i], err);
        last_us = read_i64(&rd);
    }
    *ret = rows;
    *ret_n = (size_t)n;
    *ret_next_us = r.rows > n ? last_us : 0;
    return st;
}

as_status store_token_other_admins(struct tx *t, const char *id, int64_t *ret, struct as_err *err)
{
    struct args args = {0};
    args_str(&args, id);
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &stmts[TOKEN_OTHER_ADMINS], &args, &r, err);
    if (st == AS_OK)
        *ret = r.rows;
    return st;
}

as_status store_token_revoke(struct tx *t, const char *id, struct as_err *err)
{
    struct args a = {0};
    args_str(&a, id);
    int n = 0;
    as_status st = tx_exec(t, &stmts[TOKEN_REVOKE], &a, &n, err);
    if (st == AS_OK && n == 0)
        return as_fail(err, AS_E_NOT_FOUND, "there is no token '%.32s'", id);
    return st;
}
