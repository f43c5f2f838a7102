/* Tokens of attempts are computed, and not stored: a busy installation begins thousands of attempts
 * an hour, and a row for each would cost every claim and every end a write. The database is asked
 * the one thing that it knows anyway: is this attempt current? The answer is not kept, so that the
 * end of an attempt ends its token on every server at once. */
#include "scheduler/services/attempt_tokens.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/str.h"

#define PREFIX "assay_trial_"
#define MAC_BYTES 20
#define MAC_HEX_SIZE (2 * MAC_BYTES + 1)
#define NUMBER_MAX INT64_C(2147483647)

struct attempt_key {
    struct store *db;
    pthread_mutex_t lock; /* guards the rest */
    bool is_known;
    char hex[SHA256_HEX_SIZE];
};

as_status attempt_key_create(struct store *db, struct attempt_key **ret, struct as_err *err)
{
    struct attempt_key *k = as_calloc(1, sizeof *k);
    if (!k)
        return as_fail_nomem(err);
    k->db = db;
    (void)pthread_mutex_init(&k->lock, NULL);
    *ret = k;
    return AS_OK;
}

void attempt_key_free(struct attempt_key *k)
{
    if (!k)
        return;
    (void)pthread_mutex_destroy(&k->lock);
    explicit_bzero(k->hex, sizeof k->hex);
    free(k);
}

/* Two threads may both read it: they read the same. */
static as_status read_key(struct attempt_key *k, char ret[SHA256_HEX_SIZE], struct as_err *err)
{
    pthread_mutex_lock(&k->lock);
    bool is_known = k->is_known;
    memcpy(ret, k->hex, SHA256_HEX_SIZE);
    pthread_mutex_unlock(&k->lock);
    if (is_known)
        return AS_OK;
    struct tx_run run = tx_run_start(k->db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_attempt_key(run.tx, ret, err);
    if (run.status != AS_OK)
        return run.status;
    pthread_mutex_lock(&k->lock);
    memcpy(k->hex, ret, SHA256_HEX_SIZE);
    k->is_known = true;
    pthread_mutex_unlock(&k->lock);
    return AS_OK;
}

/* The part of a token before its MAC. */
static void format_name(const struct attempt_name *name, char ret[TOKEN_TEXT_SIZE])
{
    (void)snprintf(ret, TOKEN_TEXT_SIZE, PREFIX "%" PRId64 ".%" PRId64 ".%" PRId64, name->sweep_key,
                   name->number, name->attempt);
}

static as_status format_mac(struct attempt_key *k, const char *name, char ret[MAC_HEX_SIZE],
                            struct as_err *err)
{
    char key[SHA256_HEX_SIZE];
    uint8_t mac[SHA256_BYTES];
    as_status st = read_key(k, key, err);
    if (st == AS_OK)
        st = hmac_sha256(key, strlen(key), name, strlen(name), mac, err);
    if (st == AS_OK)
        hex_format(mac, MAC_BYTES, ret);
    return st;
}

as_status attempt_token_make(struct attempt_key *k, const struct attempt_name *name,
                             char ret[TOKEN_TEXT_SIZE], struct as_err *err)
{
    char text[TOKEN_TEXT_SIZE], mac[MAC_HEX_SIZE];
    format_name(name, text);
    as_status st = format_mac(k, text, mac, err);
    if (st != AS_OK)
        return st;
    size_t len = strlen(text); /* at most 54: there is room */
    (void)snprintf(text + len, sizeof text - len, "_%s", mac);
    memcpy(ret, text, sizeof text);
    return AS_OK;
}

/* The numbers of a text such as "7.0.1_…". False: it has no three. */
static bool parse_numbers(const char *text, int64_t ret[3])
{
    for (int i = 0; i < 3; i++) {
        char *end = NULL;
        ret[i] = strtoll(text, &end, 10);
        if (end == text || *end != (i < 2 ? '.' : '_'))
            return false;
        text = end + 1;
    }
    return true;
}

/* Each attempt has one spelling: the text is made again from the numbers and compared. */
static bool parse_name(const char *text, struct attempt_name *ret, const char **ret_mac)
{
    int64_t v[3];
    char again[TOKEN_TEXT_SIZE];
    if (!as_starts_with(text, PREFIX) || !parse_numbers(text + strlen(PREFIX), v))
        return false;
    const struct attempt_name x = {v[0], v[1], v[2]};
    format_name(&x, again);
    size_t len = strlen(again);
    if (strncmp(text, again, len) != 0 || text[len] != '_' || x.sweep_key < 1 || x.number < 0 ||
        x.number > NUMBER_MAX || x.attempt < 1 || x.attempt > NUMBER_MAX)
        return false;
    *ret = x;
    *ret_mac = text + len + 1;
    return strlen(*ret_mac) == MAC_HEX_SIZE - 1;
}

/* *ret: the text names an attempt, and whoever made it has the key. */
static as_status is_genuine(struct attempt_key *k, const char *text, struct attempt_name *name,
                            bool *ret, struct as_err *err)
{
    char known[TOKEN_TEXT_SIZE], mac[MAC_HEX_SIZE];
    const char *shown = NULL;
    *ret = false;
    if (!parse_name(text, name, &shown))
        return AS_OK;
    format_name(name, known);
    as_status st = format_mac(k, known, mac, err);
    if (st == AS_OK)
        *ret = hash_equal(shown, mac, MAC_HEX_SIZE - 1);
    return st;
}

static as_status read_current(struct attempt_key *k, struct arena *a,
                              const struct attempt_name *names, size_t n,
                              struct attempt_current **ret, size_t *ret_n, struct as_err *err)
{
    struct tx_run run = tx_run_start(k->db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_attempt_current(run.tx, a, names, n, ret, ret_n, err);
    return run.status;
}

static void accept_check(struct token_check *c, const struct attempt_name *name, const char *sweep)
{
    c->who = (struct principal){
        .role = ROLE_TRIAL, .left_ms = 0, .number = name->number, .attempt = name->attempt};
    (void)snprintf(c->who.sweep, sizeof c->who.sweep, "%s", sweep);
    (void)snprintf(c->who.id, sizeof c->who.id, "trial");
    c->is_valid = true;
}

as_status attempt_tokens_verify(struct attempt_key *k, struct token_check *checks, size_t n,
                                struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct attempt_name *names = arena_alloc(&a, n + 1, sizeof *names);
    struct token_check **genuine = arena_alloc(&a, n + 1, sizeof(struct token_check *));
    struct attempt_current *current = NULL;
    size_t n_genuine = 0, n_current = 0;
    if (!names || !genuine)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        bool is = false;
        as_status st = is_genuine(k, checks[i].text, &names[n_genuine], &is, err);
        if (st != AS_OK)
            return st;
        if (is)
            genuine[n_genuine++] = &checks[i];
    }
    if (n_genuine == 0)
        return AS_OK;
    as_status st = read_current(k, &a, names, n_genuine, &current, &n_current, err);
    for (size_t i = 0; st == AS_OK && i < n_current; i++)
        accept_check(genuine[current[i].place], &names[current[i].place], current[i].sweep);
    return st;
}
