/* Garbage collection of stored content: what nothing refers to is removed, and its space is given
 * back.
 *
 *   content that lost its last reference          after release_ms (30 s): superseded checkpoints,
 *   and
 *                                                 the files of sweeps that were deleted
 *   content that nothing ever referred to         after blob_keep_ms (1 day): uploads without use
 *   what an interrupted upload left in the store  after loose_ms (1 hour)
 *
 * Any number of servers may do it at once; every step is a guarded transaction of its own. */
#ifndef ASSAY_SCHEDULER_CONTENT_CONTENT_GC_H
#define ASSAY_SCHEDULER_CONTENT_CONTENT_GC_H

#include "base/status.h"
#include "scheduler/store/store.h"

/* One for each process: {.db = db} is ready. `db` is borrowed. One thread. */
struct content_gc {
    struct store *db;
    int64_t unswept_bytes; /* removed from rows since the tables were last vacuumed */
    int64_t tidy_at_ns;    /* monotonic: when to look for old drafts again */
};

/* What one round did, for the log. */
struct content_report {
    int64_t removed, bytes; /* content whose row was removed, without composed content in bytes */
    int64_t outside;        /* pieces removed from the blob store */
    bool vacuumed;          /* PostgreSQL may use the space again, or gave it back */
};

/* One round: remove at most a few hundred megabytes; then, when much was removed and no more is to
 * be, vacuum. May take seconds. AS_E_UNAVAILABLE: the database or the blob store is away; the next
 * round does the rest. `ret` counts also what an incomplete round did. */
AS_MUST_CHECK as_status content_gc_tick(struct content_gc *c, struct content_report *ret,
                                        struct as_err *err);

#endif
