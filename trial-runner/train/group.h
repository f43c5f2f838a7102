/* Trains a group: up to `slots` members of one shape at a time in this process. When a member ends,
 * another may take its slot. A single trial is a group of one that no other member joins. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_GROUP_H
#define ASSAY_TRIAL_RUNNER_TRAIN_GROUP_H

#include <stdatomic.h>
#include <stdint.h>

#include "trial-runner/train/channel.h"
#include "trial-runner/train/job.h"
#include "trial-runner/train/team.h"

struct group_opts {
    atomic_bool
        *stop; /* all members write checkpoints and end; a signal handler may set it, because
                        * it is lock-free */
    int64_t checkpoint_ns;  /* least time between two checkpoints at ends of epochs */
    size_t threads;         /* of the cpu back end */
    size_t memory_bytes;    /* limit of what the group allocates on the device; 0: none */
    struct team_opts ranks; /* of a large trial */
};

/* Run the job to its end. Returns the exit code of the process (README.md). Errors of members and
 * of the group are sent over the channel and written to stderr. The arguments are borrowed. */
int group_run(const struct job *job, struct channel *channel, const struct group_opts *opts);

#endif
