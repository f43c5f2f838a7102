/* A member's state on disk: one safetensors file. It is replaced by rename, so that after a crash
 * either the old or the new file is there. The state is in the member's own shape and does not
 * depend on its group. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_CHECKPOINT_H
#define ASSAY_TRIAL_RUNNER_TRAIN_CHECKPOINT_H

#include <stdbool.h>

#include "trial-runner/train/lockstep.h"

struct safetensors;

/* Write the member in a slot to its file. The member must be between two batches
 * (epoch_layout_between_batches). AS_E_IO naming the file, AS_E_NOMEM. */
AS_MUST_CHECK as_status checkpoint_write(struct lockstep *ls, size_t slot, struct as_err *err);

/* The folder, beside the member's own file, of what it keeps for forks: this and the step. */
#define CHECKPOINT_KEPT "step-"

/* The member is at the end of an epoch, which it has not reported yet: write the state with which
 * a fork begins the next one, as "step-5/checkpoint.safetensors" after the fifth. AS_E_IO,
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status checkpoint_keep(struct lockstep *ls, size_t slot, struct as_err *err);

/* Restore the member in a slot, which has just joined, from its file: the state, the position and
 * the last report. If there is no file, *ret_found is false and nothing changes. AS_E_INVAL naming
 * the file: it is cut short, malformed or damaged (checksum), and nothing has changed.
 * AS_E_CONFLICT naming the file: it is of another job (fingerprint). The file of a trial that the
 * job may go on from (kin) is none: then there is no last report. After this and other errors
 * the member's state is undefined and it must leave the lockstep. */
AS_MUST_CHECK as_status checkpoint_read(struct lockstep *ls, size_t slot, bool *ret_found,
                                        struct as_err *err);

/* Read the file of a member whose kind of model has a checkpoint of its own (trees, centres). *ret
 * is NULL if there is none, or if it was damaged: then the member begins again, as
 * checkpoint_give_up() says. Owned by the caller. AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status checkpoint_read_own(struct member *m, struct safetensors **ret,
                                            struct as_err *err);

/* The member's file is damaged (`why`): remove it. The member begins again, which its log and its
 * report tell. AS_E_IO, AS_E_NOMEM: the report cannot be written. */
AS_MUST_CHECK as_status checkpoint_give_up(struct member *m, const struct as_err *why,
                                           struct as_err *err);

#endif
