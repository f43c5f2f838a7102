/* The rules for the writes of a running attempt: may this writer write, and what does its report
 * mean? Pure: attempts.c, and the batches of scheduler/commit/, apply them to the rows that they
 * have locked. Messages are those of the API. */
#ifndef ASSAY_SCHEDULER_LIFECYCLE_ATTEMPT_RULES_H
#define ASSAY_SCHEDULER_LIFECYCLE_ATTEMPT_RULES_H

#include "base/arena.h"
#include "scheduler/lifecycle/attempts.h"
#include "scheduler/lifecycle/transition.h"
#include "scheduler/store/attempt_store.h"
#include "scheduler/store/measurement_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/trial_store.h"

/* ---- the request alone ---- */

/* As attempt_record() documents it: AS_E_INVAL, AS_E_TOO_LARGE. */
AS_MUST_CHECK as_status attempt_check_report(const struct attempt_report *r, struct as_err *err);
/* As attempt_complete() documents it: AS_E_INVAL, AS_E_TOO_LARGE. */
AS_MUST_CHECK as_status attempt_check_completion(const struct completion *c, struct as_err *err);

/* ---- the writer ---- */

/* Does the writer hold the attempt, or held it? An attempt that does not exist is left to the fence.
 * A client was found by the attempt that it holds. AS_E_DENIED. */
AS_MUST_CHECK as_status attempt_check_holder(const struct attempt_ref *ref,
                                             const struct attempt_writer *by,
                                             const struct attempt_holder *holder,
                                             struct as_err *err);
/* Does the writer show the secret of the seat that it says? AS_E_DENIED. */
AS_MUST_CHECK as_status attempt_check_seat(const struct attempt_ref *ref,
                                           const struct attempt_writer *by, const char *secret,
                                           struct as_err *err);
/* The attempt is a gang's: AS_E_UNSUPPORTED if the writer does not say its seat. */
AS_MUST_CHECK as_status attempt_check_says_seat(const struct attempt_ref *ref,
                                                const struct attempt_writer *by,
                                                struct as_err *err);
/* Does it lead this epoch? leader -1: nobody does. AS_E_STALE. */
AS_MUST_CHECK as_status attempt_check_leader(const struct attempt_writer *by, int64_t epoch,
                                             int64_t leader, struct as_err *err);

/* ---- the fence ---- */

/* AS_E_STALE: another attempt is current, or the trial ended. */
AS_MUST_CHECK as_status attempt_stale(const struct attempt_ref *ref, const struct trial_head *x,
                                      struct as_err *err);
/* Was the attempt declared lost, so that it may only write late? Late writes are for one runner that
 * could not be heard: a gang has other ranks. */
bool attempt_is_late(const struct trial_head *x, const struct attempt_ref *ref);
/* Does the state allow this end? If it is late, only a success counts: a lost trial runs again
 * anyway. */
bool attempt_end_counts(const struct trial_head *x, const struct attempt_ref *ref, bool is_success);

/* ---- the end ---- */

/* A runner that says that the process ended in time cannot call it a timeout. AS_E_UNSUPPORTED. */
AS_MUST_CHECK as_status attempt_check_timeout(const struct completion *c,
                                              const struct sweep_head *s, struct as_err *err);
/* The reported outcome as a change, before the values are judged (feasibility.h). */
AS_MUST_CHECK as_status attempt_change_of(struct arena *a, const struct completion *c,
                                          struct trial_change *ret, struct as_err *err);
/* AS_E_CONFLICT: what is recorded is not what the point says. */
AS_MUST_CHECK as_status attempt_other_value(const struct measurement *p,
                                            const struct measured_other *other, trial_state state,
                                            struct as_err *err);

#endif
