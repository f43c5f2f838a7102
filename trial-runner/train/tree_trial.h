/* One member that is a model of trees, in training: rounds, reports, checkpoints, artifacts. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_TREE_TRIAL_H
#define ASSAY_TRIAL_RUNNER_TRAIN_TREE_TRIAL_H

#include "trial-runner/train/run.h"

struct tree_trial;

/* Begin to train m, or go on from its checkpoint.
 *   setup  without be and device; borrowed until tree_trial_free(), as m is
 * AS_E_UNSUPPORTED: without XGBoost's library. AS_E_INVAL: the checkpoint is of another job, cut
 * short or damaged. AS_E_NOMEM, AS_E_INTERNAL, AS_E_IO. */
AS_MUST_CHECK as_status tree_trial_create(const struct lockstep_setup *setup, struct member *m,
                                          size_t threads, struct tree_trial **ret,
                                          struct as_err *err);
void tree_trial_free(struct tree_trial *t);
AS_DEFINE_FREEP(struct tree_trial, tree_trial_free)

/* Do rounds for some milliseconds, at least one, or end the member (member_end): when it has all
 * its rounds, is asked to stop, or fails. m->epoch is the rounds done; of a member that was
 * stopped, those in its checkpoint. */
void tree_trial_slice(struct tree_trial *t, struct watch *w);

#endif
