/* The trials that a runner holds, compared with the attempts that it lists. Strings that come out
 * are in the arena passed. */
#ifndef ASSAY_SCHEDULER_STORE_TRIAL_HELD_STORE_H
#define ASSAY_SCHEDULER_STORE_TRIAL_HELD_STORE_H

#include "base/arena.h"
#include "scheduler/rows/runner_row.h"
#include "scheduler/store/trial_store.h"
#include "scheduler/store/tx.h"

/* The trials that run on a runner, without the listed attempts. */
AS_MUST_CHECK as_status store_trial_held(struct tx *t, struct arena *a, const char *runner,
                                         const struct attempt_ref *but, size_t n,
                                         struct trial_list_heads *ret, struct as_err *err);

/* Move the attempts of a list that run on this runner to its new epoch. */
AS_MUST_CHECK as_status store_trial_resume(struct tx *t, const char *runner, int64_t epoch,
                                           const struct attempt_ref *refs, size_t n,
                                           struct as_err *err);

/* The listed attempts that are not current on that runner, and those that are told to end early,
 * each with the reason. The result borrows `refs`. */
AS_MUST_CHECK as_status store_trial_not_current(struct tx *t, struct arena *a, const char *runner,
                                                const struct attempt_ref *refs, size_t n,
                                                struct directive_list *ret, struct as_err *err);

/* Compare the trials that run on a runner with its list: count the heartbeats that missed a trial,
 * and return the trials that two heartbeats in a row missed and that were claimed more than
 * lease_ms ago. */
AS_MUST_CHECK as_status store_trial_missing(struct tx *t, struct arena *a, const char *runner,
                                            const struct attempt_ref *listed, size_t n,
                                            int64_t lease_ms, struct trial_list_heads *ret,
                                            struct as_err *err);

#endif
