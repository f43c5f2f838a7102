/* What the runner's threads share: registration, the attempts it holds, its GPUs.
 *
 * Threads: main (processes), claim, heartbeat, and a delivery thread per attempt. Locks, in this
 * order: agent.lock, then attempt.lock. No thread holds a lock during HTTP. The claim thread adds
 * attempts to the list; main alone removes and frees them; both hold agent.lock for it. So a thread
 * that holds agent.lock may use any attempt in the list, and main may use them without it. The same
 * holds for groups. */
#ifndef ASSAY_TRIAL_RUNNER_AGENT_AGENT_H
#define ASSAY_TRIAL_RUNNER_AGENT_AGENT_H

#include "trial-runner/agent/pace.h"
#include "trial-runner/attempt/attempt.h"
#include "trial-runner/delivery/sender.h"
#include "trial-runner/group/group_process.h"
#include "trial-runner/group/group_size.h"

struct agent {
    const struct options *options; /* borrowed */
    struct client *claim_client, *beat_client;
    struct sender *sender;      /* of all attempts */
    struct folder_watch *watch; /* likewise; NULL: the system allows none */
    int wake_fd;                /* an eventfd that ends the main loop's poll */

    pthread_mutex_t lock;   /* guards all below */
    pthread_cond_t changed; /* anything below has changed; CLOCK_MONOTONIC */
    pthread_cond_t room;    /* of the claim thread: so it has, or there is room for a trial */
    int64_t epoch;          /* 0: not registered */
    bool register_needed;   /* the server does not know this epoch any more */
    int64_t lease_ms, heartbeat_ms;
    int64_t acknowledged_ns; /* when the last answered heartbeat was sent; 0: never */
    bool draining;           /* claim nothing more */
    bool told_to_leave;      /* the server asks this runner to drain */
    bool quitting;           /* the threads end */
    struct as_err fatal;     /* why the runner cannot continue; code AS_OK: it can */
    struct as_err refused;   /* what the server said of the token at the last heartbeat; code AS_OK:
                              * it took it */
    struct attempt **attempts;
    size_t n, cap;
    struct group_process **groups;
    size_t n_groups, cap_groups;
    struct group_sizes sizes;
    struct pace pace; /* of sweeps whose trials may be claimed ahead */
    bool gpu_busy[GPUS_MAX];
    char *gpu_fault[GPUS_MAX]; /* owned: why it is set aside, for the life of this runner; NULL: it
                                * is not */
    unsigned faults, faults_sent; /* how many were found, and the server has heard of */
};

/* a must be zeroed. AS_E_NOMEM, AS_E_IO, AS_E_INVAL. */
AS_MUST_CHECK as_status agent_init(struct agent *a, const struct options *o, struct as_err *err);
void agent_done(struct agent *a); /* frees the attempts too; all threads must have ended */

void agent_wake(struct agent *a);                           /* wake the main loop */
void agent_fail(struct agent *a, const struct as_err *err); /* set fatal, wake all */
bool agent_wait_locked(struct agent *a, int64_t ms);        /* for `changed`; false: time is up */
void agent_changed_locked(struct agent *a);                 /* wake all threads that wait */

/* Returns how many slots are free. An attempt takes a slot until its process has ended, unless it
 * waits for one; a group takes one slot for all its members. At most as many results as there are
 * slots may be on their way to the server; each one more costs a slot, so that a slow connection
 * cannot fill the disk. Under lock. */
int64_t agent_slots_free_locked(const struct agent *a);

/* Main only: free the slots and GPUs of attempts and groups whose processes have ended, and give
 * free slots to attempts that wait for one (ahead.c). */
void agent_free_slots(struct agent *a);

/* Main only: the process of this attempt has ended, and what it left is about to be killed. Frees
 * its slot, so that the next trial, which waits for it, follows at once, or is asked for meanwhile;
 * main starts no process before that is done. Not with GPUs, which its end may report as broken,
 * and not of a rank or a member. */
void agent_free_slot_early(struct agent *a, struct attempt *t);

/* Returns an open group that members have left, so that it has free places, or NULL. Under lock. */
struct group_process *agent_group_to_fill_locked(const struct agent *a);
struct group_process *agent_group_find_locked(const struct agent *a, const char *id);

/* How many GPUs are free and not set aside. *ret_least_bytes is the memory of the smallest of them;
 * 0: not known. Under lock. */
int64_t agent_gpus_free_locked(const struct agent *a, int64_t *ret_least_bytes);

/* Main only: a process that had the GPUs `taken` has ended with 75. If it left a fault in its
 * folder (DEVICE_FAULT_NAME), set these GPUs aside, or all: they are not handed out again, and the
 * server hears of it. */
void agent_note_fault(struct agent *a, const bool taken[GPUS_MAX], const char *dir);

/* [{"gpu", "reason"}…] of the GPUs that are set aside: a new reference, or NULL if memory is
 * out. */
json_t *agent_faults_json(struct agent *a);

typedef enum hold_kind {
    HOLD_IN_SLOT,  /* there is a slot for it */
    HOLD_IN_GROUP, /* it fills a group */
    HOLD_AHEAD     /* it was claimed ahead, and waits for a slot if none is free by now */
} hold_kind;

/* Hold one more attempt: take GPUs for it, create it, start its delivery thread. Empties `claimed`.
 * An attempt that is claimed into a group joins the group. If the group does not exist, it is
 * created, unless the attempt is to fill one, which has ended. AS_E_CONFLICT: the attempt
 * is held already, or the runner drains; AS_E_EXHAUSTED: too few GPUs, or its group takes no
 * more. */
AS_MUST_CHECK as_status agent_hold(struct agent *a, struct claimed *claimed, hold_kind kind,
                                   struct as_err *err);

/* Hold an attempt whose result was found on disk, or its output alone. Empties `found`. */
AS_MUST_CHECK as_status agent_hold_result(struct agent *a, const struct attempt_id *id,
                                          struct trial_end *found, struct as_err *err);

/* Main only: join an attempt's delivery thread, take it out of the list, free its GPUs and
 * itself. */
void agent_release(struct agent *a, struct attempt *attempt);

/* End the deliveries of all attempts (attempt_give_up). */
void agent_give_up(struct agent *a);

/* Main only: free the groups that have no process and no attempts. */
void agent_drop_groups(struct agent *a);

/* Returns the attempts that are held and not dropped, each with what the server has to hear about
 * its process (attempt_ref_new): a new reference, or NULL if memory is out. */
json_t *agent_refs(struct agent *a);
/* The server has answered a request with that list. */
void agent_refs_heard(struct agent *a, const json_t *refs);
/* Say the phase of each attempt again. */
void agent_say_again(struct agent *a);

/* Returns the ids (attempt_id_json) of attempts that have ended and whose results are on their
 * way, and for a claim ahead also of those that end soon: the `ending` of a claim that is about to
 * be sent. The results may be sent now. */
json_t *agent_ending_refs(struct agent *a, bool is_ahead);

/* Pass the directives of an answer to the attempts that they name. */
void agent_direct(struct agent *a, const json_t *directives);

/* The server asks this runner to drain: main begins with it. */
void agent_tell_to_leave(struct agent *a);

/* Attempts that wait for a slot (ahead.c). */

/* Main only: the process of this attempt has ended. Note whether it was short. Under
 * agent.lock. */
void ahead_note_locked(struct agent *a, struct attempt *t);

/* How many attempts wait for a slot. Under agent.lock. */
int64_t ahead_waiting_locked(const struct agent *a);

/* How many trials to claim ahead now. Under agent.lock. */
int64_t ahead_wanted_locked(const struct agent *a);

/* Is its process about to end, so that a trial may be claimed for its slot? Under agent.lock. */
bool ahead_ends_soon_locked(const struct agent *a, struct attempt *t);

/* Main only: give free slots to the attempts that wait, the longest first. Under agent.lock. */
void ahead_hand_on_locked(struct agent *a);

/* Main only: a process has begun. Wake the claim thread if it has something to ask for. */
void ahead_wake_claims(struct agent *a);

/* Main only: if it has waited too long, ask it to stop, so that it goes back to the server. */
void ahead_give_back_if_late(struct attempt *t, int64_t now_ns);
/* When that is due; INT64_MAX: it does not wait. */
int64_t ahead_late_ns(const struct attempt *t);

/* The claim and heartbeat threads' main functions; arg is the agent. */
void *claim_main(void *arg);
void *heartbeat_main(void *arg);
/* Likewise of the thread that measures what the processes of the attempts use. */
void *measure_use_main(void *arg);

/* Send the server `leave`, after the threads have ended. Failures are logged. */
void heartbeat_leave(struct agent *a);

/* The main loop. Returns when the runner has drained or `fatal` is set. signal_fd delivers SIGTERM,
 * SIGINT, SIGHUP, SIGUSR1 and SIGUSR2 (drain; a second one kills, unless it comes within a second),
 * and SIGCHLD. */
void supervise(struct agent *a, int signal_fd);

#endif
