/* What a rank adds up by itself: the gradients of its run of shards, while they are computed.
 *
 * Each number is scaled and added when it becomes known, in one pass over memory, as the plain
 * trainer adds up its micro-batches. So a rank keeps few vectors for many shards. The order is that
 * of the sum that follows, so the bits are those of adding later. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_OWN_SUM_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_OWN_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "trial-runner/collective/operation.h"

typedef enum own_order {
    OWN_TREE, /* the nodes of coll_tree_sum: at the end one vector for each of the fewest that cover
               * the run; before it at most one more for each level */
    OWN_LINE, /* one after another, in the order of the shards: one vector */
    OWN_EACH, /* not at all: a vector for each shard */
} own_order;

struct own_sum;

/* For vectors of n numbers and up to max_shards shards. ret: own_sum_free(). AS_E_NOMEM. */
AS_MUST_CHECK as_status own_sum_create(own_order order, size_t n, uint32_t max_shards,
                                       struct own_sum **ret, struct as_err *err);
void own_sum_free(struct own_sum *o);
AS_DEFINE_FREEP(struct own_sum, own_sum_free)

/* Begins the step, or goes on with it in another world: vectors that lie in the run stay. What a
 * vector holds beyond the run cannot be taken out of it: then its other shards are missing too. A
 * shard that was opened and not closed is missing, with all that it was merged with.
 *   run   this rank's, of `total` shards */
void own_sum_begin(struct own_sum *o, int64_t step, uint32_t total, struct shard_run run);
/* The first shard of the run that is in no vector; the end of the run if there is none. */
uint32_t own_sum_missing(const struct own_sum *o);
/* The vectors of the run are known from here on; those that `shard`, which is missing, belongs to
 * get its numbers by own_sum_add(), until own_sum_close(). AS_E_NOMEM. */
AS_MUST_CHECK as_status own_sum_open(struct own_sum *o, uint32_t shard, struct as_err *err);
/* Numbers [first, first + n) of the shard that is open are scale x values (borrowed). Each number
 * at most once; those that are never given are undefined. */
void own_sum_add(struct own_sum *o, size_t first, const float *values, size_t n, float scale);
void own_sum_close(struct own_sum *o);

/* Numbers [first, first + n) of the first vector = values, and of the others = 0: of what belongs
 * to the rank and not to a shard. All are closed. */
void own_sum_put(struct own_sum *o, size_t first, const float *values, size_t n);

/* The vectors in the order of their shards, [own_sum_count()] of n numbers; also of the shard that
 * is open. A view until the next begin or open. */
const float *const *own_sum_values(const struct own_sum *o);
size_t own_sum_count(const struct own_sum *o);

#endif
