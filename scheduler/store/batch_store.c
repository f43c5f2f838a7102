/* The table of functions by which the committer reads and writes batches, over PostgreSQL. */
#include "scheduler/store/batch_store.h"

#include "base/clock.h"
#include "scheduler/store/batch_begin_priv.h"
#include "scheduler/store/batch_look_priv.h"
#include "scheduler/store/batch_read_priv.h"
#include "scheduler/store/batch_take_priv.h"
#include "scheduler/store/batch_write_priv.h"
#include "scheduler/store/sweep_store.h"

static as_status run_batch(void *ctx, batch_body *body, void *arg, struct batch_end_of_run *ret,
                           struct as_err *err)
{
    struct store *db = ctx;
    struct tx_run run = tx_run_start(db, TX_BATCH, err);
    while (tx_run_again(&run)) {
        run.status = body(arg, run.tx, err);
        ret->sent_ns = clock_mono_ns();
    }
    ret->is_away = run.is_away;
    return run.status;
}

static as_status sync_batches(void *ctx, int64_t sent_ns, struct as_err *err)
{
    struct store *db = ctx;
    return store_sync(db, sent_ns, err);
}

const struct batch_ops batch_store_ops = {.run = run_batch,
                                          .read = batch_read,
                                          .write = batch_write,
                                          .look = batch_look,
                                          .take = batch_take,
                                          .documents = store_sweep_documents,
                                          .begin = batch_begin,
                                          .sync = sync_batches};
