#include "trial-runner/collective/operation.h"

void coll_slice(size_t n, int32_t size, int32_t rank, size_t *ret_first, size_t *ret_end)
{
    size_t each = n / (size_t)size, more = n % (size_t)size, r = (size_t)rank;
    *ret_first = r * each + (r < more ? r : more);
    *ret_end = *ret_first + each + (r < more);
}
