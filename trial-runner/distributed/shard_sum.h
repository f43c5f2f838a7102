/* The sum of vectors, one for each shard of a step, over all ranks, in the form that the document
 * asks for: `allreduce` (in which order, by which algorithm) and `compress`.
 *
 * A vector has n numbers. The first n_params, of the replica's tensors, are compressed if a codec
 * is chosen; those behind them (statistics, loss, wishes) always travel exactly, in the order of a
 * tree.
 *
 * What is summed, and its bits, with R ranks:
 *   tree               equal bits for any R (coll_tree_sum)
 *   ring, halving      a rank adds its shards one after another, then the ranks' sums are reduced:
 *                      the bits depend on R
 *   fp16, one_bit,     each shard is encoded by itself, slice by slice; the owner of a slice adds
 *                      up
 *   top_k              the decoded shards in their order, encodes the sum, and sends it to all (as
 *                      CNTK does: Seide et al. 2014). Equal bits for any R
 *   powersgd           two sums in the order of the tree. Equal bits for any R
 *
 * With error feedback, what a shard's messages have lost stays with the shard, not with the rank:
 * so the bits do not depend on R, and a checkpoint has the same numbers for any R. It is held by
 * the rank that computes the shard. What encoding the sum has lost stays with the values. When the
 * ranks change, residuals move to the new holders; those that only a lost rank had begin anew from
 * 0: the others go on with the same step, but with other bits than undisturbed. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_SHARD_SUM_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_SHARD_SUM_H

#include "trial-runner/distributed/own_sum.h"
#include "trial-runner/distributed/strategy.h"

struct shard_sum;

/* For vectors of n >= replica->n_params numbers. setup is borrowed. ret: shard_sum_free().
 * AS_E_NOMEM, AS_E_TOO_LARGE. */
AS_MUST_CHECK as_status shard_sum_create(const struct strategy_setup *setup, size_t n,
                                         struct shard_sum **ret, struct as_err *err);
void shard_sum_free(struct shard_sum *s);
AS_DEFINE_FREEP(struct shard_sum, shard_sum_free)

/* A step, or a block of steps: the position before and after it, and how many shards it has. */
struct shard_step {
    int64_t step, next;
    uint32_t shards;
};

/* Which shards this rank computes; perhaps none. */
struct shard_run shard_sum_own(struct shard_sum *s, const struct coll *c, uint32_t shards);

/* The order in which a rank may add up its own shards, for shard_sum_merged(). */
own_order shard_sum_order(const struct shard_sum *s);

/* ret [n] = the sum over all shards.
 *   partials  of this rank's run, n numbers each; not changed
 * AS_E_UNAVAILABLE: a rank is lost; it can be repeated in the next world, after shard_sum_meet() */
AS_MUST_CHECK as_status shard_sum_all(struct shard_sum *s, struct coll *c, struct shard_step at,
                                      const float *const *partials, float *ret, struct as_err *err);

/* The same sum, with the same bits, where this rank has added up its run by itself.
 *   merged    own_sum_values() of an own_sum of that order; not changed */
AS_MUST_CHECK as_status shard_sum_merged(struct shard_sum *s, struct coll *c, struct shard_step at,
                                         const float *const *merged, float *ret,
                                         struct as_err *err);

/* Can parts of the vector be summed one after another, each as soon as it is known? So for what is
 * not compressed. */
bool shard_sum_splits(const struct shard_sum *s);
/* As shard_sum_merged, of the numbers [first, first + n): all ranks sum the same parts in the same
 * order. `tag` is equal for no two parts of a step and below SHARD_SUM_TAGS. shard_sum_own() was
 * called for this step. From any thread, one at a time. */
#define SHARD_SUM_TAGS 32768
AS_MUST_CHECK as_status shard_sum_part(struct shard_sum *s, struct coll *c, struct shard_step at,
                                       const float *const *merged, size_t first, size_t n,
                                       uint64_t tag, float *ret, struct as_err *err);

/* What a strategy passes on (struct strategy_ops). `parts` appends at most SHARD_SUM_PARTS;
 * meet comes after meeting_catch_up(). */
#define SHARD_SUM_PARTS 3
size_t shard_sum_parts(struct shard_sum *s, struct strategy_part *ret);
AS_MUST_CHECK as_status shard_sum_restored(struct shard_sum *s, bool from_checkpoint,
                                           struct as_err *err);
AS_MUST_CHECK as_status shard_sum_meet(struct shard_sum *s, struct coll *c, struct as_err *err);
bool shard_sum_gathers(const struct shard_sum *s);
AS_MUST_CHECK as_status shard_sum_gather(struct shard_sum *s, struct coll *c, struct as_err *err);

#endif
