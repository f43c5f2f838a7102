/* Which trials wait at a rung for nothing. */
#ifndef ASSAY_SCHEDULER_LIFECYCLE_RUNGS_OVER_H
#define ASSAY_SCHEDULER_LIFECYCLE_RUNGS_OVER_H

#include "base/arena.h"
#include "scheduler/store/tx.h"

/* Prune the trials of a sweep that wait and can never be promoted, at most 1000: their
 * checkpoints go. *ret_n counts them. A sweep that has ended or was deleted: none. */
AS_MUST_CHECK as_status rungs_prune(struct tx *t, struct arena *a, int64_t sweep_key,
                                    int64_t *ret_n, struct as_err *err);

#endif
