/* The state of blocks that ranks hold by themselves: weights, moments and running statistics of
 * each block, on the rank that computes it and, with two copies, on another one, which applies the
 * same gradients. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_BLOCK_STATE_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_BLOCK_STATE_H

#include "trial-runner/distributed/strategy.h"

/* Where blocks are in a world. Rank s is stage s, and computes blocks bounds[s] to
 * bounds[s + 1] - 1; ranks from `stages` on compute none. With copies those of stage s are on stage
 * (s + 1) % stages, too. */
struct block_places {
    size_t stages;
    const size_t *bounds; /* [stages + 1] */
    bool copied;          /* stages > 1 */
};

/* The blocks of a rank: *ret_first = *ret_end if it has none. */
void block_places_own(const struct block_places *p, int32_t rank, size_t *ret_first,
                      size_t *ret_end);
void block_places_copies(const struct block_places *p, int32_t rank, size_t *ret_first,
                         size_t *ret_end);

/* What has been computed for some consecutive blocks in a step, to be applied: the sums of
 * gradients, then those of running statistics, of all of them. */
struct block_sums {
    size_t first, end;
    const float *values;
};
size_t block_sums_length(const struct replica_blocks *b, size_t first, size_t end);

struct block_states;

AS_MUST_CHECK as_status block_states_create(struct replica *replica, struct block_states **ret,
                                            struct as_err *err);
void block_states_free(struct block_states *s);
AS_DEFINE_FREEP(struct block_states, block_states_free)

/* A checkpoint was read: the whole state is at the replica. */
void block_states_restored(struct block_states *s);

/* Applies the sums of step `step` to blocks that are here, with the document's optimizer, after a
 * multiplication by `scale`; with `active` false the weights stay. What fails leaves nothing to go
 * on with. */
AS_MUST_CHECK as_status block_states_apply(struct block_states *s, struct backend *lane,
                                           int64_t step, const struct block_sums *sums, float scale,
                                           bool active, struct as_err *err);

/* All ranks, at the replica's position: afterwards each has the blocks of its places, and no
 * others. Nothing is given up before all have theirs. AS_E_STALE: a block was lost with its
 * ranks. */
AS_MUST_CHECK as_status block_states_move(struct block_states *s, struct coll *c,
                                          const struct block_places *places, struct as_err *err);

/* Gives the replica the weights of blocks [first, end), which it holds. */
AS_MUST_CHECK as_status block_states_put(const struct block_states *s, size_t first, size_t end,
                                         struct as_err *err);

/* All ranks: the whole state at rank 0's replica. */
AS_MUST_CHECK as_status block_states_gather(const struct block_states *s, struct coll *c,
                                            const struct block_places *places, struct as_err *err);

/* Bytes of weights, moments and statistics here. */
size_t block_states_bytes(const struct block_states *s);

#endif
