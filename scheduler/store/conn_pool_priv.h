/* The pool of connections of a store. Private to this folder. */
#ifndef ASSAY_SCHEDULER_STORE_CONN_POOL_PRIV_H
#define ASSAY_SCHEDULER_STORE_CONN_POOL_PRIV_H

#include "scheduler/store/store_priv.h"

/* Take an idle connection of a lane (LANE_SHARED, LANE_BATCH), or open one. The caller gives it
 * back. AS_E_UNAVAILABLE: the database is away, or all are busy. */
AS_MUST_CHECK as_status conn_pool_take(struct store *db, int lane, struct conn **ret,
                                       struct as_err *err);
/* Return a connection. If it is broken, the idle ones are closed too: the same event probably broke
 * them. */
void conn_pool_give(struct store *db, struct conn *c);

/* Open the connection of store_sync() if there is none. A batch that commits while no connection
 * could wait for the disk would have no answer. */
AS_MUST_CHECK as_status conn_pool_open_disk(struct store *db, struct as_err *err);

/* Its commit waits until it is on disk, and so is all that was committed before. */
#define WAIT_FOR_DISK "select pg_logical_emit_message(true, 'assay', '')"

/* A random time between half of ms and ms. */
int64_t conn_pool_jitter_ms(int64_t ms);

#endif
