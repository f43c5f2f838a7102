/* What encoding has lost and the next message must make up for (error feedback): one vector for
 * each shard, held by the rank that computes the shard; and one for the encoded sum, of which each
 * rank holds its slice.
 *
 * A message's loss is written aside first (`after`). It becomes the residual when the step is
 * complete, so a step can be repeated in another world. A rank that missed the end of a step whose
 * result others have makes it the residual when they meet. A step with fewer shards than there are,
 * such as the last one of an epoch, may be complete before a rank without any of them has begun it:
 * what that rank holds has not changed. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_RESIDUALS_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_RESIDUALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trial-runner/collective/collective.h"
#include "trial-runner/distributed/strategy.h"

struct residuals {
    size_t n;         /* values of a vector */
    uint32_t shards;  /* most shards of a step */
    float *of_shards; /* [shards, n]: right on rank 0 after residuals_gather; memory is used only
                           * for those that were held once */
    float **now;      /* [shards] of n: the residual, a row of of_shards or what changed places
                           * with it: a step that is complete copies nothing */
    float **after;    /* [shards] of n: the other one; NULL: not needed yet */
    bool *held;       /* [shards]: of_shards is right for the position `step` */
    int64_t *changed; /* [shards]: the position behind the last step that had this shard: what is
                           * right for that position is right now */
    bool *written;    /* [shards]: `after` is about the step from `step` to `next` */
    float *of_sum;    /* [n], NULL: the sum is not encoded */
    float *sum_after; /* [n] */
    bool sum_held;    /* all of of_sum; else its slice */
    struct shard_run run; /* this rank's shards, and its slice of the sum, in this world */
    size_t slice_first, slice_end;
    bool sum_written;
    int64_t step, next; /* next -1: no step has been encoded */
    uint32_t begun;     /* shards of that step */
    uint32_t lost;      /* shards whose residuals were lost with their ranks */
    const char *what;   /* that a shard holds, for people; static */
};

/* AS_E_NOMEM, AS_E_TOO_LARGE. ret: residuals_done(). */
AS_MUST_CHECK as_status residuals_init(struct residuals *ret, size_t n, uint32_t shards,
                                       bool of_sum, struct as_err *err);
void residuals_done(struct residuals *r); /* a zeroed one is fine */

/* As coll_spread, of a step's shards; but residuals stay where they are when the last batch of an
 * epoch has fewer shards than the others. */
void residuals_spread(const struct residuals *r, uint32_t shards, int32_t n_ranks,
                      struct shard_run *ret);

/* The step from `step` to `next` is about to be encoded, perhaps again. It changes residuals of its
 * first `shards` shards only, of whatever rank. */
void residuals_begin(struct residuals *r, int64_t step, int64_t next, uint32_t shards);
/* The residual of a shard [n], and where what its message loses goes. AS_E_NOMEM. */
const float *residuals_before(const struct residuals *r, uint32_t shard);
AS_MUST_CHECK as_status residuals_after(struct residuals *r, uint32_t shard, float **ret,
                                        struct as_err *err);
/* The step is complete: what was written is the residual now. */
void residuals_commit(struct residuals *r);

/* The first residual of a run becomes the sum of all of them, and the others 0: for a rank whose
 * messages are about no shard in particular. Nothing is written about a next step. */
void residuals_merge(struct residuals *r, struct shard_run run);

/* All values are in of_shards and of_sum, for position `step`: at the start of a training, or from
 * a checkpoint. */
void residuals_hold_all(struct residuals *r, int64_t step);

/* All ranks of a new world, which are at position `step` now: each gets the residuals of its run
 * (runs, by rank) and of its slice of the sum, from who held them. A rank that has missed steps
 * holds those of shards that these steps did not have. What nobody held is 0, and a line on rank
 * 0's stderr says so. After an error the residuals are those of the position before, and may
 * meet again. */
AS_MUST_CHECK as_status residuals_meet(struct residuals *r, struct coll *c, int64_t step,
                                       const struct shard_run *runs, size_t sum_first,
                                       size_t sum_end, struct as_err *err);

/* As strategy_ops.parts: at most 2. A zeroed one has none. */
size_t residuals_parts(struct residuals *r, struct strategy_part *ret);

/* All ranks: rank 0 has all values in of_shards and of_sum afterwards. */
AS_MUST_CHECK as_status residuals_gather(struct residuals *r, struct coll *c,
                                         const struct shard_run *runs, struct as_err *err);

#endif
