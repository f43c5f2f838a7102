/* A table of fixed size: a token has WAYS places by its hash. A token that has none takes the
 * place of the one that was longest silent, and begins with a full bucket: who changes tokens
 * all the time gains the bursts of as many tokens, and had to have them. */
#include "api/server/token_rates.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "api/server/rate_bucket.h"
#include "base/fnv.h"
#include "base/str.h"

#define SETS 1024
#define WAYS 4
#define NAME_SIZE 128

struct bucket {
    char name[NAME_SIZE]; /* of the token; "": the place is free */
    struct rate_bucket rate;
};

struct token_rates {
    int64_t per_second;
    atomic_int_fast64_t refused;
    pthread_mutex_t lock; /* guards the buckets */
    struct bucket buckets[SETS][WAYS];
};

struct token_rates *token_rates_create(int64_t per_second)
{
    struct token_rates *r = as_calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->per_second = per_second;
    (void)pthread_mutex_init(&r->lock, NULL);
    return r;
}

void token_rates_free(struct token_rates *r)
{
    if (!r)
        return;
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
}

/* The ids of stored tokens are unique; an attempt is its three numbers. */
static void format_name(const struct principal *who, char ret[NAME_SIZE])
{
    if (who->role == ROLE_TRIAL)
        (void)snprintf(ret, NAME_SIZE, "%s/%" PRId64 "/%" PRId64, who->sweep, who->number,
                       who->attempt);
    else
        (void)snprintf(ret, NAME_SIZE, "%s", who->id);
}

static double rate_of(const struct token_rates *r, token_role role)
{
    double rate = (double)r->per_second;
    return role == ROLE_RUNNER  ? rate * RATE_RUNNERS
           : role == ROLE_TRIAL ? (rate > RATE_TRIALS ? rate / RATE_TRIALS : 1)
                                : rate;
}

static struct bucket *find_locked(struct token_rates *r, const char *name, int64_t now_ns)
{
    struct bucket *set = r->buckets[fnv64(FNV64_BASIS, name, strlen(name)) % SETS], *oldest = set;
    for (size_t i = 0; i < WAYS; i++) {
        if (as_streq(set[i].name, name))
            return &set[i];
        if (oldest->name[0] && (!set[i].name[0] || set[i].rate.at_ns < oldest->rate.at_ns))
            oldest = &set[i]; /* a free place is the oldest */
    }
    *oldest = (struct bucket){.rate = {.at_ns = now_ns}};
    (void)snprintf(oldest->name, sizeof oldest->name, "%s", name);
    return oldest;
}

bool token_rates_take(struct token_rates *r, const struct principal *who, int64_t now_ns,
                      struct token_rate *ret)
{
    char name[NAME_SIZE];
    *ret = (struct token_rate){0};
    if (r->per_second == 0)
        return true;
    double rate = rate_of(r, who->role), limit = rate * RATE_BURST_S;
    format_name(who, name);
    pthread_mutex_lock(&r->lock);
    struct rate_bucket *b = &find_locked(r, name, now_ns)->rate;
    rate_bucket_flow(b, rate, now_ns);
    bool has_room = b->spent + 1 <= limit;
    b->spent += has_room ? 1 : 0;
    double spent = b->spent;
    pthread_mutex_unlock(&r->lock);
    ret->limit = (int64_t)limit;
    ret->left = (int64_t)(limit - spent);
    ret->wait_ms = spent + 1 <= limit ? 0 : (int64_t)((spent + 1 - limit) / rate * 1000) + 1;
    if (!has_room)
        atomic_fetch_add(&r->refused, 1);
    return has_room;
}

int64_t token_rates_refused(const struct token_rates *r)
{
    return atomic_load(&r->refused);
}
