/* The running of a lockstep: steps, ends of epochs with their reports, checkpoints, artifacts.
 * Locksteps run side by side in lanes; what they share with the main thread is struct watch. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_RUN_H
#define ASSAY_TRIAL_RUNNER_TRAIN_RUN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "trial-runner/train/lockstep.h"

struct watch {
    const atomic_bool *stop;   /* every member is to stop */
    int fd;                    /* a line may come here; -1: none */
    int64_t checkpoint_ns;     /* least time between two checkpoints at epoch ends */
    atomic_bool meet;          /* locksteps shall return: the main thread has work */
    _Atomic int64_t looked_ns; /* when somebody last looked at fd */
    _Atomic uint64_t rows;     /* trained on, over all members */
    void (*started)(void *arg, const struct member *m); /* called in the lockstep's thread, once for
                                                         * each member, after its first step */
    void *arg;
};

/* Run ls until some milliseconds are over and an epoch is done, until w->meet, or until all
 * its members have ended. A member that ends (member_end) stays in its slot for the caller to take
 * out, and w->meet is set. Errors are of the device, and so of all members. */
AS_MUST_CHECK as_status run_lockstep(struct lockstep *ls, struct backend *lane, struct watch *w,
                                     struct as_err *err);

/* Write a checkpoint where the member has a place for it. A full disk, or no memory for a copy,
 * costs a checkpoint, not the training: the one before is still there, and the next may find room;
 * a warning goes to stderr. Other errors are of the device. */
AS_MUST_CHECK as_status run_save(struct lockstep *ls, size_t slot, struct as_err *err);

#endif
