/* Forks, in the table trial. */
#ifndef ASSAY_SCHEDULER_STORE_FORK_STORE_H
#define ASSAY_SCHEDULER_STORE_FORK_STORE_H

#include "base/arena.h"
#include "scheduler/rows/fork_row.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/tx.h"

/* Make these forks: queued trials with the parameters that follow from those of their parents
 * (search/stopping/explore.h), the seed and the shape of their parents, and as their checkpoints
 * what their parents had left at that step, if anything. The transaction holds the rows of their
 * sweeps, in which these numbers are the next ones. Their events, views of `a`, are appended to
 * `events`, which has room for n more. Two statements for any n, none for 0. AS_E_INTERNAL: what is
 * stored cannot be read. */
AS_MUST_CHECK as_status store_fork_add_many(struct tx *t, struct arena *a,
                                            const struct fork_new *rows, size_t n,
                                            struct event_new *events, size_t *n_events,
                                            struct as_err *err);

/* The forks of a trial with the lowest numbers, at most `limit`, in their order. */
AS_MUST_CHECK as_status store_fork_list(struct tx *t, struct arena *a, int64_t sweep_key,
                                        int64_t number, int64_t limit, struct fork_row **ret,
                                        size_t *ret_n, struct as_err *err);

#endif
