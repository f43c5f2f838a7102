/* Two tables of fixed size that an entry overwrites at its place: recently valid tokens by four
 * digits of their digest, and bad tokens by a hash of the address. A collision costs a query or
 * some guesses of a neighbour, never a wrong answer: the whole digest is compared. Tokens are
 * compared as digests, so nothing in memory is a token. An answer that was under way while a token
 * was revoked is not stored (`forgotten`). */
#include "api/server/auth.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/hash.h"
#include "scheduler/services/tokens.h"

#define CACHE_SLOTS 256
#define BUCKETS 1024

struct slot {
    char digest[SHA256_HEX_SIZE];
    struct principal who;
    int64_t until_ns; /* the answer of the database counts so long */
    int64_t good_ns;  /* the token is known to be no guess so long */
};

/* How many more bad tokens an address may send: a bucket that fills within a minute. Addresses
 * share one if their hashes are equal. */
struct bucket {
    double spent;
    int64_t at_ns;
};

struct auth {
    pthread_mutex_t lock; /* guards the rest */
    struct slot slots[CACHE_SLOTS];
    size_t bad_tokens; /* 0: no limit */
    struct bucket buckets[BUCKETS];
    /* The number of auth_forget() calls. An answer from before the last one is not stored. */
    unsigned forgotten;
};

struct auth *auth_create(size_t bad_tokens)
{
    struct auth *a = as_calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->bad_tokens = bad_tokens;
    (void)pthread_mutex_init(&a->lock, NULL); /* cannot fail with default attributes on Linux */
    return a;
}

void auth_free(struct auth *a)
{
    if (!a)
        return;
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
static struct bucket *bucket_locked(struct auth *a, const char *peer)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (; *peer; peer++)
        h = (h ^ (unsigned char)*peer) * 16777619u;
    struct bucket *b = &a->buckets[h % BUCKETS];
    int64_t now = clock_mono_ns();
    double flowed = (double)(now - b->at_ns) / 60e9 * (double)a->bad_tokens;
    b->spent = b->spent > flowed ? b->spent - flowed : 0;
    b->at_ns = now;
    return b;
}

bool auth_may_verify(struct auth *a, const char *peer, const char *token)
{
    char digest[SHA256_HEX_SIZE];
    if (a->bad_tokens == 0 || sha256_of(token, strlen(token), digest, NULL) < 0)
        return true;
    pthread_mutex_lock(&a->lock);
    const struct slot *s = slot_of_digest(a, digest);
    bool is_good = clock_mono_ns() < s->good_ns && hash_equal(s->digest, digest, sizeof digest);
    bool may = is_good || bucket_locked(a, peer)->spent + 1 <= (double)a->bad_tokens;
    pthread_mutex_unlock(&a->lock);
    return may;
}

static void count_bad_token(struct auth *a, const char *peer)
{
    pthread_mutex_lock(&a->lock);
    bucket_locked(a, peer)->spent += 1;
    pthread_mutex_unlock(&a->lock);
}

as_status auth_verify(struct auth *a, struct store *db, const char *peer, const char *token,
                      struct principal *ret, struct as_err *err)
{
    struct slot s = {0};
    /* taken before the query, so that no entry outlives its answer by more than AUTH_CACHE_MS */
    int64_t now = clock_mono_ns();
    pthread_mutex_lock(&a->lock);
    unsigned forgotten = a->forgotten;
    pthread_mutex_unlock(&a->lock);
    as_status st = sha256_of(token, strlen(token), s.digest, err);
    if (st < 0)
        return st;
    st = token_verify(db, token, &s.who, err);
    if (st == AS_E_DENIED)
        count_bad_token(a, peer);
    if (st < 0)
        return st;
    int64_t keep_ms = s.who.left_ms < AUTH_CACHE_MS ? s.who.left_ms : AUTH_CACHE_MS;
    s.until_ns = now + keep_ms * NS_PER_MS;
    s.good_ns = now + AUTH_GOOD_MS * NS_PER_MS;
    pthread_mutex_lock(&a->lock);
    if (a->forgotten == forgotten) /* else a token was revoked during the query, perhaps this one */
        *slot_of_digest(a, s.digest) = s;
    pthread_mutex_unlock(&a->lock);
    *ret = s.who;
    return AS_OK;
}

void auth_forget(struct auth *a)
{
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < CACHE_SLOTS; i++)
        a->slots[i].until_ns = 0; /* good_ns stays: it only allows a look-up */
    a->forgotten++;
    pthread_mutex_unlock(&a->lock);
}

bool auth_allows(unsigned roles, const struct principal *p)
{
    return (roles & (1u << p->role)) != 0;
}
