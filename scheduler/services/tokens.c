/* Bearer tokens. The secret has 43 characters of 62, about 256 bits, so one SHA-256 is enough. */
#include "scheduler/services/tokens.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/str.h"
#include "scheduler/services/cursor_priv.h"
#include "scheduler/store/token_store.h"

#define TOKEN_ID_CHARS 12
#define TOKEN_SECRET_CHARS 43
#define TOKEN_NAME_MAX 80

/* n characters of the first `base` of digits and letters, each equally likely. */
static void random_text(char *ret, size_t n, unsigned base)
{
    static const char chars[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    unsigned limit = 256 / base * base; /* bytes from here up would favour the first characters */
    for (size_t i = 0; i < n;) {
        uint8_t bytes[64];
        random_bytes(bytes, sizeof bytes);
        for (size_t k = 0; k < sizeof bytes && i < n; k++) {
            if (bytes[k] < limit)
                ret[i++] = chars[bytes[k] % base];
        }
    }
    ret[n] = '\0';
}

void token_make(token_role role, char ret_text[TOKEN_TEXT_SIZE])
{
    char id[TOKEN_ID_CHARS + 1], secret[TOKEN_SECRET_CHARS + 1];
    random_text(id, TOKEN_ID_CHARS, 36);
    random_text(secret, TOKEN_SECRET_CHARS, 62);
    snprintf(ret_text, TOKEN_TEXT_SIZE, "assay_%s_%s_%s", token_role_format(role), id, secret);
}

/* The pieces of a token's text. */
struct parts {
    token_role role;
    char id[33];
    char sha256[SHA256_HEX_SIZE]; /* of the secret */
};

static as_status parts_of(const char *text, struct parts *ret, struct as_err *err)
{
    char role[8], id[33], secret[65];
    int end = 0;
    if (sscanf(text, "assay_%7[a-z]_%32[a-z0-9]_%64[0-9a-zA-Z]%n", role, id, secret, &end) != 3 ||
        text[end] != '\0' || strlen(id) < 4 || strlen(secret) < 20)
        return as_fail(err, AS_E_INVAL,
                       "this is not the text of a token: expected "
                       "assay_ROLE_ID_SECRET");
    as_status st = token_role_parse(role, &ret->role, err);
    if (st == AS_OK)
        st = sha256_of(secret, strlen(secret), ret->sha256, err);
    snprintf(ret->id, sizeof ret->id, "%s", id);
    return st;
}

/* Create and import. */

struct add_arg {
    struct arena *a;
    struct token_new n;
    bool created;
    struct token_row row;
    struct token_secret secret;
};

static as_status tx_add(struct tx *t, void *p, struct as_err *err)
{
    struct add_arg *arg = p;
    as_status st = store_token_add(t, &arg->n, &arg->created, err);
    if (st == AS_OK && arg->created)
        st = store_token_get(t, arg->a, arg->n.id, &arg->row, err);
    else if (st == AS_OK)
        st = store_token_secret(t, arg->n.id, &arg->secret, err);
    return st;
}

static as_status name_check(const char *name, struct as_err *err)
{
    if (name && (strlen(name) > TOKEN_NAME_MAX || !as_utf8_valid(name, strlen(name))))
        return as_fail_at(err, AS_E_INVAL, "/name", "expected UTF-8 of at most %d bytes",
                          TOKEN_NAME_MAX);
    return AS_OK;
}

as_status token_create(struct store *db, struct arena *a, token_role role, const char *name,
                       int64_t ttl_ms, struct token_row *ret, char ret_text[TOKEN_TEXT_SIZE],
                       struct as_err *err)
{
    char text[TOKEN_TEXT_SIZE];
    struct parts parts;
    as_status st = name_check(name, err);
    if (st == AS_OK && ttl_ms < 0)
        return as_fail_at(err, AS_E_INVAL, "/ttl", "a time to live cannot be negative");
    token_make(role, text);
    if (st == AS_OK)
        st = parts_of(text, &parts, err);
    if (st != AS_OK)
        return st;
    struct add_arg arg = {.a = a,
                          .n = {.id = parts.id,
                                .role = token_role_format(role),
                                .name = name,
                                .sha256 = parts.sha256,
                                .ttl_ms = ttl_ms}};
    st = store_run(db, TX_WRITE, tx_add, &arg, err);
    if (st == AS_OK && !arg.created) /* 62 random bits met again */
        return as_fail(err, AS_E_UNAVAILABLE, "the new token's id is taken: try again");
    if (st != AS_OK)
        return st;
    *ret = arg.row;
    memcpy(ret_text, text, TOKEN_TEXT_SIZE);
    return AS_OK;
}

as_status token_import(struct store *db, const char *text, const char *name, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct parts parts;
    as_status st = parts_of(text, &parts, err);
    if (st == AS_OK)
        st = name_check(name, err);
    if (st != AS_OK)
        return st;
    struct add_arg arg = {.a = &a,
                          .n = {.id = parts.id,
                                .role = token_role_format(parts.role),
                                .name = name,
                                .sha256 = parts.sha256}};
    st = store_run(db, TX_WRITE, tx_add, &arg, err);
    if (st != AS_OK || arg.created)
        return st;
    if (!arg.secret.valid || arg.secret.role != parts.role ||
        !hash_equal(arg.secret.sha256, parts.sha256, SHA256_HEX_SIZE))
        return as_fail(err, AS_E_CONFLICT,
                       "token %s was revoked, has expired, or is known with another secret",
                       parts.id);
    return AS_OK;
}

/* Verify. */

struct verify_arg {
    const char *id;
    struct token_secret secret;
};

static as_status tx_secret(struct tx *t, void *p, struct as_err *err)
{
    struct verify_arg *arg = p;
    return store_token_secret(t, arg->id, &arg->secret, err);
}

static as_status tx_used(struct tx *t, void *p, struct as_err *err)
{
    struct verify_arg *arg = p;
    return store_token_used(t, arg->id, err);
}

static as_status denied(struct as_err *err)
{
    return as_fail(err, AS_E_DENIED, "the token is not valid: unknown, expired or revoked");
}

as_status token_verify(struct store *db, const char *text, struct principal *ret,
                       struct as_err *err)
{
    struct parts parts;
    if (parts_of(text, &parts, NULL) != AS_OK)
        return denied(err);
    struct verify_arg arg = {.id = parts.id};
    as_status st = store_run(db, TX_READ, tx_secret, &arg, err);
    if (st == AS_E_NOT_FOUND)
        return denied(err);
    if (st != AS_OK)
        return st;
    bool same = hash_equal(arg.secret.sha256, parts.sha256, SHA256_HEX_SIZE);
    if (!same || !arg.secret.valid || arg.secret.role != parts.role)
        return denied(err);
    if (arg.secret.note_use)
        st = store_run(db, TX_SOFT, tx_used, &arg, err);
    if (st != AS_OK)
        return st;
    snprintf(ret->id, sizeof ret->id, "%s", parts.id);
    ret->role = arg.secret.role;
    ret->left_ms = arg.secret.left_ms;
    return AS_OK;
}

/* List and revoke. */

struct list_arg {
    struct arena *a;
    int64_t after_us, size, next_us;
    const char *after_id;
    struct token_page page;
};

static as_status tx_list(struct tx *t, void *p, struct as_err *err)
{
    struct list_arg *arg = p;
    return store_token_list(t, arg->a, arg->after_us, arg->after_id, arg->size, &arg->page.rows,
                            &arg->page.n, &arg->next_us, err);
}

as_status token_list(struct store *db, struct arena *a, const struct page_req *page,
                     struct token_page *ret, struct as_err *err)
{
    struct list_arg arg = {.a = a, .after_id = ""};
    const char *f[2];
    as_status st = page_size(page, &arg.size, err);
    if (st == AS_OK && page->cursor) {
        st = cursor_read(a, page->cursor, "tokens", f, 2, err);
        if (st == AS_OK)
            st = cursor_i64(f[0], &arg.after_us, err);
        if (st == AS_OK)
            arg.after_id = f[1];
    }
    if (st == AS_OK)
        st = store_run(db, TX_READ, tx_list, &arg, err);
    if (st == AS_OK && arg.next_us) {
        char us[24];
        snprintf(us, sizeof us, "%" PRId64, arg.next_us);
        const char *const place[] = {us, arg.page.rows[arg.page.n - 1].id};
        arg.page.next_cursor = cursor_make(a, "tokens", place, 2);
        if (!arg.page.next_cursor)
            return as_fail_nomem(err);
    }
    if (st == AS_OK)
        *ret = arg.page;
    return st;
}

static as_status tx_revoke(struct tx *t, void *p, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct verify_arg *arg = p;
    struct token_row row;
    int64_t others = 0;
    as_status st = store_token_get(t, &a, arg->id, &row, err);
    if (st == AS_OK)
        st = store_token_other_admins(t, arg->id, &others, err);
    if (st == AS_OK && row.role == ROLE_ADMIN && row.expires_ms == 0 && others == 0)
        return as_fail(err, AS_E_CONFLICT,
                       "this is the last admin token that does not expire: make another one first");
    return st == AS_OK ? store_token_revoke(t, arg->id, err) : st;
}

as_status token_revoke(struct store *db, const char *id, struct as_err *err)
{
    struct verify_arg arg = {.id = id};
    return store_run(db, TX_WRITE, tx_revoke, &arg, err);
}
