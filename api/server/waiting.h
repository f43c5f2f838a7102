/* Long-polls that wait: requests that hold neither a thread nor a database connection.
 *
 * An item waits for something that its key names: PARK_CLAIMS for any trial that a runner may have,
 * else a sweep's key (asks_pending(), scheduler/assign/asks.h): of clients that ask, and of runners that
 * fill a group. Each PARK_TICK_MS, and at once when
 * park_wake() says that something changed in this process, one cheap question (`probe`) finds out
 * for each key how much there may be to get; that many of its items, the longest waiting first, are
 * tried again. An item is also tried again when its own time is over or its peer
 * left. Other copies of the server change the database too: the tick is what sees that. */
#ifndef ASSAY_API_SERVER_PARK_H
#define ASSAY_API_SERVER_PARK_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"

#define PARK_TICK_MS 150
#define PARK_CLAIMS INT64_C(-1)
#define PARK_KEYS_MAX 256 /* that one probe asks for; items of others are tried at each tick */

/* Embedded in what waits. */
struct park_item {
    struct park_item *next;
    int64_t key;
    int64_t until_ns;           /* monotonic: the end of its patience */
    const atomic_bool *is_gone; /* borrowed while parked */
};

struct park;

struct park_hooks {
    /* In the park's thread; must not block. The item is then the callee's. */
    void (*retry)(void *ctx, struct park_item *item);
    /* In the park's thread; may query the database. How many items of each of these keys (distinct,
     * at least one) are worth a try: into the n counts of ret. */
    void (*probe)(void *ctx, const int64_t *keys, size_t n, size_t *ret);
    void *ctx; /* borrowed */
};

/* AS_E_NOMEM. */
AS_MUST_CHECK as_status park_create(const struct park_hooks *hooks, struct park **ret,
                                    struct as_err *err);

/* Park an item: it is the park's until `retry` gets it. */
void park_add(struct park *p, struct park_item *item);

/* Something changed: probe now. */
void park_wake(struct park *p);
/* Some is_gone was set: try those again now. */
void park_wake_gone(struct park *p);
/* From now on every item is tried again at once, so that it can be told to go away. */
void park_drain(struct park *p);

/* Ends the thread; nothing may be parked any more. NULL is fine. */
void park_free(struct park *p);
AS_DEFINE_FREEP(struct park, park_free)

#endif
