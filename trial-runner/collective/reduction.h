/* How two values become one. Collectives know items by their size only; what an item is, and how
 * two are combined, is here. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECTIVE_REDUCTION_H
#define ASSAY_TRIAL_RUNNER_COLLECTIVE_REDUCTION_H

#include <stddef.h>

/* ret[i] = a[i] (op) b[i] for n items. ret may be a or b; the three do not overlap otherwise. */
typedef void reduction_fn(void *ret, const void *a, const void *b, size_t n);

struct reduction {
    const char *name;
    size_t item_bytes; /* a power of two, at most 8 */
    reduction_fn *combine;
};

extern const struct reduction reduce_f32_sum;
extern const struct reduction reduce_f64_sum;
extern const struct reduction reduce_u64_sum; /* wraps */
extern const struct reduction reduce_f64_max; /* a NaN wins */

#endif
