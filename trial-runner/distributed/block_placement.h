/* Which rank computes which blocks of a network. Pure. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_BLOCK_PLACEMENT_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_BLOCK_PLACEMENT_H

#include <stddef.h>

/* Divides n blocks among 1 to n stages, each of which gets one or more that follow one another, so
 * that the largest sum of costs of a stage is least.
 *   cost    [n], of each block: >= 0
 *   bounds  [stages + 1]: stage s gets blocks bounds[s] to bounds[s + 1] - 1 */
void block_placement(const double *cost, size_t n, size_t stages, size_t *bounds);

#endif
