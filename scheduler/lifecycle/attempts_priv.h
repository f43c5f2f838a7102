/* The fence before every write of a running attempt (attempts.c). */
#ifndef ASSAY_SCHEDULER_LIFECYCLE_ATTEMPTS_PRIV_H
#define ASSAY_SCHEDULER_LIFECYCLE_ATTEMPTS_PRIV_H

#include "base/arena.h"
#include "scheduler/lifecycle/attempts.h"
#include "scheduler/store/trial_store.h"

/* Check that the writer holds the attempt, lock its trial, and check that the attempt is the
 * trial's latest and may write. *ret is the locked trial. Errors as every function of
 * attempts.h. */
AS_MUST_CHECK as_status attempt_lock_fenced(struct tx *t, struct arena *a,
                                            const struct attempt_ref *ref,
                                            const struct attempt_writer *by, struct trial_head *ret,
                                            struct as_err *err);

#endif
