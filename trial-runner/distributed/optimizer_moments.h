/* The optimizer's moments, divided among the ranks (`shard_state`; Rajbhandari et al.: ZeRO, 2020,
 * stage 1). Equal bits to whole moments: each rank has the whole gradient, updates its slice of the
 * parameters, and gets the others' slices.
 *
 * A slice of the moments is on `state_copies` ranks: its owner and the rank before it. With 2 a
 * death costs nothing but the moving of slices; with 1 the moments take the least memory, and a
 * death ends the attempt, which goes on from its last checkpoint.
 *
 * What is promised: of the last world in which every rank had got its slices, the moments survive
 * any deaths among which no two are of neighbours (the last rank and rank 0 are neighbours, too),
 * with 2 copies; with 1, no death. So with 2 the death of any one rank of each such world is
 * survived. The deaths of ranks that have joined since, and worlds that are over at any point of
 * their meeting, however many follow one another, lose nothing. A rank that was taken for lost
 * counts as dead; not promised: that it may come back with a step that it alone had completed, when
 * the others have begun this step again in a world of their own (AS_E_STALE).
 *
 * A rank first computes its new parameters and leaves the moments; when all ranks have all
 * parameters, the holders of a slice update its moments. So nothing has to be undone when a rank is
 * lost between the two, and no second copy of the moments is needed for that.
 *
 * Memory of a rank, in parts of the whole moments: min(state_copies, R) / R between R ranks. In the
 * meeting of R' ranks the new slices come beside the old ones, and the old ones go when all ranks
 * have their new ones. A rank that missed the end of a step has its old slices twice for the time
 * in which it gets the others' state. What it has got in meetings that were not completed stays
 * beside that until one is, but each value at most twice. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_OPTIMIZER_MOMENTS_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_OPTIMIZER_MOMENTS_H

#include "trial-runner/distributed/strategy.h"

struct moments;

/* setup is borrowed. ret: moments_free(). AS_E_NOMEM. */
AS_MUST_CHECK as_status moments_create(const struct strategy_setup *setup, struct moments **ret,
                                       struct as_err *err);
void moments_free(struct moments *m);
AS_DEFINE_FREEP(struct moments, moments_free)

/* The step at the replica's position with the sum of all shards (replica_ops.update), which is
 * clipped in place and must stay until the next call. Errors as strategy_ops.run. */
AS_MUST_CHECK as_status moments_update(struct moments *m, struct coll *c, struct backend *lane,
                                       float *sum, struct as_err *err);

/* What the strategy passes on. `meet` does the catching up, too: a rank that missed the end of a
 * step updates its moments before it gets the parameters.
 * AS_E_STALE: moments were lost with their ranks; the training must go on from its checkpoint. */
#define MOMENTS_PARTS 2
size_t moments_parts(struct moments *m, struct strategy_part *ret);
void moments_restored(struct moments *m, bool from_checkpoint);
AS_MUST_CHECK as_status moments_meet(struct moments *m, struct meeting *meeting,
                                     struct as_err *err);
AS_MUST_CHECK as_status moments_gather(struct moments *m, struct coll *c, struct as_err *err);

/* Bytes of moments that this rank holds in slices, old and new ones. */
size_t moments_bytes(const struct moments *m);

#endif
