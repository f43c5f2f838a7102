/* Decides when a child gets which signal, and what its end means. Pure.
 *
 *   why it is being stopped      signals                          outcome when it has ended
 *   nothing                      none                             by its exit
 *   timeout  (trial_timeout)     SIGTERM, grace, SIGKILL          timeout
 *   late     (no slot came free), crowded (no room in its group), or
 *   drain    (the runner leaves) SIGTERM, grace, SIGKILL          released, whatever the exit code:
 *                                                                 exit 0 after SIGTERM proves
 *                                                                 nothing
 *   pause, prune (early stopping) SIGTERM, grace, SIGKILL         paused, pruned, whatever the exit
 *                                                                 code: the decision stands
 *   dropped  (not current)       SIGTERM, grace, SIGKILL          none: nothing more is written
 *
 *   its exit                     outcome
 *   0                            completed
 *   75 (EX_TEMPFAIL)             retry
 *   other codes                  failed
 *   SIGKILL that we did not send retry: the OOM killer or an operator
 *   other signals                failed */
#ifndef ASSAY_TRIAL_RUNNER_PROCESS_VERDICT_H
#define ASSAY_TRIAL_RUNNER_PROCESS_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

#define VERDICT_REASON_MAX 2000 /* as the API allows */

#define EXIT_TRY_AGAIN 75 /* EX_TEMPFAIL */

typedef enum stop_why {
    STOP_NONE,
    STOP_TIMEOUT,
    STOP_LATE,    /* it was claimed ahead, and its slot is not free in time */
    STOP_CROWDED, /* the process of its group has no room for it */
    STOP_DRAIN,
    STOP_PAUSE, /* the server has decided that it waits, or … */
    STOP_PRUNE, /* … that it ends */
    STOP_DROPPED,
} stop_why;

/* Is it a decision of early stopping? */
bool stop_is_early(stop_why why);

/* The state of stopping one child. Zero it, then set started_ns, timeout_ns and grace_ns. */
struct stopping {
    stop_why why;
    int64_t started_ns;
    int64_t timeout_ns; /* from the start; 0: none */
    int64_t grace_ns;
    int64_t term_ns; /* when SIGTERM was sent; 0: not yet */
    bool killed;     /* SIGKILL was sent */
};

typedef enum stop_signal { STOP_SEND_NONE, STOP_SEND_TERM, STOP_SEND_KILL } stop_signal;

/* A child has started. timeout_ms 0: none; what does not fit into nanoseconds is none, or as long
 * as can be. */
void stopping_begin(struct stopping *s, int64_t now_ns, int64_t timeout_ms, int64_t grace_ms);

/* Ask for a stop. A later reason replaces an earlier one if it is stronger: dropped, then prune,
 * then pause, then drain, then crowded, then late, then timeout. The grace period does not start
 * again. */
void stopping_ask(struct stopping *s, stop_why why);

/* Returns the signal that is due now. s records that it was sent. */
stop_signal stopping_step(struct stopping *s, int64_t now_ns);

/* Returns when stopping_step may next have something to do; INT64_MAX: never. */
int64_t stopping_next_ns(const struct stopping *s);

typedef enum outcome {
    OUTCOME_COMPLETED,
    OUTCOME_FAILED,
    OUTCOME_RETRY,
    OUTCOME_RELEASED,
    OUTCOME_TIMEOUT,
    OUTCOME_PAUSED,
    OUTCOME_PRUNED,
    OUTCOME_NONE, /* write nothing */
} outcome;

/* What an attempt ends as that is asked to stop for this reason, late or stronger, before it has a
 * process. */
outcome verdict_unstarted(stop_why why);
/* The reason of such an end, and of a process that was stopped so; "" for dropped. */
const char *verdict_stop_reason(stop_why why);

const char *outcome_name(outcome o); /* as in the API; NULL for OUTCOME_NONE */
bool outcome_parse(const char *s, outcome *ret);

struct verdict {
    outcome outcome;
    int exit_code; /* negative: the signal */
    struct str reason;
};

void verdict_done(struct verdict *v);

/* Decide what the end of a child means. ret must be zeroed.
 *   wait_status  as from waitpid
 *   last_line    the last line of its output, "" for none; borrowed */
void verdict_of(const struct stopping *s, int wait_status, const char *last_line,
                struct verdict *ret);

#endif
