/* The waiting list: requests (long-polls) that wait without holding a thread or a database
 * connection.
 *
 * The key of an item names what it waits for. WAITING_CLAIMS means any trial for a runner. Other
 * keys are keys of sweeps (asks_pending(), scheduler/assign/asks.h): for clients that ask, and for
 * runners that fill a group. Keys below WAITING_CLAIMS are those of gangs (gang_wait_key(),
 * scheduler/lifecycle/gangs.h): for ranks that wait for the next world.
 *
 * The list probes each WAITING_TICK_MS, and at once after waiting_wake(), which reports a change in
 * this process. A probe is one cheap query that returns, for each key, how many items may get
 * something. That many items are retried, the longest waiting first. An item is also retried when
 * its time has ended or its peer has left. The tick exists because other servers over the same
 * database change it too. */
#ifndef ASSAY_API_SERVER_WAITING_H
#define ASSAY_API_SERVER_WAITING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"

#define WAITING_TICK_MS 150
#define WAITING_CLAIMS INT64_C(-1)
#define WAITING_KEYS_MAX 256 /* keys in one probe; items of other keys are retried at each tick */

/* Embedded in the struct of a request. */
struct waiting_item {
    struct waiting_item *next;
    int64_t key;
    int64_t until_ns;           /* monotonic: the time when it stops waiting */
    const atomic_bool *is_gone; /* borrowed while the item waits */
};

struct waiting_list;

struct waiting_hooks {
    /* Called in the thread of the list; must not block. The callee owns the item from then on. */
    void (*retry)(void *ctx, struct waiting_item *item);
    /* Called in the thread of the list; may query the database. Writes to ret, for each of the n
     * keys (distinct, n >= 1), how many of its items to retry. */
    void (*probe)(void *ctx, const int64_t *keys, size_t n, size_t *ret);
    void *ctx; /* borrowed */
};

/* AS_E_NOMEM. */
AS_MUST_CHECK as_status waiting_create(const struct waiting_hooks *hooks, struct waiting_list **ret,
                                       struct as_err *err);

/* Add an item. The list owns it until it calls `retry` for it. */
void waiting_add(struct waiting_list *w, struct waiting_item *item);

/* Something has changed: probe now. */
void waiting_wake(struct waiting_list *w);
/* Some is_gone was set: retry those items now. */
void waiting_wake_gone(struct waiting_list *w);

/* How many items wait now. An item that is being retried is not counted. */
struct waiting_counts {
    size_t any_trial; /* under WAITING_CLAIMS */
    size_t one_sweep; /* under a sweep's key */
    size_t one_world; /* under a key below WAITING_CLAIMS: the world of a gang */
};
struct waiting_counts waiting_count(struct waiting_list *w);

/* From now on retry every item at once, so that it can be answered before the server stops. */
void waiting_drain(struct waiting_list *w);

/* End the thread. No item may wait any more. NULL is fine. */
void waiting_free(struct waiting_list *w);
AS_DEFINE_FREEP(struct waiting_list, waiting_free)

#endif
