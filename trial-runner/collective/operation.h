/* What operations and algorithms share: names, slices, shards. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECTIVE_OPERATION_H
#define ASSAY_TRIAL_RUNNER_COLLECTIVE_OPERATION_H

#include <stddef.h>
#include <stdint.h>

/* What an operation is about; equal on all ranks. */
struct coll_id {
    uint64_t step;
    uint64_t tag;     /* which tensor or bucket */
    const char *what; /* its name, for messages; borrowed; may be NULL */
};

/* Items of slice `rank` when n items are cut into `size` slices that differ by
 * at most one item: first and one past the last. */
void coll_slice(size_t n, int32_t size, int32_t rank, size_t *ret_first, size_t *ret_end);

/* Which shards a rank has summed: `count` from `first`. */
struct shard_run {
    uint32_t first, count;
};

/* Spreads `total` shards over `size` ranks: runs whose lengths differ by at most one. Ranks beyond
 * `total` get none. ret: `size` runs. */
void coll_spread(uint32_t total, int32_t size, struct shard_run *ret);

/* The binary tree over `total` shards: node k of level l covers shards k 2^l to (k+1) 2^l - 1, as
 * far as there are any. How many levels are above the shards; one past the last shard of the node
 * that begins at `first`; the level of the largest node that begins at `first` and ends at `end` or
 * before. */
uint32_t shard_tree_levels(uint32_t total);
uint32_t shard_tree_end(uint32_t total, uint32_t first, uint32_t level);
uint32_t shard_tree_largest(uint32_t total, uint32_t first, uint32_t end);

#endif
