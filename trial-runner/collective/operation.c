#include "trial-runner/collective/operation.h"

void coll_slice(size_t n, int32_t size, int32_t rank, size_t *ret_first, size_t *ret_end)
{
    size_t each = n / (size_t)size, more = n % (size_t)size, r = (size_t)rank;
    *ret_first = r * each + (r < more ? r : more);
    *ret_end = *ret_first + each + (r < more);
}

void coll_spread(uint32_t total, int32_t size, struct shard_run *ret)
{
    for (int32_t r = 0; r < size; r++) {
        size_t first, end;
        coll_slice(total, size, r, &first, &end);
        ret[r] = (struct shard_run){(uint32_t)first, (uint32_t)(end - first)};
    }
}

uint32_t shard_tree_levels(uint32_t total)
{
    uint32_t level = 0;
    while ((UINT64_C(1) << level) < total)
        level++;
    return level;
}

uint32_t shard_tree_end(uint32_t total, uint32_t first, uint32_t level)
{
    uint64_t end = first + (UINT64_C(1) << level);
    return end < total ? (uint32_t)end : total;
}

uint32_t shard_tree_largest(uint32_t total, uint32_t first, uint32_t end)
{
    uint32_t level = 0, top = shard_tree_levels(total);
    while (level < top && first % (UINT64_C(2) << level) == 0 &&
           shard_tree_end(total, first, level + 1) <= end)
        level++;
    return level;
}
