#include "scheduler/content/content_gc.h"

#include "base/clock.h"
#include "scheduler/content/piece_store.h"
#include "scheduler/store/blob_store.h"

#define TRANSACTIONS_MAX 50              /* of one round, 20 blobs each */
#define PIECES_MAX 1000                  /* of one round */
#define VACUUM_BYTES (INT64_C(64) << 20) /* removed since the last time */
#define TIDY_NS (INT64_C(3600) * NS_PER_S)

/* *ret_more: the round ended before everything was removed. */
static as_status remove_rows(struct content_gc *c, struct content_report *r, bool *ret_more,
                             struct as_err *err)
{
    const struct sched_config *config = store_config(c->db);
    for (int i = 0; i < TRANSACTIONS_MAX; i++) {
        int64_t n = 0, bytes = 0;
        struct tx_run run = tx_run_start(c->db, TX_SOFT, err);
        while (tx_run_again(&run))
            run.status =
                store_blob_prune(run.tx, config->blob_keep_ms, config->release_ms, &n, &bytes, err);
        *ret_more = run.status == AS_OK && n > 0;
        if (run.status != AS_OK || n == 0)
            return run.status;
        r->removed += n;
        r->bytes += bytes;
        c->unswept_bytes += bytes;
    }
    return AS_OK;
}

/* Remove one loose piece. Its row is held until the piece is gone, so that an upload of the same
 * content waits. */
static as_status remove_piece(struct tx *t, int64_t keep_ms, bool *ret_found, bool *ret_removed,
                              struct as_err *err)
{
    char sha256[SHA256_HEX_SIZE];
    bool used = false;
    as_status st = store_blob_loose_next(t, keep_ms, sha256, &used, err);
    *ret_found = st == AS_OK && sha256[0];
    *ret_removed = *ret_found && !used;
    if (!*ret_found)
        return st;
    if (!used && (st = piece_store_remove(store_pieces(tx_store(t)), sha256, err)) != AS_OK)
        return st;
    return store_blob_loose_end(t, sha256, err);
}

static as_status remove_pieces(struct content_gc *c, struct content_report *r, struct as_err *err)
{
    bool found = store_pieces(c->db) != NULL;
    for (int i = 0; i < PIECES_MAX && found; i++) {
        bool removed = false;
        struct tx_run run = tx_run_start(c->db, TX_WRITE, err);
        while (tx_run_again(&run))
            run.status = remove_piece(run.tx, store_config(c->db)->loose_ms, &found, &removed, err);
        if (run.status != AS_OK)
            return run.status;
        r->outside += removed;
    }
    return AS_OK;
}

static as_status tidy(struct content_gc *c, struct as_err *err)
{
    if (!store_pieces(c->db) || clock_mono_ns() < c->tidy_at_ns)
        return AS_OK;
    c->tidy_at_ns = clock_mono_ns() + TIDY_NS;
    return piece_store_tidy(store_pieces(c->db), store_config(c->db)->loose_ms, err);
}

static as_status vacuum(struct content_gc *c, struct content_report *r, struct as_err *err)
{
    struct tx_run run = tx_run_start(c->db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_blob_vacuum(run.tx, err);
    if (run.status != AS_OK)
        return run.status;
    c->unswept_bytes = 0;
    r->vacuumed = true;
    return AS_OK;
}

as_status content_gc_tick(struct content_gc *c, struct content_report *ret, struct as_err *err)
{
    bool more = false;
    *ret = (struct content_report){0};
    as_status st = remove_rows(c, ret, &more, err);
    if (st == AS_OK)
        st = remove_pieces(c, ret, err);
    if (st == AS_OK)
        st = tidy(c, err);
    if (st != AS_OK || more || c->unswept_bytes < VACUUM_BYTES)
        return st;
    return vacuum(c, ret, err);
}
