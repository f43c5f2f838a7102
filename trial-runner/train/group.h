/* A group: up to `slots` members of one shape in this process, one after another in each slot, from
 * the first to the last. A single trial is a group of one that nobody joins. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_GROUP_H
#define ASSAY_TRIAL_RUNNER_TRAIN_GROUP_H

#include <stdatomic.h>
#include <stdint.h>

#include "trial-runner/train/channel.h"
#include "trial-runner/train/job.h"

struct group_opts {
    atomic_bool *stop; /* set from outside, by a signal's handler too (it is lock-free): all members
                        * write checkpoints and end */
    int64_t checkpoint_ns; /* least time between two checkpoints at epoch ends */
    size_t threads;        /* of the cpu back end */
    size_t memory_bytes;   /* most that the group may allocate on the device; 0: no limit */
};

/* Run the job to its end and yield the exit code of the process (README.md). Errors of members and
 * of the group are told over the channel and on stderr. The arguments are borrowed. */
int group_run(const struct job *job, struct channel *channel, const struct group_opts *opts);

#endif
