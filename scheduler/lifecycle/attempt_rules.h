/* The rules for the writes of a running attempt: may this writer write, and what does its report
 * mean? Pure: attempts.c, and the batches of scheduler/commit/, apply them to the rows that they
 * have locked. Messages are those of the API. */
#ifndef ASSAY_SCHEDULER_LIFECYCLE_ATTEMPT_RULES_H
#define ASSAY_SCHEDULER_LIFECYCLE_ATTEMPT_RULES_H

#include "base/arena.h"
#include "scheduler/lifecycle/transition.h"
#include "scheduler/rows/runner_row.h"
#include "scheduler/rows/series_row.h"
#include "scheduler/rows/trial_row.h"
#include "scheduler/store/attempt_store.h"
#include "scheduler/store/measurement_store.h"
#include "scheduler/store/sweep_head_store.h"
#include "scheduler/store/trial_store.h"

/* ---- what writers say ---- */

#define MEASUREMENTS_MAX 100000 /* points of one batch: 1000 items of 100 metrics */

/* Who writes. A runner shows the secret that it registered with. A client was checked by asks.h. Of
 * a gang only the rank that leads the current epoch writes: others get AS_E_STALE, and
 * AS_E_UNSUPPORTED is for a writer that does not say its seat, and for its processes. */
struct attempt_writer {
    const char *client; /* NULL: a runner */
    const char *secret; /* SHA-256 of the secret that the runner showed; NULL: none */
    bool is_trial;      /* the process of this very attempt: its token was checked */
    bool has_seat;      /* it says which rank of a gang it is, and which epoch it knows */
    int64_t seat, epoch;
};

/* What a running attempt reports at once; borrowed. */
struct attempt_report {
    const struct measurement *points;
    size_t n_points;
    const struct trial_note *notes; /* texts beside the numbers */
    size_t n_notes;
};

#define REASON_CHARACTERS 2000

typedef enum attempt_outcome {
    OUTCOME_COMPLETED,
    OUTCOME_FAILED,
    OUTCOME_RETRY,    /* uses a restart */
    OUTCOME_RELEASED, /* uses none */
    OUTCOME_TIMEOUT,
    OUTCOME_PAUSED, /* early stopping told it to; uses no restart */
    OUTCOME_PRUNED
} attempt_outcome;

/* NULL-terminated, in the enum's order. */
extern const char *const attempt_outcome_words[];

struct completion {
    attempt_outcome outcome;
    bool has_exit_code;
    int64_t exit_code;
    bool has_ran;
    int64_t ran_ms;    /* how long the process ran, by the runner's monotonic clock */
    int64_t waited_ms; /* claimed ahead, it waited so long for a slot, by the same clock */
    bool has_rank;     /* a rank of a gang says how far it came: */
    int64_t rank_step, rank_sent_bytes;
    double rank_step_seconds; /* the mean time of its steps; 0: it does not say */
    const char *reason;       /* NULL allowed; longer ones than REASON_CHARACTERS are cut */
    const struct measurement *metrics; /* final values, recorded with the end in one transaction; a
                                          negative step: the one after the trial's latest */
    size_t n_metrics;
};

/* ---- the request alone ---- */

/* Are these notes as attempt_record() allows them? AS_E_INVAL with the pointer of the note. */
AS_MUST_CHECK as_status attempt_notes_check(const struct trial_note *notes, size_t n,
                                            struct as_err *err);

/* As attempt_record() documents it: AS_E_INVAL, AS_E_TOO_LARGE. */
AS_MUST_CHECK as_status attempt_check_report(const struct attempt_report *r, struct as_err *err);
/* As attempt_complete() documents it: AS_E_INVAL, AS_E_TOO_LARGE. */
AS_MUST_CHECK as_status attempt_check_completion(const struct completion *c, struct as_err *err);

/* ---- the writer ---- */

/* Does the writer hold the attempt, or held it? An attempt that does not exist is left to the
 * fence. A client was found by the attempt that it holds. AS_E_DENIED. */
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
/* Was the attempt declared lost, so that it may only write late? Late writes are for one runner
 * that could not be heard: a gang has other ranks. What early stopping ended has no late writes. */
bool attempt_is_late(const struct trial_head *x, const struct attempt_ref *ref);
/* Does the state allow this end? If it is late, only a success counts: a lost trial runs again
 * anyway. */
bool attempt_end_counts(const struct trial_head *x, const struct attempt_ref *ref, bool is_success);

/* ---- the end ---- */

/* A runner that says that the process ended in time cannot call it a timeout. AS_E_UNSUPPORTED. */
AS_MUST_CHECK as_status attempt_check_timeout(const struct completion *c,
                                              const struct sweep_head *s, struct as_err *err);
/* Does the trial end with it, so that early stopping has nothing to decide? */
bool attempt_is_last(const struct completion *c);
/* Nobody pauses without a directive. AS_E_UNSUPPORTED. */
AS_MUST_CHECK as_status attempt_check_told(const struct completion *c, const struct trial_head *x,
                                           struct as_err *err);
/* The reported outcome as a change, before the values are judged (feasibility.h). */
AS_MUST_CHECK as_status attempt_change_of(struct arena *a, const struct completion *c,
                                          struct trial_change *ret, struct as_err *err);
/* AS_E_CONFLICT: what is recorded is not what the point says. */
AS_MUST_CHECK as_status attempt_other_value(const struct measurement *p,
                                            const struct measured_other *other, trial_state state,
                                            struct as_err *err);

#endif
