/* The connection to PostgreSQL: a pool of connections that heals itself, and the settings that all
 * operations share.
 *
 * Opening does not connect: a server may start before its database. Every operation of the
 * scheduler takes a connection from the pool, runs one or a few short transactions, and gives it
 * back. While the database is away operations answer AS_E_UNAVAILABLE at once (a jittered back-off,
 * 0.1 s to 5 s, stands between attempts to connect) and work again when it is back. Serialisation
 * failures and deadlocks are retried inside; a connection that dies before COMMIT was sent is
 * replaced and the transaction run again; a COMMIT whose answer is lost is AS_E_UNAVAILABLE, and
 * the caller repeats the operation, which is safe: every one of them may be repeated.
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
    int64_t lease_ms;      /* a runner that was not heard for this long is lost; default 15000 */
    int64_t heartbeat_ms;  /* what runners are told; default 3000 */
    int64_t reaper_ms;     /* how often the server calls reaper_tick; default 1000, at most
                              a quarter of lease_ms */
    int64_t event_keep_ms; /* default 7 days */
    int64_t blob_keep_ms;  /* of what nothing refers to; default 1 day */
    int64_t prune_ms;      /* how often the reaper looks for old rows; default 60000 */
};

struct store_opts {
    const char *url;              /* libpq URL or key=value text; borrowed for the call */
    const char *application_name; /* NULL: "assayd" */
    int max_connections;          /* 0: 8 */
    struct sched_config config;   /* zero fields take their defaults */
};

/* Counted in this process since it started. */
struct store_counters {
    atomic_long stale_rejected; /* writes of attempts that were no longer current */
    atomic_long late_accepted;  /* completions after the lease, with the attempt still current */
    atomic_long attempts_lost;  /* attempts that this process declared lost */
    atomic_long trials_claimed;
    atomic_long trials_completed; /* outcomes accepted, of any kind */
    atomic_long measurements;     /* points recorded */
    atomic_long tx_retries;       /* transactions run again */
    atomic_long connects;         /* connections made */
};

struct store;

/* Does not connect. AS_E_INVAL: the URL cannot be read, or the configuration makes no sense
 * (heartbeat_ms * 2 > lease_ms). AS_E_NOMEM. Owned by the caller, store_close(). */
AS_MUST_CHECK as_status store_open(const struct store_opts *opts, struct store **ret,
                                   struct as_err *err);
/* No operation may be under way. */
void store_close(struct store *db);
AS_DEFINE_FREEP(struct store, store_close)

const struct sched_config *store_config(const struct store *db);
struct store_counters *store_counters(struct store *db);

/* Call fn after each commit of this process that ended trials that somebody ran, with the key of
 * their sweep: a hint (of many sweeps in one transaction some are left out). Results that people
 * add come by the thousand, and whoever adds them does not wait for a suggestion. It must not
 * block. NULL: nobody. No operation may be under way. */
typedef void store_finished_fn(void *ctx, int64_t sweep_key);
void store_on_finished(struct store *db, store_finished_fn *fn, void *ctx);

/* Call fn after each commit of this process that left a sweep with nothing to do but its end
 * (SWEEP_FINISHING): reaper_finish() has work. It must not block. NULL: nobody, to be said when no
 * operation is under way. */
typedef void store_finishing_fn(void *ctx);
void store_on_finishing(struct store *db, store_finishing_fn *fn, void *ctx);

/* Can it serve: database reached, schema as this program knows it (scheduler/services/migrate.c)?
 * AS_E_UNAVAILABLE: away. AS_E_CONFLICT: the schema is older or newer, or fsync is off
 * (ASSAY_ALLOW_FSYNC_OFF=1 allows that); the message says which and what to do. Two round trips. */
AS_MUST_CHECK as_status store_ready(struct store *db, struct as_err *err);

/* Connections of the pool, for /metrics. Any thread. */
struct store_pool {
    int open, in_use, max;
};
void store_pool_get(struct store *db, struct store_pool *ret);

#endif
