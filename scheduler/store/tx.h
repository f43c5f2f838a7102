/* Transactions: how the scheduler's services reach the store's statements.
 *
 * A service writes one function over an open transaction (`struct tx`) that calls store_* functions
 * of this folder, and hands it to store_run(). That function may run more than once, so it sets its
 * results afresh each time. What it returns decides: AS_OK commits, anything else rolls back. */
#ifndef ASSAY_SCHEDULER_STORE_TX_H
#define ASSAY_SCHEDULER_STORE_TX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "scheduler/store/store.h"

struct tx;
typedef as_status tx_fn(struct tx *t, void *arg, struct as_err *err);

typedef enum tx_kind {
    TX_READ,  /* statements see what is committed when each begins; nothing may be written */
    TX_WRITE, /* durable when store_run() returns AS_OK */
    TX_SOFT   /* as TX_WRITE, but a crash of the database may lose the last half second: for
                 heartbeats and log text, which come again */
} tx_kind;

/* AS_E_UNAVAILABLE: the database is away, too busy, or the answer to COMMIT was lost. */
AS_MUST_CHECK as_status store_run(struct store *db, tx_kind kind, tx_fn *fn, void *arg,
                                  struct as_err *err);

/* A trial of that sweep that was begun ends in this transaction: store_on_finished() tells once it
 * is committed. */
void tx_finished(struct tx *t, int64_t sweep_key);

/* A sweep goes to SWEEP_FINISHING in this transaction: store_on_finishing() tells once it is
 * committed. */
void tx_finishing(struct tx *t);

/* The store that a transaction belongs to. */
struct store *tx_store(struct tx *t);

/* Nanoseconds (monotonic) for which the database has been reachable for this process without a
 * failed attempt to connect; 0 when it is away or was never reached. */
int64_t store_up_ns(struct store *db);

#endif
