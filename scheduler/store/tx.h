/* Transactions: how the scheduler's services reach the store's statements.
 *
 * A service writes functions over an open transaction (`struct tx`) that call the store_* functions
 * of this folder, and runs them in a loop:
 *
 *     struct tx_run run = tx_run_start(db, TX_WRITE, err);
 *     while (tx_run_again(&run))
 *         run.status = move_trial(run.tx, key, state, &row, err);
 *     return run.status;
 *
 * Each pass of the loop is one transaction. The status that the body stores decides how it ends:
 * AS_OK commits, anything else rolls back. The body runs again when the transaction failed without
 * effect and may succeed (a serialisation failure, a deadlock, a connection lost before COMMIT was
 * sent), so it sets its results afresh in each pass. It may not run at all: then the results are
 * untouched. */
#ifndef ASSAY_SCHEDULER_STORE_TX_H
#define ASSAY_SCHEDULER_STORE_TX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "scheduler/store/store.h"

struct tx; /* an open transaction; one thread */

typedef enum tx_kind {
    TX_READ,  /* each statement sees what was committed when it began; writes are not allowed */
    TX_SEEN,  /* as TX_READ, and when its loop ends with AS_OK, what it saw is on disk: for repeats
                 that are answered with what an earlier request committed */
    TX_WRITE, /* durable when its loop ends with AS_OK; see tx_saw() */
    TX_SOFT,  /* as TX_WRITE, but a crash of the database may lose the last half second: for
                 heartbeats and log text, which come again */
    TX_BATCH  /* of the committer, on connections of its own: durable after a store_sync() that
                 begins when the loop has ended */
} tx_kind;

/* The runs of one transaction until it is committed or has finally failed. A local variable. It
 * needs no clean-up after tx_run_again() has returned false. */
struct tx_run {
    struct tx *tx;    /* open inside the loop's body, else NULL */
    as_status status; /* the body sets it; after the loop, how the transaction ended */
    bool is_away;     /* after the loop: there was no connection, or it was lost; if COMMIT was
                         sent, it may be committed */

    /* private to tx_run_again() */
    struct store *db;
    struct as_err *err;
    tx_kind kind;
    int n_runs;
    int64_t pause_ms;
};

/* Begins no transaction yet. db and err (may be NULL) are borrowed until the loop ends. */
AS_MUST_CHECK struct tx_run tx_run_start(struct store *db, tx_kind kind, struct as_err *err);

/* End the open transaction, if there is one, and begin another if one is needed. True: run->tx is
 * open, and the body must set run->status and must not leave the loop by break or return. False:
 * run->status is the result, and *err has the reason if it is not AS_OK. Waits a few milliseconds
 * before a repetition, and gives up after 8 runs with the last error. Additional status:
 * AS_E_UNAVAILABLE when the database is away, too busy, or the answer to COMMIT was lost. */
AS_MUST_CHECK bool tx_run_again(struct tx_run *run);

/* Record that a running trial of that sweep ends in this transaction. The function of
 * store_on_finished() is called after the commit, once for each such sweep. */
void tx_finished(struct tx *t, int64_t sweep_key);

/* Record that this transaction leaves work for reaper_finish(): a sweep changes to SWEEP_FINISHING,
 * or an ensemble is asked for. The function of store_on_finishing() is called after the commit. */
void tx_finishing(struct tx *t);

/* Record that the answer is what another transaction had committed: a TX_WRITE that wrote nothing
 * does not wait for the disk otherwise. When its loop ends with AS_OK, what it saw is there. */
void tx_saw(struct tx *t);

/* Wait until all transactions of this process that ended before are on disk; one thread.
 *   sent_ns   a time (monotonic) before the COMMIT of the oldest of them was sent
 * AS_E_UNAVAILABLE: it is not known whether they are. One round trip. */
AS_MUST_CHECK as_status store_sync(struct store *db, int64_t sent_ns, struct as_err *err);

/* The store that a transaction belongs to. */
struct store *tx_store(struct tx *t);

/* Nanoseconds (monotonic) since when this process reaches the database without a failed attempt to
 * connect; 0: it is away or was never reached. */
int64_t store_up_ns(struct store *db);

#endif
