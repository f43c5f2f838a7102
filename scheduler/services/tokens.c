/* Bearer tokens: assay_ROLE_ID_SECRET.
 *
 * The database holds the id and a digest of the secret. The secret has 43 characters of an
 * alphabet of 62, about 256 bits, so one SHA-256 is enough; a slow hash protects only weak
 * secrets. A token that cannot be used (unknown, expired, revoked, of another role) is refused
 * with one message, and digests are compared in constant time, so that an answer gives no
 * information about the secret. */
#include "scheduler/services/tokens.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "scheduler/services/cursor_priv.h"
#include "scheduler/store/token_store.h"

#define TOKEN_ID_CHARS 12
#define TOKEN_SECRET_CHARS 43
#define TOKEN_NAME_MAX 80

/* n random characters from the first `base` digits and letters, each equally likely. */
static void random_text(char *ret, size_t n, unsigned base)
{
    static const char chars[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    unsigned limit = 256 / base * base; /* bytes from here on would favour the first characters */
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

/* The parts of a token's text. */
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
    if (st != AS_OK)
        return st;
    snprintf(ret->id, sizeof ret->id, "%s", id);
    return sha256_of(secret, strlen(secret), ret->sha256, err);
}

/* Create and import. */

/* The result of adding a token. */
struct addition {
    bool created;
    struct token_row row;       /* created */
    struct token_secret secret; /* not created: the secret of the token that has the id */
};

static as_status add_token(struct tx *t, struct arena *a, const struct token_new *n,
                           struct addition *ret, struct as_err *err)
{
    struct token_secret *found = NULL;
    size_t n_found = 0;
    as_status st = store_token_add(t, n, &ret->created, err);
    if (st != AS_OK)
        return st;
    if (ret->created)
        return store_token_get(t, a, n->id, &ret->row, err);
    st = store_token_secrets(t, a, &n->id, 1, &found, &n_found, err);
    if (st != AS_OK)
        return st;
    if (n_found == 0)
        return as_fail(err, AS_E_NOT_FOUND, "there is no token '%.32s'", n->id);
    ret->secret = found[0];
    return AS_OK;
}

static as_status run_add(struct store *db, struct arena *a, const struct token_new *n,
                         struct addition *ret, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = add_token(run.tx, a, n, ret, err);
    return run.status;
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
    struct addition got = {0};
    as_status st = name_check(name, err);
    if (st != AS_OK)
        return st;
    if (ttl_ms < 0)
        return as_fail_at(err, AS_E_INVAL, "/ttl", "a time to live cannot be negative");
    token_make(role, text);
    st = parts_of(text, &parts, err);
    if (st != AS_OK)
        return st;
    const struct token_new n = {.id = parts.id,
                                .role = token_role_format(role),
                                .name = name,
                                .sha256 = parts.sha256,
                                .ttl_ms = ttl_ms};
    st = run_add(db, a, &n, &got, err);
    if (st != AS_OK)
        return st;
    if (!got.created) /* two random ids of 62 bits were equal */
        return as_fail(err, AS_E_UNAVAILABLE, "the new token's id is taken: try again");
    *ret = got.row;
    memcpy(ret_text, text, TOKEN_TEXT_SIZE);
    return AS_OK;
}

as_status token_import(struct store *db, const char *text, const char *name, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct parts parts;
    struct addition got = {0};
    as_status st = parts_of(text, &parts, err);
    if (st != AS_OK)
        return st;
    st = name_check(name, err);
    if (st != AS_OK)
        return st;
    const struct token_new n = {.id = parts.id,
                                .role = token_role_format(parts.role),
                                .name = name,
                                .sha256 = parts.sha256};
    st = run_add(db, &a, &n, &got, err);
    if (st < 0 || got.created)
        return st;
    if (!got.secret.valid || got.secret.role != parts.role ||
        !hash_equal(got.secret.sha256, parts.sha256, SHA256_HEX_SIZE))
        return as_fail(err, AS_E_CONFLICT,
                       "token %s was revoked, has expired, or is known with another secret",
                       parts.id);
    return AS_OK;
}

/* Verify. */

as_status token_deny(struct as_err *err)
{
    return as_fail(err, AS_E_DENIED, "the token is not valid: unknown, expired or revoked");
}

/* The checks of tokens that may be tokens at all, and what the database has under their ids. */
struct look_up {
    struct parts *parts; /* of each check; id "" for what is no token */
    const char **ids;
    size_t n_ids;
    struct token_secret *secrets;
    size_t n_secrets;
};

static as_status prepare_look_up(struct arena *a, const struct token_check *checks, size_t n,
                                 struct look_up *ret, struct as_err *err)
{
    ret->parts = arena_alloc(a, n, sizeof *ret->parts);
    ret->ids = arena_alloc(a, n, sizeof *ret->ids);
    if (!ret->parts || !ret->ids)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        if (parts_of(checks[i].text, &ret->parts[i], NULL) == AS_OK)
            ret->ids[ret->n_ids++] = ret->parts[i].id;
        else
            ret->parts[i].id[0] = '\0';
    return AS_OK;
}

static as_status read_secrets(struct store *db, struct arena *a, struct look_up *l,
                              struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status =
            store_token_secrets(run.tx, a, l->ids, l->n_ids, &l->secrets, &l->n_secrets, err);
    return run.status;
}

static const struct token_secret *find_secret(const struct look_up *l, const char *id)
{
    for (size_t i = 0; i < l->n_secrets && *id; i++)
        if (as_streq(l->secrets[i].id, id))
            return &l->secrets[i];
    return NULL;
}

static void judge_check(const struct look_up *l, const struct parts *p, struct token_check *c)
{
    const struct token_secret *s = find_secret(l, p->id);
    bool same = s && hash_equal(s->sha256, p->sha256, SHA256_HEX_SIZE);
    c->is_valid = same && s->valid && s->role == p->role;
    if (!c->is_valid)
        return;
    snprintf(c->who.id, sizeof c->who.id, "%s", p->id);
    c->who.role = s->role;
    c->who.left_ms = s->left_ms;
}

/* A use that cannot be recorded refuses nobody: the disk may be full. The next check tries
 * again. */
static void note_uses(struct store *db, const char *const *ids, size_t n)
{
    struct as_err why = {0};
    if (n == 0)
        return;
    struct tx_run run = tx_run_start(db, TX_SOFT, &why);
    while (tx_run_again(&run))
        run.status = store_token_used(run.tx, ids, n, &why);
    if (run.status != AS_OK)
        log_write(LOG_DEBUG, "use of a token not recorded", "detail=\"%s\"", why.msg);
}

as_status token_verify_all(struct store *db, struct token_check *checks, size_t n,
                           struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct look_up l = {0};
    size_t n_used = 0;
    as_status st = prepare_look_up(&a, checks, n, &l, err);
    if (st == AS_OK && l.n_ids)
        st = read_secrets(db, &a, &l, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < n; i++) {
        judge_check(&l, &l.parts[i], &checks[i]);
        const struct token_secret *s = find_secret(&l, l.parts[i].id);
        if (checks[i].is_valid && s->note_use)
            l.ids[n_used++] = s->id; /* at most as many as there were ids */
    }
    note_uses(db, l.ids, n_used);
    return AS_OK;
}

as_status token_verify(struct store *db, const char *text, struct principal *ret,
                       struct as_err *err)
{
    struct token_check check = {.text = text};
    as_status st = token_verify_all(db, &check, 1, err);
    if (st != AS_OK)
        return st;
    if (!check.is_valid)
        return token_deny(err);
    *ret = check.who;
    return AS_OK;
}

/* List and revoke. */

/* A place in the list, which is sorted newest first. */
struct place {
    int64_t us; /* 0: the start of the list */
    const char *id;
};

static as_status read_place(struct arena *a, const struct page_req *page, struct place *ret,
                            struct as_err *err)
{
    const char *f[2];
    if (!page->cursor)
        return AS_OK;
    as_status st = cursor_read(a, page->cursor, "tokens", f, 2, err);
    if (st != AS_OK)
        return st;
    ret->id = f[1];
    return cursor_i64(f[0], &ret->us, err);
}

as_status token_list(struct store *db, struct arena *a, const struct page_req *page,
                     struct token_page *ret, struct as_err *err)
{
    struct place after = {.id = ""};
    struct token_page rows = {0};
    int64_t size = 0, next_us = 0;
    as_status st = page_size(page, &size, err);
    if (st != AS_OK)
        return st;
    st = read_place(a, page, &after, err);
    if (st != AS_OK)
        return st;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_token_list(run.tx, a, after.us, after.id, size, &rows.rows, &rows.n,
                                      &next_us, err);
    if (run.status != AS_OK)
        return run.status;
    if (next_us) {
        char us[24];
        snprintf(us, sizeof us, "%" PRId64, next_us);
        const char *const place[] = {us, rows.rows[rows.n - 1].id};
        rows.next_cursor = cursor_make(a, "tokens", place, 2);
        if (!rows.next_cursor)
            return as_fail_nomem(err);
    }
    *ret = rows;
    return AS_OK;
}

static as_status revoke_token(struct tx *t, const char *id, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct token_row row;
    int64_t others = 0;
    as_status st = store_token_get(t, &a, id, &row, err);
    if (st != AS_OK)
        return st;
    st = store_token_other_admins(t, id, &others, err);
    if (st != AS_OK)
        return st;
    if (row.role == ROLE_ADMIN && row.expires_ms == 0 && others == 0)
        return as_fail(err, AS_E_CONFLICT,
                       "this is the last admin token that does not expire: make another one first");
    return store_token_revoke(t, id, err);
}

as_status token_revoke(struct store *db, const char *id, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = revoke_token(run.tx, id, err);
    return run.status;
}
