/* Which rank computes which blocks of a network. Pure. Both functions: AS_E_NOMEM. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_BLOCK_PLACEMENT_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_BLOCK_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* Divides n blocks among 1 to n stages, each of which gets one or more that follow one another, so
 * that the slowest stage, by its sum of costs times its pace, is fastest.
 *   cost    [n], of each block: >= 0
 *   pace    [stages], the time for a cost of 1: > 0; NULL: all are equally fast
 *   bounds  [stages + 1]: stage s gets blocks bounds[s] to bounds[s + 1] - 1 */
AS_MUST_CHECK as_status block_placement(const double *cost, const double *pace, size_t n,
                                        size_t stages, size_t *bounds, struct as_err *err);

/* Places the blocks anew from how long each stage took for those that it has. A block is expected
 * to take its part, by its cost, of what its stage took, and on another stage as long as the costs
 * there do.
 *   times   [stages], what each took, >= 0; afterwards its pace (0: not known)
 *   bounds  [stages + 1]: where the blocks are
 *   ret     [stages + 1]: where they would be; not `bounds`
 *   *ret_gains  the slowest stage would need at most 1 / BLOCK_GAIN of what the slowest needs */
#define BLOCK_GAIN 1.25
AS_MUST_CHECK as_status block_placement_anew(const double *cost, double *times, size_t n,
                                             size_t stages, const size_t *bounds, size_t *ret,
                                             bool *ret_gains, struct as_err *err);

#endif
