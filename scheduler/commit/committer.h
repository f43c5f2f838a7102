/* The committer: results, measurements, claims and asks that arrive together are committed
 * together.
 *
 * A request that is submitted holds no thread and no connection. One thread takes what has queued,
 * and commits it in one transaction; it begins at once when it is idle, so batches form under load
 * only. A second thread waits for the disk, once for all batches that were committed before, and
 * only then calls `done`. What a batch cannot decide runs alone, on a few threads, as today.
 *
 * Order: members that concern one trial are decided in the order in which they were submitted. The
 * results of a round come before its claims, and a claim comes after the other members of its call
 * (those with the same owner). */
#ifndef ASSAY_SCHEDULER_COMMIT_COMMITTER_H
#define ASSAY_SCHEDULER_COMMIT_COMMITTER_H

#include "base/mem.h"
#include "scheduler/commit/batch.h"

struct committer_opts {
    size_t queue_max;            /* members that are not done; 0: 4096 */
    size_t batch_max;            /* members of a batch; 0: 256 */
    size_t threads;              /* for members that run alone; 0: 4 */
    bool is_single;              /* every member runs alone */
    const struct batch_ops *ops; /* borrowed; NULL: those of the store */
    void *ops_ctx;
};

/* Counts since it started. */
struct committer_figures {
    int64_t batches;   /* transactions of batches that committed */
    int64_t members;   /* members that these decided */
    int64_t syncs;     /* waits for the disk */
    int64_t alone;     /* members that ran alone */
    int64_t fallbacks; /* batches that failed: each member ran alone */
    int64_t postponed; /* members that came to a later round */
    int64_t refused;   /* members for which the queue was full */
    int64_t queued;    /* members that are not done now */
};

struct committer;

/* `db` and `sg` (may be NULL) are borrowed for its life. AS_E_NOMEM. */
AS_MUST_CHECK as_status committer_create(struct store *db, struct suggester *sg,
                                         const struct committer_opts *o, struct committer **ret,
                                         struct as_err *err);

/* Queue these members: all or none. Members of one call keep their order. AS_E_UNAVAILABLE: the
 * queue is full, or committer_drain() was called; ask again later. */
AS_MUST_CHECK as_status committer_submit(struct committer *c, struct commit_member *const *members,
                                         size_t n, struct as_err *err);

/* Any thread. */
void committer_figures_get(struct committer *c, struct committer_figures *ret);

/* Take no more members, and wait until all have their answer. */
void committer_drain(struct committer *c);

/* Drains, and ends the threads. NULL is fine. */
void committer_free(struct committer *c);
AS_DEFINE_FREEP(struct committer, committer_free)

#endif
