/* The connection to PostgreSQL: a pool of connections that recovers by itself, and the settings
 * that all operations share.
 *
 * Opening does not connect: a server may start before its database. Every operation of the
 * scheduler takes a connection from the pool, runs one or a few short transactions, and returns it.
 *
 * While the database is away, operations return AS_E_UNAVAILABLE at once, and they work again when
 * it is back. Attempts to connect are separated by a jittered back-off of 0.1 s to 5 s.
 * Serialisation failures and deadlocks are retried inside. A connection that is lost before COMMIT
 * was sent is replaced, and the transaction runs again. A COMMIT whose answer is lost is
 * AS_E_UNAVAILABLE: the caller repeats the operation, which is safe, because every operation may be
 * repeated.
 *
 * Any thread may call any operation with the same store. */
#ifndef ASSAY_SCHEDULER_STORE_STORE_H
#define ASSAY_SCHEDULER_STORE_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"

/* Times of the runner protocol, by the database's clock. */
struct sched_config {
    int64_t lease_ms;       /* a runner that was not heard for this long is lost; default 15000 */
    int64_t heartbeat_ms;   /* the interval that runners are asked to use; default 3000 */
    int64_t reaper_ms;      /* how often the server calls reaper_tick; default 1000, at most
                              a quarter of lease_ms */
    int64_t event_keep_ms;  /* default 7 days */
    int64_t runner_keep_ms; /* of runners that left or were lost; default 1 day */
    int64_t blob_keep_ms;   /* of content that nothing ever referred to; default 1 day */
    int64_t release_ms;     /* of content that lost its last reference; default 30 s */
    int64_t loose_ms;       /* of what an upload left in the blob store when it did not end; default
                              1 hour */
    int64_t prune_ms;       /* how often the reaper removes old rows; default 60000 */
};

struct store_opts {
    const char *url;              /* libpq URL or key=value text; borrowed for the call */
    const char *application_name; /* NULL: "assayd" */
    int max_connections;          /* 0: 8 */
    struct sched_config config;   /* zero fields take their defaults */
};

/* Counts of this process since it started. */
struct store_counters {
    atomic_long stale_rejected; /* writes of attempts that were not current any more */
    atomic_long late_accepted;  /* completions after the lease, while the attempt was still
                                   current */
    atomic_long ranks_lost;     /* ranks of gangs that this process declared lost */
    atomic_long attempts_lost;  /* attempts that this process declared lost */
    atomic_long trials_claimed;
    atomic_long trials_completed; /* outcomes accepted, of any kind */
    atomic_long measurements;     /* points recorded */
    atomic_long tx_retries;       /* transactions run again */
    atomic_long connects;         /* connections made */
};

struct store;

/* Create a store. Does not connect. AS_E_INVAL: the URL cannot be read, or the configuration is
 * contradictory (heartbeat_ms * 2 > lease_ms). AS_E_NOMEM. Owned by the caller, store_close(). */
AS_MUST_CHECK as_status store_open(const struct store_opts *opts, struct store **ret,
                                   struct as_err *err);
/* No operation may be running. */
void store_close(struct store *db);
AS_DEFINE_FREEP(struct store, store_close)

/* Where content lies that is not in rows (scheduler/content/piece_store.h); borrowed, and set
 * before any operation runs. NULL, the default: all content is in rows. */
struct piece_store;
void store_set_pieces(struct store *db, struct piece_store *pieces);
struct piece_store *store_pieces(const struct store *db);

/* The documents of sweeps that this process has read (scheduler/sweep/doc_cache.h). */
struct doc_cache;
struct doc_cache *store_docs(struct store *db);

const struct sched_config *store_config(const struct store *db);
struct store_counters *store_counters(struct store *db);

/* Call fn after each commit of this process that ended trials which were running, with the key of
 * each of their sweeps. Results that people add are not reported, because they come by the thousand
 * and nobody waits for a suggestion then. fn must not block. NULL: none. No operation may be
 * running. */
typedef void store_finished_fn(void *ctx, int64_t sweep_key);
void store_on_finished(struct store *db, store_finished_fn *fn, void *ctx);

/* Call fn after each commit of this process that left a sweep with nothing but its end to do
 * (SWEEP_FINISHING), or that asked for an ensemble: reaper_finish() has work. fn must not block.
 * NULL: none. No operation may be running. */
typedef void store_finishing_fn(void *ctx);
void store_on_finishing(struct store *db, store_finishing_fn *fn, void *ctx);

/* Is the database reachable, with the schema of this program (scheduler/services/migrate.c)?
 * AS_E_UNAVAILABLE: away. AS_E_CONFLICT: the schema is older or newer, or fsync is off
 * (ASSAY_ALLOW_FSYNC_OFF=1 allows that); the message says which and what to do. Two round trips. */
AS_MUST_CHECK as_status store_ready(struct store *db, struct as_err *err);

/* Counts of the pool's connections, for /metrics. Any thread. */
struct store_pool {
    int open, in_use, max;
};
void store_pool_get(struct store *db, struct store_pool *ret);

#endif
