/* The sum of a step, in buckets that leave while the gradient is still being computed.
 *
 * The parameters are cut into ranges (buckets), last layers first, as the backward pass completes
 * them. When the numbers of this rank's last shard are known for a whole bucket, its sum begins in
 * the collective's thread. All ranks sum the buckets in the same order, then what is not known
 * before the end: statistics, loss, wishes. Bits: those of the whole sum in the order of a tree;
 * with a ring or halving, those of a sum of each bucket.
 *
 * PyTorch's DistributedDataParallel and Poseidon's wait-free backpropagation do the same. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_BUCKETS_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_BUCKETS_H

#include "trial-runner/distributed/shard_sum.h"

#define BUCKET_NUMBERS ((size_t)256 << 10) /* 1 MiB: far above the cost of beginning a sum */

struct buckets;

/* For vectors of n numbers, of which the first n_params belong to a gradient. `sums` is borrowed.
 * *ret is NULL if buckets are of no use: they are few, or the sum cannot be split. That is equal on
 * all ranks. ret: buckets_free(). AS_E_NOMEM. */
AS_MUST_CHECK as_status buckets_create(struct shard_sum *sums, size_t n_params, size_t n,
                                       struct buckets **ret, struct as_err *err);
void buckets_free(struct buckets *b);
AS_DEFINE_FREEP(struct buckets, buckets_free)

/* A step begins. All is borrowed until buckets_end(), which must follow.
 *   own   of this rank's run; all its shards are closed but the last, which may not be open yet
 *   sum   [n] */
void buckets_begin(struct buckets *b, struct coll *c, struct shard_step at,
                   const struct own_sum *own, float *sum);
/* Numbers [first, first + n) of the last shard were added. Each number is reported at most once. */
void buckets_complete(struct buckets *b, size_t first, size_t n);
/* All of it is complete: sums what is left, and waits for all sums. Errors as shard_sum_all. */
AS_MUST_CHECK as_status buckets_end(struct buckets *b, struct as_err *err);
/* The partials could not be computed: ends this rank's part in the world, and waits. */
void buckets_abandon(struct buckets *b);

size_t buckets_count(const struct buckets *b); /* of a step */
/* Buckets of this step, or of the last one, whose sum was begun before buckets_end, and those whose
 * sum has ended by now. */
size_t buckets_begun_early(const struct buckets *b);
size_t buckets_summed(struct buckets *b);

#endif
