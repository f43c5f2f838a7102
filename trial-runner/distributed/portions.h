/* How a step's shards are divided among ranks of different speed: a slow rank gets fewer, so that
 * all are ready at the same time (DistBelief's Sandblaster: Dean et al. 2012). Pure. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_PORTIONS_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_PORTIONS_H

#include <stdint.h>

#include "trial-runner/collective/collective.h"

/* ret [n] = runs that cover `total` shards, by rank, in order.
 *   seconds   [n]: of a shard, by rank; equal on all ranks. 0: not known, then it is as quick as
 *             the mean of the others */
void portions(const double *seconds, int32_t n, uint32_t total, struct shard_run *ret);

#endif
