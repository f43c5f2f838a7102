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
