/* The one place where transactions begin, end and run again.
 *
 * A transaction runs again if it failed without effect: PostgreSQL reported a serialisation failure
 * or a deadlock, or the connection was lost before COMMIT was sent. After COMMIT was sent without
 * an answer, nobody knows whether it took effect, so it does not run again: the caller gets
 * AS_E_UNAVAILABLE and repeats the whole operation, which is safe by design. */
#include "scheduler/store/tx.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "scheduler/store/conn_pool_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/store_priv.h"

#define TX_ATTEMPTS 8 /* runs of one transaction */

void tx_finished(struct tx *t, int64_t sweep_key)
{
    if (t->n_finished > 0 && t->finished[t->n_finished - 1] == sweep_key)
        return;
    struct as_err ignored;
    if (as_grow(&t->finished, t->n_finished + 1, sizeof *t->finished, &ignored) != AS_OK) {
        t->finished_failed = true;
        return;
    }
    t->finished[t->n_finished++] = sweep_key;
}

void tx_finishing(struct tx *t)
{
    t->has_finishing = true;
}

void tx_saw(struct tx *t)
{
    t->has_seen = true;
}

struct store *tx_store(struct tx *t)
{
    return t->db;
}

/* A board is right as long as nothing that it knows was lost: a crash of PostgreSQL may lose what
 * TX_BATCH committed, but not without ending all connections. So a board is good while no new one
 * was made since it was taken. */
struct rung_board *tx_board(struct tx *t, int64_t sweep_key)
{
    struct as_err ignored;
    for (size_t i = 0; i < t->n_boards; i++)
        if (t->boards[i].sweep_key == sweep_key)
            return t->boards[i].board;
    struct rung_board *b =
        rung_cache_take(t->db->boards, sweep_key, (int64_t)atomic_load(&t->db->counters.connects));
    if (b && tx_board_add(t, sweep_key, b, &ignored) != AS_OK)
        return NULL;
    return b;
}

as_status tx_board_add(struct tx *t, int64_t sweep_key, struct rung_board *b, struct as_err *err)
{
    as_status st = as_grow(&t->boards, t->n_boards + 1, sizeof *t->boards, err);
    if (st != AS_OK) {
        rung_board_free(b);
        return st;
    }
    int64_t stamp = (int64_t)atomic_load(&t->db->counters.connects);
    t->boards[t->n_boards++] = (struct tx_board){sweep_key, stamp, b};
    return AS_OK;
}

/* The boards of a transaction that has ended: what they know is stored, or was rolled back. */
static void give_boards(struct tx *t, bool is_committed)
{
    for (size_t i = 0; i < t->n_boards; i++) {
        struct tx_board *b = &t->boards[i];
        if (is_committed)
            rung_cache_put(t->db->boards, b->sweep_key, b->stamp, b->board);
        else
            rung_board_free(b->board);
    }
    free(t->boards);
}

/* Take a connection and begin a transaction on it. *ret is also open if BEGIN failed. It is
 * untouched if there is no connection. */
static as_status tx_begin(struct store *db, tx_kind kind, struct tx **ret, struct as_err *err)
{
    struct conn *c = NULL;
    as_status st = kind == TX_BATCH ? conn_pool_open_disk(db, err) : AS_OK;
    if (st == AS_OK)
        st = conn_pool_take(db, kind == TX_BATCH ? LANE_BATCH : LANE_SHARED, &c, err);
    if (st != AS_OK)
        return st;
    c->retry = c->committing = c->disk_full = false;
    c->tx = (struct tx){.db = db, .conn = c, .kind = kind};
    *ret = &c->tx;
    if (kind == TX_READ || kind == TX_SEEN)
        return AS_OK;
    st = kind == TX_BATCH ? conn_defer(c, "begin", err)
                          : conn_exec(c, "begin; set local synchronous_commit = off", err);
    if (st != AS_OK)
        c->broken = true;
    return st;
}

/* A transaction gives its locks back when it has committed, and then waits for the disk: with a
 * commit that waits, each claim of a sweep would wait for the disk of the one before, because both
 * hold the sweep's row. The message is a record in the log after the commit; its own commit waits
 * until both are on disk, together with those of other connections. Nobody is answered before. A
 * transaction that saw the change meanwhile is later in the log, so it never outlives what it
 * saw. What wrote nothing does not wait. */
static const char *const commits[] = {
    [TX_WRITE] = ("select set_config('assay.wrote', (pg_current_xact_id_if_assigned() is not "
                  "null)::text, false); commit; select case when "
                  "current_setting('assay.wrote')::boolean then pg_logical_emit_message(true, "
                  "'assay', '') end"),
    [TX_SOFT] = "commit"};

static as_status tx_end(struct tx *t, as_status st, struct as_err *err)
{
    struct conn *c = t->conn;
    if (t->kind == TX_SEEN && st == AS_OK) /* the connection is older than what it saw */
        return conn_exec(c, WAIT_FOR_DISK, err);
    if (t->kind == TX_READ || t->kind == TX_SEEN)
        return st;
    if (st == AS_OK) {
        c->committing = true;
        st = t->kind == TX_BATCH ? conn_end(c, "commit", err) : conn_exec(c, commits[t->kind], err);
        if (st == AS_OK && t->has_seen)
            st = conn_exec(c, WAIT_FOR_DISK, err);
        c->committing = c->broken; /* only a missing answer leaves the result unknown */
        if (st == AS_OK || t->kind != TX_BATCH)
            return st;
    }
    conn_rollback(c);
    return st;
}

static int key_order(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Once for each sweep. */
static void call_on_finished(struct store *db, struct tx *t)
{
    pthread_mutex_lock(&db->mu);
    store_finished_fn *fn = db->on_finished;
    void *ctx = db->finished_ctx;
    pthread_mutex_unlock(&db->mu);
    qsort(t->finished, t->n_finished, sizeof *t->finished, key_order);
    for (size_t i = 0; fn && i < t->n_finished; i++) {
        if (i == 0 || t->finished[i] != t->finished[i - 1])
            fn(ctx, t->finished[i]);
    }
}

static void call_on_finishing(struct store *db)
{
    pthread_mutex_lock(&db->mu);
    store_finishing_fn *fn = db->on_finishing;
    void *ctx = db->finishing_ctx;
    pthread_mutex_unlock(&db->mu);
    if (fn)
        fn(ctx);
}

/* End the transaction, return its connection, and report what it committed. *ret_again: it failed
 * without effect and may succeed if it runs again. */
static as_status tx_close(struct tx *t, as_status st, bool *ret_again, bool *ret_away,
                          struct as_err *err)
{
    struct conn *c = t->conn;
    if (st == AS_OK && t->finished_failed)
        st = as_fail_nomem(err);
    st = tx_end(t, st, err);
    *ret_away = st != AS_OK && c->broken;
    *ret_again = st != AS_OK && (c->retry || (c->broken && !c->committing));
    struct tx done = *t; /* another thread may take the connection once it is returned */
    conn_pool_give(done.db, c);
    if (st == AS_OK && done.n_finished > 0)
        call_on_finished(done.db, &done);
    free(done.finished);
    give_boards(&done, st == AS_OK);
    if (st == AS_OK && done.has_finishing)
        call_on_finishing(done.db);
    return st;
}

struct tx_run tx_run_start(struct store *db, tx_kind kind, struct as_err *err)
{
    return (struct tx_run){.db = db, .kind = kind, .err = err, .pause_ms = 2};
}

/* Close the open transaction. True: another run is needed, and its pause is over. */
static bool run_is_due(struct tx_run *run)
{
    bool again = false;
    run->status = tx_close(run->tx, run->status, &again, &run->is_away, run->err);
    run->tx = NULL;
    if (!again || run->n_runs == TX_ATTEMPTS)
        return false;
    atomic_fetch_add(&run->db->counters.tx_retries, 1);
    if (run->err)
        run->err->pointer[0] = '\0';
    clock_sleep_ms(conn_pool_jitter_ms(run->pause_ms));
    run->pause_ms *= 2;
    return true;
}

bool tx_run_again(struct tx_run *run)
{
    while (!run->tx || run_is_due(run)) {
        run->n_runs++;
        run->status = tx_begin(run->db, run->kind, &run->tx, run->err);
        if (run->status == AS_OK) {
            run->status = AS_E_INTERNAL; /* until the body sets it */
            return true;
        }
        if (!run->tx) {
            run->is_away = true;
            return false;
        }
    }
    return false;
}
