/* The trials of a claim, with all that their runner needs. Data that the trials of a sweep have in
 * common is read once. Private to this folder. */
#ifndef ASSAY_SCHEDULER_ASSIGN_CLAIMED_PRIV_H
#define ASSAY_SCHEDULER_ASSIGN_CLAIMED_PRIV_H

#include "base/arena.h"
#include "scheduler/assign/grouping.h"
#include "scheduler/rows/claimed_row.h"
#include "scheduler/store/runner_store.h"
#include "scheduler/store/tx.h"

/* The trials, and ranks of trials, that this claim got and still holds. */
AS_MUST_CHECK as_status claimed_read(struct tx *t, struct arena *a, const struct runner_id *runner,
                                     const char *claim_id, const struct group_limits *groups,
                                     struct claimed_row **ret, size_t *ret_n, struct as_err *err);

#endif
