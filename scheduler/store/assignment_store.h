/* Statements that begin trials: one statement writes the tables trial, attempt and event for all
 * trials of a sweep that one owner gets. The caller holds the sweep's row, so that no other
 * transaction changes the state of its trials. Strings that come out are in the arena passed. */
#ifndef ASSAY_SCHEDULER_STORE_ASSIGNMENT_STORE_H
#define ASSAY_SCHEDULER_STORE_ASSIGNMENT_STORE_H

#include "base/arena.h"
#include "scheduler/rows/assignment_row.h"
#include "scheduler/store/sweep_head_store.h"
#include "scheduler/store/tx.h"

/* The queued trials with the lowest numbers, at most `limit`, in their order. */
AS_MUST_CHECK as_status store_assignment_queue(struct tx *t, struct arena *a, int64_t sweep_key,
                                               int64_t limit, struct queued_trial **ret,
                                               size_t *ret_n, struct as_err *err);

/* Let these queued trials run, each with its next attempt number. AS_E_CONFLICT: one was not
 * queued. */
AS_MUST_CHECK as_status store_assignment_begin(struct tx *t, const struct sweep_head *s,
                                               const struct owner *owner,
                                               const struct begun_trial *rows, size_t n,
                                               struct as_err *err);

/* Insert the trials; those that run have attempt 1. */
AS_MUST_CHECK as_status store_assignment_add(struct tx *t, const struct sweep_head *s,
                                             const struct owner *owner,
                                             const struct made_trial *rows, size_t n,
                                             struct as_err *err);

AS_MUST_CHECK as_status store_assignment_group(struct tx *t, struct arena *a, const char *group,
                                               const char *runner, struct group_head *ret,
                                               struct as_err *err);

#endif
