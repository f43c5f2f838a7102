/* The waiting list: requests (long-polls) that wait and hold neither a thread nor a database
 * connection.
 *
 * An item waits for something that its key names: WAITING_CLAIMS for any trial that a runner may
 * have, else a sweep's key (asks_pending(), scheduler/assign/asks.h): clients that ask, and runners
 * that fill a group. Each WAITING_TICK_MS, and at once when waiting_wake() says that something
 * changed in this process, one cheap question (`probe`) finds out for each key how much there may
 * be to get; that many of its items, the longest waiting first, are tried again. An item is also
 * tried again when its own time is over or its peer left. Other copies of the server change the
 * database too: the tick is what sees that. */
#ifndef ASSAY_API_SERVER_WAITING_H
#define ASSAY_API_SERVER_WAITING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"

#define WAITING_TICK_MS 150
#define WAITING_CLAIMS INT64_C(-1)
#define WAITING_KEYS_MAX 256 /* that one probe asks for; items of others are tried at each tick */

/* Embedded in what waits. */
struct waiting_item {
    struct waiting_item *next;
    int64_t key;
    int64_t until_ns;           /* monotonic: the end of its patience */
    const atomic_bool *is_gone; /* borrowed while the item waits */
};

struct waiting_list;

struct waiting_hooks {
    /* In the list's thread; must not block. The item is then the callee's. */
    void (*retry)(void *ctx, struct waiting_item *item);
    /* In the list's thread; may query the database. How many items of each of these keys (distinct,
     * at least one) are worth a try: into the n counts of ret. */
    void (*probe)(void *ctx, const int64_t *keys, size_t n, size_t *ret);
    void *ctx; /* borrowed */
};

/* AS_E_NOMEM. */
AS_MUST_CHECK as_status waiting_create(const struct waiting_hooks *hooks, struct waiting_list **ret,
                                       struct as_err *err);

/* Let an item wait: it is the list's until `retry` gets it. */
void waiting_add(struct waiting_list *w, struct waiting_item *item);

/* Something changed: probe now. */
void waiting_wake(struct waiting_list *w);
/* Some is_gone was set: try those again now. */
void waiting_wake_gone(struct waiting_list *w);

/* How many items wait now; one that is being tried again does not. */
struct waiting_counts {
    size_t any_trial; /* under WAITING_CLAIMS */
    size_t one_sweep; /* under a sweep's key */
};
struct waiting_counts waiting_count(struct waiting_list *w);

/* From now on every item is tried again at once, so that it can be told to go away. */
void waiting_drain(struct waiting_list *w);

/* Ends the thread; nothing may wait any more. NULL is fine. */
void waiting_free(struct waiting_list *w);
AS_DEFINE_FREEP(struct waiting_list, waiting_free)

#endif
