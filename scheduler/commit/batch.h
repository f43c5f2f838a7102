/* One batch of the committer: requests of many, decided and written in one transaction. No threads;
 * what it reads and writes goes through a table of functions (scheduler/store/batch_ops.h). */
#ifndef ASSAY_SCHEDULER_COMMIT_BATCH_H
#define ASSAY_SCHEDULER_COMMIT_BATCH_H

#include "base/arena.h"
#include "scheduler/commit/commit_member.h"
#include "scheduler/store/batch_ops.h"

/* How a batch ended. */
struct batch_result {
    bool is_away;    /* after an error: the database is away, or the answer to COMMIT was lost. The
                        members may be recorded: they are AS_E_UNAVAILABLE, and may repeat */
    int64_t sent_ns; /* for batch_ops.sync */
    /* of the members that are done: */
    int64_t recorded;  /* points */
    int64_t completed; /* ends that changed a trial */
    int64_t late;      /* of these, after the attempt was declared lost */
    int64_t stale;     /* refused for that */
    int64_t claimed;   /* trials that began */
};

/* Decide these members (RECORD and END) in one transaction. Several of one trial are reports, and
 * perhaps an end after them, each with `follows` set. Sets the fate of each; of those that are
 * done, status, err and out. Their answers are not on disk yet: see batch_ops.sync. After an error
 * nothing is set, and, unless result->is_away, nothing is written: each member may run alone. */
AS_MUST_CHECK as_status batch_commit(const struct batch_ops *ops, void *ctx, bool is_patient,
                                     struct commit_member *const *members, size_t n,
                                     struct batch_result *ret, struct as_err *err);

/* Run one member of any kind in transactions of its own, until its answer is on disk; sets status,
 * err and out. These are the functions that batch_commit() is compared with. */
void commit_alone(struct store *db, struct suggester *sg, struct commit_member *m);

#endif
