/* What the runner's threads share: registration, the attempts it holds, its GPUs.
 *
 * Threads: main (processes), claim, heartbeat, and a delivery thread per attempt.
 * Locks, in this order: agent.lock, then attempt.lock. No lock is held during HTTP. Attempts are
 * added by the claim thread, removed and freed by main alone, both under agent.lock: whoever holds
 * it may use any attempt in the list, and main may use them without it. The same for groups. */
#ifndef ASSAY_TRIAL_RUNNER_AGENT_AGENT_H
#define ASSAY_TRIAL_RUNNER_AGENT_AGENT_H

#include "trial-runner/agent/attempt.h"
#include "trial-runner/agent/group_process.h"
#include "trial-runner/agent/group_size.h"

struct agent {
    const struct options *options; /* borrowed */
    struct client *claim_client, *beat_client;
    int wake_fd; /* an eventfd that ends the main loop's poll */

    pthread_mutex_t lock;   /* guards all below */
    pthread_cond_t changed; /* of anything below; CLOCK_MONOTONIC */
    int64_t epoch;          /* 0: not registered */
    bool register_needed;   /* the server knows this epoch no more */
    int64_t lease_ms, heartbeat_ms;
    int64_t acknowledged_ns; /* when the last answered heartbeat was sent; 0: never */
    bool draining;           /* claim nothing more */
    bool quitting;           /* the threads end */
    struct as_err fatal;     /* code AS_OK: none. Else why the runner cannot go on */
    struct attempt **attempts;
    size_t n, cap;
    struct group_process **groups;
    size_t n_groups, cap_groups;
    struct group_sizes sizes;
    bool gpu_busy[OPTIONS_MAX_GPUS];
};

/* a must be zeroed. AS_E_NOMEM, AS_E_IO, AS_E_INVAL. */
AS_MUST_CHECK as_status agent_init(struct agent *a, const struct options *o, struct as_err *err);
void agent_done(struct agent *a); /* frees attempts too; no thread may run */

void agent_wake(struct agent *a);                           /* the main loop */
void agent_fail(struct agent *a, const struct as_err *err); /* set fatal, wake all */
bool agent_wait_locked(struct agent *a, int64_t ms);        /* on `changed`; false: time is up */

/* Slots for which trials may be asked for: an attempt takes one until its process has ended, a
 * group one for all its members. What has ended and is on its way to the server may be as much
 * again as there are slots, and no more: a slow connection must not fill the disk. Under lock. */
int64_t agent_slots_free_locked(const struct agent *a);

/* Main only: note whose process has ended, so that its slot and its GPUs are free. */
void agent_free_slots(struct agent *a);

/* A group with places that were left by members, or NULL. Under lock. */
struct group_process *agent_group_to_fill_locked(const struct agent *a);
struct group_process *agent_group_find_locked(const struct agent *a, const char *id);

/* Hold one more attempt: take gpus from the free ones, create it, start its delivery thread.
 * Empties `claimed`. One that is claimed into a group joins it; the group is made when it is not
 * there, unless the attempt is a `refill` of one that was. AS_E_CONFLICT: held already, or the
 * runner drains; AS_E_EXHAUSTED: too few GPUs, or its group takes no more. */
AS_MUST_CHECK as_status agent_hold(struct agent *a, struct claimed *claimed, bool refill,
                                   struct as_err *err);

/* Hold an attempt whose result was found on disk. Empties `found`. */
AS_MUST_CHECK as_status agent_hold_result(struct agent *a, const char *sweep, int64_t number,
                                          int64_t attempt, struct trial_end *found,
                                          struct as_err *err);

/* Main only: take an attempt out of the list, give its GPUs back, join its delivery thread, free
 * it. */
void agent_release(struct agent *a, struct attempt *attempt);

/* Main only: free the groups whose process has ended, or never was, once no attempt is theirs. */
void agent_drop_groups(struct agent *a);

/* [{sweep, number, attempt}…] of what is held and not dropped. New reference, NULL: out of memory.
 */
json_t *agent_refs(struct agent *a);

/* The same of what no longer runs and whose end is on its way: a claim's `ending`. */
json_t *agent_ending_refs(struct agent *a);

/* Hand the directives of an answer to the attempts they name. */
void agent_direct(struct agent *a, const json_t *directives);

/* The claim and heartbeat threads' main functions; arg is the agent. */
void *claim_main(void *arg);
void *heartbeat_main(void *arg);

/* Say goodbye, once the threads have ended. Failures are logged. */
void heartbeat_leave(struct agent *a);

/* The main loop: runs until the runner has drained, or fatal is set. signal_fd delivers SIGTERM,
 * SIGINT, SIGHUP (drain; a second one kills) and SIGCHLD. */
void supervise(struct agent *a, int signal_fd);

#endif
