/* A member's state on disk: one safetensors file. It is replaced by rename, so that after a crash
 * either the old or the new file is there. The state is in the member's own shape and does not
 * depend on its group. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_CHECKPOINT_H
#define ASSAY_TRIAL_RUNNER_TRAIN_CHECKPOINT_H

#include <stdbool.h>

#include "trial-runner/train/lockstep.h"

/* Write the member in a slot to its file. The member must be between two batches
 * (epoch_layout_between_batches). AS_E_IO naming the file, AS_E_NOMEM. */
AS_MUST_CHECK as_status checkpoint_write(struct lockstep *ls, size_t slot, struct as_err *err);

/* Restore the member in a slot, which has just joined, from its file: the state, the position and
 * the last report. If there is no file, *ret_found is false and nothing changes. AS_E_INVAL naming
 * the file: it is cut short, malformed, damaged (checksum) or of another job (fingerprint). After
 * an error the member's state is undefined and it must leave the lockstep. */
AS_MUST_CHECK as_status checkpoint_read(struct lockstep *ls, size_t slot, bool *ret_found,
                                        struct as_err *err);

#endif
