/* The state of a group, for group.c and seating.c. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_GROUP_PRIV_H
#define ASSAY_TRIAL_RUNNER_TRAIN_GROUP_PRIV_H

#include <stdio.h>

#include "trial-runner/train/group.h"
#include "trial-runner/train/lockstep.h"
#include "trial-runner/train/row_roles.h"
#include "trial-runner/train/run.h"

#define MAX_WAITING ((size_t)256) /* most members that wait for a slot */

/* What has happened since throughput was last sent. */
struct throughput {
    int64_t since_ns;
    uint64_t rows; /* watch.rows at since_ns */
    size_t most;   /* members that trained side by side */
    size_t done;   /* members that ended well */
    bool was_sent; /* at least one event before */
};

struct group {
    const struct job *job;
    struct channel *channel;
    const struct group_opts *opts;
    struct row_roles roles;
    struct train_data data;
    struct partitions *partitions; /* of a rank that holds some of the rows; else NULL */
    struct backend *be;
    struct device_data *device;
    struct lockstep_setup setup;
    char *signature;   /* of every member; NULL before the first */
    bool fused;        /* one lockstep for all members, instead of one for each */
    size_t slots;      /* at most job->slots: as many as the device has room for */
    size_t bytes;      /* of one slot, on the device */
    int exit_on_error; /* of the process, for the error that ended it; 0: not decided yet */
    struct watch watch;
    struct member *waiting[MAX_WAITING]; /* in order of arrival; owned, as those in locksteps are */
    size_t n_waiting;
    struct lockstep *lockstep[CONTROL_MAX_SLOTS]; /* owned */
    size_t n_locksteps;
    struct member *growing; /* the one in training, of those without a network; owned */
    atomic_size_t begun;    /* locksteps whose turn in this round has begun */
    bool closed;            /* no more members join */
    int exit;               /* of the last member that ended; the process's, in the single form */
    struct throughput throughput;
    struct team *team; /* this process is a rank of a large trial; else NULL, as the next */
    struct shared_step *shared; /* once its member has a slot */
    atomic_bool never;          /* ranks stop together: a stop of one is a request to all */
};

/* Send the end of a member and free it. `why` may be NULL. */
void group_dismiss(struct group *g, struct member *m, int exit, const struct as_err *why);

/* Load and split the data as a member's document asks. */
AS_MUST_CHECK as_status group_load_data(struct group *g, const struct train_spec *spec,
                                        struct as_err *err);

/* Wait at most timeout_ms for lines of the runner, and obey them. */
void group_listen(struct group *g, int timeout_ms);

/* Log and send the end of a member, m->ended, and free it. */
void group_finish(struct group *g, struct member *m);

/* Send the rows per second if it is time (group.c). */
void group_send_throughput(struct group *g, bool is_last);

/* End the waiting members whose signature is not the group's. */
void group_dismiss_other_shapes(struct group *g);

/* Remove the first n waiting members from the list. */
void group_forget_waiting(struct group *g, size_t n);

/* How members train that need no back end (one_by_one.c). */
struct lone_ops {
    /* Loads the data, as the first member's document asks, sets g->setup, and ends with
     * group_open_one_by_one(). */
    as_status (*open)(struct group *g, const struct member *m, struct as_err *err);
    /* ret: a trial, freed with `free`, which accepts NULL. AS_E_IO: worth another try. */
    as_status (*create)(struct group *g, struct member *m, void **ret, struct as_err *err);
    void (*slice)(void *trial, struct watch *w); /* a turn; sets m->ended at the last one */
    void (*free)(void *trial);
};

/* Train members, the first of which waits, one after another to the end of the group. An error is
 * one of the whole group. */
AS_MUST_CHECK as_status group_run_one_by_one(struct group *g, const struct lone_ops *ops,
                                             struct as_err *err);
/* Set what the group is for, and send the runner that it is ready: a member needs `bytes`. */
AS_MUST_CHECK as_status group_open_one_by_one(struct group *g, const struct member *m,
                                              size_t inputs, size_t bytes, struct as_err *err);

/* That of models of trees and of neighbours. */
AS_MUST_CHECK as_status group_run_trees(struct group *g, struct as_err *err);

/* That of k-means; this process may be a rank. */
AS_MUST_CHECK as_status group_run_kmeans(struct group *g, struct as_err *err);

/* Send the runner what the group needs, and how many members it has room for. */
void group_send_ready(struct group *g, const struct member *m);

/* Set g->slots to the members that the device has room for beside the data, which is there already.
 * With g->bytes 0 only check that the data fits. AS_E_NOMEM: not even one would fit, were the
 * device empty. */
AS_MUST_CHECK as_status group_fit_device(struct group *g, struct as_err *err);

/* Give free slots to waiting members. A member that cannot begin is dismissed; an error is one of
 * the whole group. */
AS_MUST_CHECK as_status group_seat_waiting(struct group *g, struct as_err *err);

/* Free lockstep i, which has no members. */
void group_drop_lockstep(struct group *g, size_t i);

#endif
