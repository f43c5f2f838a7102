/* One attempt on this runner, from its claim until the server has its result.
 *
 * Two threads share it: the main thread, which owns the process, and the attempt's delivery thread,
 * which speaks HTTP and owns the files. `phase` says whose turn it is:
 *
 *   preparing  delivery: folders, checkpoints, data, the command
 *   ready      main: start the process (or give up when a stop was asked for)
 *   running    main: process and output; delivery: measurements, log, checkpoints
 *   ended      delivery: deliver what is left and the result
 *   delivered  main: join the delivery thread and forget the attempt */
#ifndef ASSAY_TRIAL_RUNNER_AGENT_ATTEMPT_H
#define ASSAY_TRIAL_RUNNER_AGENT_ATTEMPT_H

#include <pthread.h>

#include "api/client/client.h"
#include "trial-runner/agent/child.h"
#include "trial-runner/agent/claimed.h"
#include "trial-runner/agent/options.h"
#include "trial-runner/agent/result_journal.h"
#include "trial-runner/agent/tail.h"
#include "trial-runner/agent/verdict.h"

typedef enum attempt_phase {
    ATTEMPT_PREPARING,
    ATTEMPT_READY,
    ATTEMPT_RUNNING,
    ATTEMPT_ENDED,
    ATTEMPT_DELIVERED,
} attempt_phase;

struct group_process;

struct attempt {
    /* Never change after creation. */
    char *sweep;
    int64_t number, attempt;
    char label[128]; /* "trial=SWEEP/NUMBER attempt=N", for logs */
    char *dir;
    const struct options *options; /* borrowed */
    struct claimed claimed;        /* empty when the attempt was recovered from disk */
    char *gpus;                    /* for CUDA_VISIBLE_DEVICES */
    bool recovered;
    struct group_process *group; /* that it is a member of; borrowed; NULL: it runs by itself */
    struct client *fetch;        /* the delivery thread's, for preparing; interrupted by a stop */
    struct client *send;         /* the delivery thread's, for results */
    int wake_fd;                 /* of the main loop; borrowed */

    pthread_mutex_t lock; /* guards phase to result */
    pthread_cond_t changed;
    attempt_phase phase;
    stop_why asked;
    struct tail tail;
    struct trial_end end;   /* from `ended` on: the delivery thread's */
    struct child_spec spec; /* the delivery thread's until `ready`, then main's */
    json_t *job;            /* likewise; of a member: {"dataset", "metric", "member"}; owned */

    bool slot_free; /* under agent.lock: it runs no more, and keeps neither slot nor GPUs */

    /* The main thread's own. */
    pthread_t delivery;
    bool has_delivery;
    pid_t pid;   /* of its own process; 0: none */
    bool joined; /* it runs as a member of its group */
    int out_fd;
    struct stopping stopping;
    bool gpu_taken[OPTIONS_MAX_GPUS];
};

/* An attempt in phase preparing, or in phase ended when `recovered` (then `found` is emptied).
 *   claimed   emptied into the attempt; or NULL when recovered
 *   gpus      text for CUDA_VISIBLE_DEVICES; borrowed
 * Owned by the caller. AS_E_NOMEM, AS_E_INVAL (the server's URL). */
AS_MUST_CHECK as_status attempt_create(const struct options *o, const char *sweep, int64_t number,
                                       int64_t attempt, struct claimed *claimed,
                                       struct trial_end *found, const char *gpus, int wake_fd,
                                       struct attempt **ret, struct as_err *err);
void attempt_free(struct attempt *a);
AS_DEFINE_FREEP(struct attempt, attempt_free)

bool attempt_is(const struct attempt *a, const char *sweep, int64_t number, int64_t attempt);

/* Thread-safe. */
attempt_phase attempt_phase_get(struct attempt *a);
void attempt_phase_set(struct attempt *a, attempt_phase phase); /* and wakes both threads */
stop_why attempt_asked(struct attempt *a);
/* Ask for a stop: ends preparing, and wakes the main loop. */
void attempt_ask_stop(struct attempt *a, stop_why why);
/* A line of ours in the trial's log. */
void attempt_note(struct attempt *a, const char *fmt, ...) AS_PRINTF(2, 3);

/* Set the result and the phase `ended`; reason is cut to VERDICT_REASON_MAX. The log is added from
 * the tail. Out of memory leaves the reason or the log away. */
void attempt_end(struct attempt *a, outcome o, const int *exit_code, const char *reason);

#endif
