/* The tree over the shards of a batch, on the host: the order of additions of coll_tree_sum
 * (collective.h), for ranks that add what others have sent. Pure.
 *
 * Node (first, level) covers shards first to first + 2^level - 1, as far as there are so many; its
 * value is the sum of its left and its right child. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_SHARD_TREE_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_SHARD_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "trial-runner/collective/operation.h"

#define SHARD_TREE_NODES 64 /* no run needs more */

struct shard_node {
    uint32_t first, level;
    const float *value;
};

/* The fewest nodes that cover a run of `total` shards, in order; their values are not set. ret:
 * SHARD_TREE_NODES. Returns how many. */
size_t shard_tree_cover(uint32_t total, struct shard_run run, struct shard_node *ret);

/* to = the value of a node, n numbers, from known nodes below it (in order, without overlap). What
 * no known node covers is left out of the sum; without any, `to` is 0. AS_E_NOMEM. */
AS_MUST_CHECK as_status shard_tree_sum(uint32_t total, struct shard_node of,
                                       const struct shard_node *known, size_t n_known, float *to,
                                       size_t n, struct as_err *err);
/* The node that covers all shards. */
struct shard_node shard_tree_root(uint32_t total);

#endif
