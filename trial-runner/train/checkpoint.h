/* A member's state on disk: one safetensors file that is replaced whole, so that after a crash the
 * old or the new one is there. It is in the member's own shape and says nothing of the group. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_CHECKPOINT_H
#define ASSAY_TRIAL_RUNNER_TRAIN_CHECKPOINT_H

#include <stdbool.h>

#include "trial-runner/train/lockstep.h"

/* Write the member in a slot to its file; it is between two batches (epoch_layout_between_batches).
 * AS_E_IO naming the file, AS_E_NOMEM. */
AS_MUST_CHECK as_status checkpoint_write(struct lockstep *ls, size_t slot, struct as_err *err);

/* Put the member of a slot, which has just joined, into the state that its file holds, position and
 * last report too. *ret_found is false, and nothing touched, when there is no such file. AS_E_INVAL
 * naming the file: it is cut short, malformed or damaged (checksum), or of another job
 * (fingerprint). After an error
 * the member is to leave. */
AS_MUST_CHECK as_status checkpoint_read(struct lockstep *ls, size_t slot, bool *ret_found,
                                        struct as_err *err);

#endif
