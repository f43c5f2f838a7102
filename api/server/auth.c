/* The cache, the thread that looks tokens up, and the limit of addresses.
 *
 * Ids and secrets of tokens are random (62 and 256 bits): a guess is found wrong by its id, with a
 * SHA-256 and a place in an index. What a guess could cost is a query, so that is what is shared:
 * the thread takes all tokens that wait, and the more wait, the more go into one query. A flood of
 * guesses makes queries longer (by about a microsecond for each guess), and no more of them.
 *
 * A table of fixed size has recently valid tokens by four digits of their digest; an entry
 * overwrites the one at its place. A collision costs a query, never a wrong answer: the whole
 * digest is compared. Tokens are compared as digests, so nothing in memory is a token. */
#include "api/server/auth.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "api/server/rate_bucket.h"
#include "base/clock.h"
#include "base/fnv.h"
#include "base/hash.h"

#define CACHE_SLOTS 256
#define BUCKETS 1024

struct slot {
    char digest[SHA256_HEX_SIZE];
    struct principal who;
    int64_t until_ns; /* the answer of the database counts so long */
    int64_t known_ns; /* see auth_knew() */
};

struct auth {
    struct store *db;
    struct attempt_key *attempts;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t has_work;
    struct slot slots[CACHE_SLOTS];
    size_t bad_tokens;                   /* 0: no limit */
    struct rate_bucket buckets[BUCKETS]; /* bad tokens of addresses, a minute's at most; shared by
                                            those whose hashes are equal */
    /* The number of auth_forget() calls. An answer from before the last one is not stored. */
    unsigned forgotten;
    struct auth_check *first, **last; /* tokens that wait, in order of arrival */
    bool is_stopping;
    pthread_t thread;
    bool has_thread;
};

static void *look_tokens_up(void *arg);

as_status auth_create(struct store *db, struct attempt_key *attempts, size_t bad_tokens,
                      struct auth **ret, struct as_err *err)
{
    AS_AUTO(auth_freep) struct auth *a = as_calloc(1, sizeof *a);
    if (!a)
        return as_fail(err, AS_E_NOMEM, "out of memory for the tokens");
    a->db = db;
    a->attempts = attempts;
    a->bad_tokens = bad_tokens;
    a->last = &a->first;
    (void)pthread_mutex_init(&a->lock, NULL); /* neither can fail with defaults on Linux */
    (void)pthread_cond_init(&a->has_work, NULL);
    a->has_thread = pthread_create(&a->thread, NULL, look_tokens_up, a) == 0;
    if (!a->has_thread)
        return as_fail(err, AS_E_NOMEM, "cannot start the thread that looks tokens up");
    *ret = as_steal(a);
    return AS_OK;
}

void auth_free(struct auth *a)
{
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    a->is_stopping = true;
    pthread_cond_signal(&a->has_work);
    pthread_mutex_unlock(&a->lock);
    if (a->has_thread)
        (void)pthread_join(a->thread, NULL);
    (void)pthread_cond_destroy(&a->has_work);
    (void)pthread_mutex_destroy(&a->lock);
    free(a);
}

const char *auth_bearer(const char *authorization)
{
    if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0)
        return NULL;
    const char *token = authorization + 7 + strspn(authorization + 7, " ");
    size_t len = strlen(token);
    if (len == 0 || len >= TOKEN_TEXT_SIZE)
        return NULL;
    for (size_t i = 0; i < len; i++)
        if (token[i] <= ' ' || token[i] > '~')
            return NULL;
    return token;
}

/* Four hexadecimal digits of the digest choose the slot. */
static struct slot *slot_of_digest(struct auth *a, const char *digest)
{
    unsigned h = 0;
    for (int i = 0; i < 4; i++)
        h = h * 31 + (unsigned char)digest[i];
    return &a->slots[h % CACHE_SLOTS];
}

bool auth_recall(struct auth *a, const char *token, struct principal *ret)
{
    char digest[SHA256_HEX_SIZE];
    if (sha256_of(token, strlen(token), digest, NULL) < 0)
        return false;
    pthread_mutex_lock(&a->lock);
    const struct slot *s = slot_of_digest(a, digest);
    bool known = clock_mono_ns() < s->until_ns && hash_equal(s->digest, digest, sizeof digest);
    if (known)
        *ret = s->who;
    pthread_mutex_unlock(&a->lock);
    return known;
}

/* The bucket of an address, with what has flowed out of it since it was last looked at. */
static struct rate_bucket *bucket_locked(struct auth *a, const char *peer)
{
    struct rate_bucket *b = &a->buckets[fnv64(FNV64_BASIS, peer, strlen(peer)) % BUCKETS];
    rate_bucket_flow(b, (double)a->bad_tokens / 60, clock_mono_ns());
    return b;
}

/* Count a token that is not valid. True: the address has sent too many. */
static bool is_one_too_many_locked(struct auth *a, const char *peer)
{
    if (a->bad_tokens == 0)
        return false;
    struct rate_bucket *b = bucket_locked(a, peer);
    bool is_full = b->spent + 1 > (double)a->bad_tokens;
    b->spent += is_full ? 0 : 1;
    return is_full;
}

bool auth_knew(struct auth *a, const char *token)
{
    char digest[SHA256_HEX_SIZE];
    if (sha256_of(token, strlen(token), digest, NULL) < 0)
        return false;
    pthread_mutex_lock(&a->lock);
    const struct slot *s = slot_of_digest(a, digest);
    bool knew = clock_mono_ns() < s->known_ns && hash_equal(s->digest, digest, sizeof digest);
    pthread_mutex_unlock(&a->lock);
    return knew;
}

/* ---- the thread ---- */

void auth_look_up(struct auth *a, struct auth_check *c)
{
    c->next = NULL;
    pthread_mutex_lock(&a->lock);
    *a->last = c;
    a->last = &c->next;
    pthread_cond_signal(&a->has_work);
    pthread_mutex_unlock(&a->lock);
}

/* Take what waits, at most AUTH_BATCH. */
static size_t take_waiting_locked(struct auth *a, struct auth_check *ret[AUTH_BATCH])
{
    size_t n = 0;
    for (; a->first && n < AUTH_BATCH; n++) {
        ret[n] = a->first;
        a->first = a->first->next;
    }
    if (!a->first)
        a->last = &a->first;
    return n;
}

/* now: before the query, so that no entry outlives its answer by more than AUTH_CACHE_MS. */
static void remember_locked(struct auth *a, const struct token_check *t, int64_t now)
{
    struct slot s = {.who = t->who};
    if (t->who.role == ROLE_TRIAL)
        return;
    int64_t keep_ms = t->who.left_ms < AUTH_CACHE_MS ? t->who.left_ms : AUTH_CACHE_MS;
    s.until_ns = now + keep_ms * NS_PER_MS;
    s.known_ns = now + AUTH_KNOWN_MS * NS_PER_MS;
    if (sha256_of(t->text, strlen(t->text), s.digest, NULL) == AS_OK)
        *slot_of_digest(a, s.digest) = s;
}

static void settle_locked(struct auth *a, struct auth_check *c, const struct token_check *t)
{
    if (t->is_valid) {
        c->err.code = AS_OK;
        c->who = t->who;
    } else {
        (void)token_deny(&c->err);
        c->is_one_too_many = is_one_too_many_locked(a, c->peer);
    }
}

static void look_up_batch(struct auth *a, struct auth_check *const *checks, size_t n,
                          unsigned forgotten)
{
    struct token_check tokens[AUTH_BATCH] = {0};
    struct as_err err = {0};
    int64_t now = clock_mono_ns();
    for (size_t i = 0; i < n; i++)
        tokens[i].text = checks[i]->token;
    as_status st = token_verify_all(a->db, tokens, n, &err);
    if (st == AS_OK)
        st = attempt_tokens_verify(a->attempts, tokens, n, &err);
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < n; i++) {
        if (st != AS_OK)
            checks[i]->err = err;
        else
            settle_locked(a, checks[i], &tokens[i]);
        /* else a token was revoked during the query, perhaps this one */
        if (tokens[i].is_valid && a->forgotten == forgotten)
            remember_locked(a, &tokens[i], now);
    }
    pthread_mutex_unlock(&a->lock);
    for (size_t i = 0; i < n; i++)
        checks[i]->done(checks[i]);
}

static void *look_tokens_up(void *arg)
{
    struct auth *a = arg;
    struct auth_check *checks[AUTH_BATCH];
    pthread_mutex_lock(&a->lock);
    for (;;) {
        size_t n = take_waiting_locked(a, checks);
        unsigned forgotten = a->forgotten;
        if (n == 0 && a->is_stopping)
            break;
        if (n == 0) {
            (void)pthread_cond_wait(&a->has_work, &a->lock);
            continue;
        }
        pthread_mutex_unlock(&a->lock);
        look_up_batch(a, checks, n, forgotten);
        pthread_mutex_lock(&a->lock);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

void auth_forget(struct auth *a)
{
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < CACHE_SLOTS; i++)
        a->slots[i].until_ns = 0;
    a->forgotten++;
    pthread_mutex_unlock(&a->lock);
}

bool auth_allows(unsigned roles, const struct principal *p)
{
    return (roles & (1u << p->role)) != 0;
}
