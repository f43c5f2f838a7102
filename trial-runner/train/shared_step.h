/* The steps of a large trial, which all ranks of a team do together.
 *
 * How they do them is a strategy (trial-runner/distributed/strategy.h). This part is equal for all
 * of them: when a rank is lost, the others keep what they have computed, meet in the next world,
 * and finish the same step. Ranks that are behind (new ones, or one that missed the end of a step)
 * get the state of one that is not. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_SHARED_STEP_H
#define ASSAY_TRIAL_RUNNER_TRAIN_SHARED_STEP_H

#include "trial-runner/distributed/strategy.h"
#include "trial-runner/train/lockstep.h"
#include "trial-runner/train/team.h"

struct shared_step;
struct evaluation;

/* For the only member of `ls`, before its checkpoint is read. team and ls are borrowed; owned by
 * the caller. AS_E_NOMEM; AS_E_UNSUPPORTED naming the field of the document. */
AS_MUST_CHECK as_status shared_step_create(struct team *team, struct lockstep *ls,
                                           struct shared_step **ret, struct as_err *err);
void shared_step_free(struct shared_step *s);
AS_DEFINE_FREEP(struct shared_step, shared_step_free)

/* What all ranks have agreed on in a step. */
struct shared_outcome {
    bool stop;  /* some rank has been asked to stop: all stop after this step. Or without a step:
                 * this rank has joined ranks that wait with the end of theirs */
    bool save;  /* a checkpoint is due: shared_step_gather() comes next */
    bool moved; /* instead of doing the step, this rank got another rank's state, perhaps of another
                 * epoch */
};

/* Do the step (or the block of steps) at the member's position, and move the position behind it.
 * AS_E_UNAVAILABLE: this rank is to stop without the others. AS_E_STALE: what lost ranks held is
 * needed; the trial must go on from its checkpoint. */
AS_MUST_CHECK as_status shared_step_run(struct shared_step *s, struct backend *lane,
                                        struct shared_outcome *ret, struct as_err *err);

/* A checkpoint is due at this rank. Returns true if the others must help: then a later outcome has
 * `save`. False: the state is whole here, and can be written now. */
bool shared_step_ask_save(struct shared_step *s);

/* All ranks, after a step whose outcome has `save`: makes the state whole on the rank that leads.
 * *ret_whole is false if a rank was lost meanwhile; then nothing is to be written. */
AS_MUST_CHECK as_status shared_step_gather(struct shared_step *s, struct backend *lane,
                                           bool *ret_whole, struct as_err *err);

/* Of a member whose ranks hold parts of the network, at the end of an epoch: the metrics of the
 * held-out rows, for which all ranks work together. With gathers_too the whole state is in
 * ls->whole of the rank that leads. *ret_moved: instead, this rank got the state of one that was
 * through. */
AS_MUST_CHECK as_status shared_step_evaluate(struct shared_step *s, struct backend *lane,
                                             bool gathers_too, struct evaluation *ret,
                                             bool *ret_moved, struct as_err *err);

/* Returns when every rank has called it at the same position; if a rank is lost meanwhile, calls
 * `finish` anew on the next first rank: what the first rank must finish (its files) is finished by
 * it. With is_saved the state is whole there, for a checkpoint. */
AS_MUST_CHECK as_status shared_step_finish(struct shared_step *s, struct backend *lane,
                                           bool is_saved,
                                           as_status (*finish)(void *arg, struct as_err *err),
                                           void *arg, struct as_err *err);

/* Does this rank write the trial's files? One rank of a world does. */
bool shared_step_leads(const struct shared_step *s);

/* What checkpoints have beside the slot. Borrowed. */
const struct strategy *shared_step_strategy(const struct shared_step *s);

#endif
