/* A store: the pool of connections, and what all operations share. Private to this folder.
 *
 * Lock: store.mu guards the pool's lists and the back-off. It is never held over a round trip. */
#ifndef ASSAY_SCHEDULER_STORE_STORE_PRIV_H
#define ASSAY_SCHEDULER_STORE_STORE_PRIV_H

#include <pthread.h>

#include "scheduler/store/pg_priv.h"
#include "scheduler/sweep/doc_cache.h"
#include "scheduler/sweep/rung_cache.h"

#define CONN_MAX 256

/* The connections of a kind of transactions. */
struct lane {
    struct conn *idle[CONN_MAX];
    int n_idle, n_open; /* n_open includes connections in use and those being opened */
    int max;
};

struct store {
    char *url, *app;
    struct sched_config config;
    struct store_counters counters;
    struct piece_store *pieces; /* borrowed; set before any operation */
    struct doc_cache *docs;
    struct rung_cache *boards;

    pthread_mutex_t mu;
    pthread_cond_t freed;
    struct lane lanes[LANES];         /* guarded by mu, like all fields below */
    struct conn *disk;                /* of store_sync(); NULL: not open */
    bool disk_in_use;                 /* some thread uses or opens it */
    int64_t disk_since_ns;            /* when it was opened */
    int64_t backoff_ms;               /* 0: the last attempt to connect succeeded */
    int64_t retry_at_ns;              /* no attempt before this time */
    int64_t up_since_ns;              /* 0: down */
    store_finished_fn *on_finished;   /* with its ctx; called without mu */
    store_finishing_fn *on_finishing; /* likewise */
    void *finishing_ctx;
    void *finished_ctx;
    char down_msg[AS_ERR_MSG_MAX];
    as_status down_code;
};

#endif
