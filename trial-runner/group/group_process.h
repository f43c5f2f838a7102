/* The process of a group: one process of the built-in trainer that trains several trials of one
 * shape at once. trial-runner/protocol/control.h has the messages between runner and trainer.
 *
 * The attempts of a group are attempts like others: each has its folder, its delivery thread, its
 * lease and its result. They share the process. It is started when the first of them is ready. Each
 * member is added over a socket when it is ready, and its end comes back over the socket. When the
 * process dies, the members that had not ended are tried again, alone, so that one bad member
 * cannot make the others fail twice. */
#ifndef ASSAY_TRIAL_RUNNER_GROUP_GROUP_PROCESS_H
#define ASSAY_TRIAL_RUNNER_GROUP_GROUP_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "trial-runner/protocol/control.h"
#include "trial-runner/process/child.h"
#include "trial-runner/attempt/claimed.h"
#include "trial-runner/group/group_output.h"
#include "trial-runner/attempt/options.h"

#define GROUPS_FOLDER ".groups" /* below WORK/trials; its dot keeps the journal from it */

struct attempt;

struct group_process {
    /* Never change after creation. */
    char *id, *shape;
    char *dir;           /* WORK/trials/.groups/ID: job.json; the process's ASSAY_REPORT is in it */
    int64_t max_members; /* K */
    int64_t asked_for;   /* members that this runner wanted for the shape at its creation */
    char *gpus;          /* for CUDA_VISIBLE_DEVICES */
    bool gpu_taken[GPUS_MAX];
    struct core_hold cores; /* its process runs on these */

    /* Under agent.lock. */
    size_t held, most_held; /* its attempts in the agent's list: now, and the most so far */
    bool closed;            /* takes no more members */
    bool slot_free;         /* its process has ended: it keeps neither slot nor GPUs */

    /* The main thread's own. */
    pid_t pid;    /* 0: not started, or ended */
    char *cgroup; /* owned; of its process; NULL: none */
    bool over;    /* it was started and has ended */
    int out_fd, control_fd;
    struct group_output output;
    struct control_lines in;
    struct str out; /* bytes that could not be written yet */
    bool close_sent;
    int64_t empty_since_ns; /* no member left and `close` sent; 0: not yet */
};

/* Create the group that a claim names, without members and process. Owned by the caller.
 * AS_E_NOMEM, AS_E_INVAL. */
AS_MUST_CHECK as_status group_process_create(const struct options *o,
                                             const struct claimed_group *named, const char *gpus,
                                             struct group_process **ret, struct as_err *err);
void group_process_free(struct group_process *g);
AS_DEFINE_FREEP(struct group_process, group_process_free)

/* ---- the main thread alone calls these ---- */

/* Add a member that is ready. The first one starts the process. AS_E_CONFLICT: the process has
 * ended already. Other errors as child_spawn. */
AS_MUST_CHECK as_status group_process_add_member(struct group_process *g, struct attempt *t,
                                                 struct as_err *err);

/* Ask the trainer to end a member: with a checkpoint, or at once. */
void group_process_stop_member(struct group_process *g, const struct attempt *t,
                               bool with_checkpoint);

/* Send the trainer, once, that no more members come. */
void group_process_close(struct group_process *g);

/* Write the bytes that wait. Call it when control_fd is writable. */
void group_process_flush(struct group_process *g);

/* Called for each event of the trainer. */
typedef void group_process_event_fn(void *arg, struct group_process *g,
                                    const struct control_event *e);

/* Read the events that the trainer has sent. After a line that breaks the protocol the process is
 * killed. */
void group_process_read(struct group_process *g, group_process_event_fn *on_event, void *arg);

/* The process is a zombie: reap it, as child_take_end does, and read the events that it sent
 * before. */
void group_process_take_end(struct group_process *g, group_process_event_fn *on_event, void *arg,
                            int *ret_wait_status);

/* The member's id in the protocol: "SWEEP/NUMBER.ATTEMPT". */
#define GROUP_MEMBER_ID_SIZE 128
void group_process_member_id(const struct attempt *t, char ret[GROUP_MEMBER_ID_SIZE]);

#endif
