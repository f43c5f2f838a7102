/* One training step of a large trial, which all ranks of a team do together.
 *
 * The micro-batches of a batch are its shards. Each rank computes the gradients of its shards; they
 * are summed in the order of a tree over the shards, so every rank has the same bits, whatever the
 * number of ranks. Then every rank updates its weights. With the gradients travel the loss and, for
 * batch normalisation, the running statistics.
 *
 * When a rank is lost, the others keep what they have computed, meet in the next world, compute the
 * lost rank's shards too, and finish the same step. Ranks that are behind (new ones, or one that
 * missed the end of a step) get the state from the first rank that is not. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_SHARED_STEP_H
#define ASSAY_TRIAL_RUNNER_TRAIN_SHARED_STEP_H

#include "trial-runner/train/lockstep.h"
#include "trial-runner/train/team.h"

struct shared_step;

/* For the only member of `ls`. team and ls are borrowed; owned by the caller. AS_E_NOMEM. */
AS_MUST_CHECK as_status shared_step_create(struct team *team, struct lockstep *ls,
                                           struct shared_step **ret, struct as_err *err);
void shared_step_free(struct shared_step *s);
AS_DEFINE_FREEP(struct shared_step, shared_step_free)

/* Meets the others if there is no world yet. The member's position may move forward to theirs. */
AS_MUST_CHECK as_status shared_step_meet(struct shared_step *s, struct as_err *err);

/* Do the batch at the member's position, and move the position behind it.
 *   *ret_stop   some rank has been asked to stop: all stop after this step
 *   *ret_moved  instead of doing the batch, the member was brought to the others' position, perhaps
 *               in another epoch
 * AS_E_UNAVAILABLE: this rank is to stop without the others. */
AS_MUST_CHECK as_status shared_step_run(struct shared_step *s, struct backend *lane, bool *ret_stop,
                                        bool *ret_moved, struct as_err *err);

/* Returns when every rank has called it at the same position; if a rank is lost meanwhile, calls
 * `again` anew on each: what the first rank must finish (its files) is finished by the next first
 * one. */
AS_MUST_CHECK as_status shared_step_finish(struct shared_step *s,
                                           as_status (*finish)(void *arg, struct as_err *err),
                                           void *arg, struct as_err *err);

/* Does this rank write the trial's files? One rank of a world does. */
bool shared_step_leads(const struct shared_step *s);

#endif
