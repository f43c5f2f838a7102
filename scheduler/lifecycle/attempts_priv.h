/* The fence before every write of a running attempt (attempt_fence.c). Errors as every function of
 * attempts.h. */
#ifndef ASSAY_SCHEDULER_LIFECYCLE_ATTEMPTS_PRIV_H
#define ASSAY_SCHEDULER_LIFECYCLE_ATTEMPTS_PRIV_H

#include "base/arena.h"
#include "scheduler/lifecycle/attempts.h"
#include "scheduler/store/trial_store.h"

/* Find the sweep of the attempt, and check that the writer holds the attempt, or held it. An
 * attempt that does not exist is left to the fence: ret->is_there. */
AS_MUST_CHECK as_status attempt_find(struct tx *t, struct arena *a, const struct attempt_ref *ref,
                                     const struct attempt_writer *by, struct attempt_holder *ret,
                                     struct as_err *err);

/* Lock the trial of the attempt in the sweep of this key, and check that the attempt may write. */
AS_MUST_CHECK as_status attempt_lock_trial(struct tx *t, struct arena *a,
                                           const struct attempt_ref *ref,
                                           const struct attempt_writer *by, int64_t key,
                                           struct trial_head *ret, struct as_err *err);

/* Both: *ret is the locked trial. */
AS_MUST_CHECK as_status attempt_lock_fenced(struct tx *t, struct arena *a,
                                            const struct attempt_ref *ref,
                                            const struct attempt_writer *by, struct trial_head *ret,
                                            struct as_err *err);

/* Only the rank that leads the current epoch of a gang may write. The row of the gang is held, so
 * that no other epoch begins before the write is done. */
AS_MUST_CHECK as_status attempt_check_leads(struct tx *t, const struct attempt_ref *ref,
                                            int64_t sweep_key, const struct attempt_writer *by,
                                            struct as_err *err);

/* Count a write that the fence refused, and say why: AS_E_STALE. */
AS_MUST_CHECK as_status attempt_fail_stale(struct tx *t, const struct attempt_ref *ref,
                                           const struct trial_head *x, struct as_err *err);

#endif
