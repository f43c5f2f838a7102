/* One attempt on this runner, from its claim until the server has its result.
 *
 * Two threads share it: the main thread, which owns the process, and the attempt's delivery thread,
 * which speaks HTTP and owns the files. `phase` says which of them acts:
 *
 *   preparing  delivery: folders, checkpoints, data, the command; the claim thread with is_quick
 *   ready      main: start the process (or give up when a stop was asked for)
 *   running    main: process and output; delivery: measurements, log, checkpoints
 *   ended      delivery: deliver what is left and the result
 *   delivered  main: join the delivery thread and forget the attempt */
#ifndef ASSAY_TRIAL_RUNNER_ATTEMPT_ATTEMPT_H
#define ASSAY_TRIAL_RUNNER_ATTEMPT_ATTEMPT_H

#include <pthread.h>

#include "api/client/client.h"
#include "trial-runner/attempt/attempt_id.h"
#include "trial-runner/process/child.h"
#include "trial-runner/attempt/claimed.h"
#include "trial-runner/attempt/options.h"
#include "trial-runner/attempt/result_journal.h"
#include "trial-runner/collect/folder_watch.h"
#include "trial-runner/collect/tail.h"
#include "trial-runner/collect/usage.h"
#include "trial-runner/collect/whole_log.h"
#include "trial-runner/process/verdict.h"

/* In the folder of an attempt or group: the path is ASSAY_DEVICE_FAULT of its process, which writes
 * there why its GPU fails. */
#define DEVICE_FAULT_NAME "device-fault"

typedef enum attempt_phase {
    ATTEMPT_PREPARING,
    ATTEMPT_READY,
    ATTEMPT_RUNNING,
    ATTEMPT_ENDED,
    ATTEMPT_DELIVERED,
} attempt_phase;

struct collector;
struct group_process;
struct rank;
struct sender;

/* What preparing makes for the main thread, which owns it from phase `ready` on. */
struct attempt_launch {
    struct child_spec spec;
    json_t *container;           /* trial.container; owned; NULL: the process runs in none … */
    const char *engine;          /* … or by this engine (container_engine()) … */
    char *folder;                /* … and begins in this folder; owned */
    struct collector *collector; /* owned; NULL: trial.report asks for nothing */
    json_t *job;                 /* of a member: {"dataset", "metric", "member"}; owned */
};

/* The main thread's own. */
struct attempt_process {
    pid_t pid;   /* its own process; 0: none */
    bool joined; /* it runs as a member of its group */
    int out_fd;
    int64_t out_read;  /* bytes so far */
    int64_t out_due;   /* the value of out_read that answers … */
    unsigned out_seen; /* … this call of output_catch_up() */
    int guard_fd;      /* of its container (container.h); -1: none */
    struct stopping stopping;
    pthread_t delivery; /* the delivery thread */
    bool has_delivery;
};

/* What it holds of the machine; under agent.lock (agent/agent.h). */
struct attempt_hold {
    bool slot_free;   /* it has ended and keeps neither slot nor GPUs */
    bool waits;       /* it was claimed ahead and has no slot yet */
    int64_t since_ns; /* monotonic: when it was claimed */
    bool gpu_taken[GPUS_MAX];
    struct core_hold cores; /* its process runs on these */
};

/* What a rank (rank/rank.h) does when something happens to its attempt. */
struct attempt_rank_fns {
    void (*free)(struct rank *r);
    void (*interrupt)(struct rank *r);    /* end its requests: the runner gives up */
    void (*ended_locked)(struct rank *r); /* `end` is set; under the attempt's lock */
    /* Add to what the server hears with a heartbeat or, `is_last`, with the end of the attempt;
     * under the attempt's lock. Returns false if memory is out. */
    bool (*add_progress_locked)(const struct rank *r, bool is_last, json_t *ref);
};

struct attempt {
    /* Never change after creation. */
    struct attempt_id id; /* its text is `sweep` */
    char *sweep;
    char label[160]; /* attempt_id_label, for logs */
    char *dir;
    const struct options *options; /* borrowed */
    struct claimed claimed;        /* empty when the attempt was recovered from disk */
    char *gpus;                    /* for CUDA_VISIBLE_DEVICES */
    bool recovered;
    bool is_quick; /* who holds it prepares it (prepare_is_quick()), and not its delivery thread */
    struct group_process *group;             /* borrowed; NULL: it has a process of its own */
    struct rank *rank;                       /* owned; its part in a gang; NULL: none */
    const struct attempt_rank_fns *rank_fns; /* of `rank` */
    int wake_fd;                             /* of the main loop; borrowed */

    /* What the threads share: everything up to `end` is under the lock. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    attempt_phase phase;
    stop_why asked;
    char *directed;   /* owned: why early stopping ends it; NULL: it does not */
    int64_t began_ns; /* monotonic: when its process was started, or it joined its group; 0: not
                         yet */
    pid_t session; /* of the processes that do its work; 0: not known. A group's is that of all */
    struct usage use; /* what they have used of the machine, or its share of it */
    int64_t use_cpu_ms,
        use_read_ns;   /* of the session, at the last reading; use_read_ns 0: there was
                                        none */
    int64_t waited_ms; /* for its slot, since it was claimed ahead */
    int told;          /* what the server has heard of its phase; 0: nothing */
    bool precedes;     /* a claim for its slot is about to be sent, and goes before its result */
    bool is_let_go;    /* with is_quick: who prepared it does not use it any more */
    struct tail tail;
    struct whole_log
        *whole;         /* owned: all of the output; NULL: it is not kept. It has its own lock */
    int64_t written_ns; /* when a file of its measurements was first written since they were
                         * read; 0: none was */
    unsigned out_asked, out_passed; /* output_catch_up(): how often it was called, and answered */
    struct trial_end end;           /* the delivery thread's, from phase `ended` on */

    /* The delivery thread's own. */
    struct client *fetch;  /* for preparing; a stop interrupts it */
    struct client *send;   /* for results */
    struct sender *sender; /* for ends and measurements; borrowed; set before the thread starts */
    struct folder_watch *watch;      /* likewise; NULL: the system allows none */
    struct folder_listener listener; /* to its folder */
    char *tmp;  /* owned: the folder of its program for temporary files; NULL: none */
    char *lost; /* owned: why its checkpoint cannot be used, until the server has heard; NULL: it
                 * can */

    struct attempt_launch launch;
    struct attempt_process process;
    struct attempt_hold hold;
};

/* Create an attempt. With `claimed` it is in phase preparing; with `found`, the result of an
 * attempt of the previous runner, it is in phase ended.
 *   id        borrowed; its text is copied
 *   claimed   NULL, or moved into the attempt and emptied
 *   found     NULL, or moved into the attempt and emptied
 *   gpus      text for CUDA_VISIBLE_DEVICES; borrowed
 * Owned by the caller. AS_E_NOMEM, AS_E_INVAL (the server's URL). */
AS_MUST_CHECK as_status attempt_create(const struct options *o, const struct attempt_id *id,
                                       struct claimed *claimed, struct trial_end *found,
                                       const char *gpus, int wake_fd, struct attempt **ret,
                                       struct as_err *err);
void attempt_free(struct attempt *a);
AS_DEFINE_FREEP(struct attempt, attempt_free)

bool attempt_is(const struct attempt *a, const struct attempt_id *id);

/* Thread-safe. */
attempt_phase attempt_phase_get(struct attempt *a);
/* Its process has been started: the phase `running`, and the time from which ran_ms counts.
 * `session`: of its processes; 0: it has none. */
void attempt_began(struct attempt *a, pid_t session, int64_t now_ns);
/* It was claimed ahead, and has its slot after so long: the server shall count from there. */
void attempt_has_waited(struct attempt *a, int64_t ms);
void attempt_phase_set(struct attempt *a, attempt_phase phase); /* wakes both threads */
stop_why attempt_asked(struct attempt *a);
/* Ask for a stop: interrupts preparing and wakes the main loop. */
void attempt_ask_stop(struct attempt *a, stop_why why);
void attempt_ask_stop_locked(struct attempt *a, stop_why why);
/* The server has decided to pause or to prune its trial (`why`), for this reason, which the trial's
 * log and the end of the attempt tell. Ask for the stop. A repeated directive changes nothing. */
void attempt_end_early(struct attempt *a, stop_why why, const char *reason);
/* Wake all who wait for the attempt: its threads, and the main loop. */
void attempt_wake_locked(struct attempt *a);
/* End the requests of its delivery: the runner gives up. A later start sends what is on disk. */
void attempt_give_up(struct attempt *a);
/* Add to the trial's log: to its tail, and to the whole of it. */
void attempt_add_output(struct attempt *a, const char *bytes, size_t len);
/* Add a line of the runner's to the trial's log. */
void attempt_note(struct attempt *a, const char *fmt, ...) AS_PRINTF(2, 3);

/* Its process did not end within its grace period, and is killed: if early stopping had told it to
 * end, its log says so. Main only. */
void attempt_note_killed(struct attempt *a);

/* Returns a new reference to its id (attempt_id_json), or NULL if memory is out. With
 * `phase`, the object says where the process is ("phase", "ran_ms"), unless the server has heard
 * it. An end is said until the attempt is delivered: the result may take long, and the server must
 * not take that for a trial that still runs. */
json_t *attempt_ref_new(struct attempt *a, bool phase, int64_t now_ns);
/* The server has answered a request with this object. */
void attempt_ref_heard(struct attempt *a, const json_t *ref);
/* The server has forgotten what it heard: say everything again. */
void attempt_say_again(struct attempt *a);

/* Its slot is free: a claim goes before its result (true), or that is being sent (false). */
void attempt_precedes(struct attempt *a, bool is);
/* For the delivery thread: wait until that claim is being sent, but not long. */
void attempt_await_claim(struct attempt *a);

/* Set the result and the phase `ended`. The log is copied from the tail. reason is cut to
 * VERDICT_REASON_MAX; an outcome paused or pruned has the reason of the directive instead. If
 * memory is out, the result lacks the reason or the log. */
void attempt_end(struct attempt *a, outcome o, const int *exit_code, const char *reason);
/* If a decision of early stopping stands, it is the outcome, whatever the process did. For the
 * delivery thread, in phase `ended`: a directive may come with the answer to the last
 * measurements. */
void attempt_obey(struct attempt *a);

#endif
