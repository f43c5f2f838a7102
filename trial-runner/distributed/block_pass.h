/* The passes of a batch through blocks that lie on several ranks: its shards go through them as
 * through a pipeline, with one forward and one backward in turn (1F1B: Narayanan et al., PipeDream,
 * 2019, as flushed at the end of each batch in Megatron-LM, 2021). Its idle time is that of GPipe
 * (Huang et al. 2019), (S - 1) of M + S - 1 turns for M shards through S stages, but stage s keeps
 * the values of min(M, S - s) shards, and not of M.
 *
 * A stage computes its shards one after another, in their order, forward and backward. What goes to
 * the next stage and what comes from it are moved at the same time, so no two stages wait for each
 * other. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_BLOCK_PASS_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_BLOCK_PASS_H

#include "trial-runner/collective/collective.h"
#include "trial-runner/distributed/replica.h"

/* Who takes what a stage has computed of a shard: the gradient by its parameters, the running
 * statistics, the loss (0 unless it has the model's last block). Borrowed for the call. */
struct block_sink {
    as_status (*take)(void *arg, uint32_t shard, const float *gradient, const float *statistics,
                      float loss, struct as_err *err);
    void *arg;
};

struct block_pass;

/* The sets that a stage needs for so many shards of a batch. */
size_t block_pass_sets(size_t stage, size_t stages, uint32_t max_shards);

/* For this rank, which is stage `stage` and holds blocks [first, end). ret: block_pass_free().
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status block_pass_create(const struct replica *r, size_t stage, size_t stages,
                                          size_t first, size_t end, struct block_pass **ret,
                                          struct as_err *err);
void block_pass_free(struct block_pass *p);
AS_DEFINE_FREEP(struct block_pass, block_pass_free)

/* All stages: the batch at the replica's position. Errors as those of the collective. */
AS_MUST_CHECK as_status block_pass_run(struct block_pass *p, struct coll *c, struct backend *lane,
                                       const struct block_sink *sink, struct as_err *err);

#endif
