/* How many requests a token may make: a bucket for each, which holds RATE_BURST_S seconds of its
 * rate and fills at that rate. So one program in a loop cannot keep everybody else waiting.
 *
 * A token of a user or a viewer has the rate of the option; that of a runner RATE_RUNNERS times
 * as much, because a whole fleet may share one; that of an attempt a RATE_TRIALS-th. Each server
 * counts for itself. A heartbeat is counted and never refused, because somebody lives by it. */
#ifndef ASSAY_API_SERVER_TOKEN_RATES_H
#define ASSAY_API_SERVER_TOKEN_RATES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "scheduler/services/tokens.h"

#define RATE_BURST_S 10
#define RATE_RUNNERS 10
#define RATE_TRIALS 50

struct token_rates;

/* per_second: 0: no limit. NULL when memory is out. */
struct token_rates *token_rates_create(int64_t per_second);
void token_rates_free(struct token_rates *r); /* NULL is fine */
AS_DEFINE_FREEP(struct token_rates, token_rates_free)

struct token_rate {
    int64_t limit;   /* requests that the full bucket holds */
    int64_t left;    /* in the bucket, after this one */
    int64_t wait_ms; /* until there is room for the next; 0: now */
};

/* A request of this token at now_ns. Returns whether there is room for it; if there is not, it
 * takes none. *ret is written where there is a limit; else its limit is 0. Any thread. */
bool token_rates_take(struct token_rates *r, const struct principal *who, int64_t now_ns,
                      struct token_rate *ret);

/* How many times there was no room. */
int64_t token_rates_refused(const struct token_rates *r);

#endif
