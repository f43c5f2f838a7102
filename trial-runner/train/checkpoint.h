/* A loop's state on disk: one safetensors file that is replaced whole, so that after a crash the
 * old or the new one is there. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_CHECKPOINT_H
#define ASSAY_TRIAL_RUNNER_TRAIN_CHECKPOINT_H

#include <stdbool.h>

#include "trial-runner/train/loop.h"

#define CHECKPOINT_NAME "checkpoint.safetensors"

/* Write the state of l. AS_E_IO naming the file, AS_E_NOMEM. */
AS_MUST_CHECK as_status checkpoint_write(struct loop *l, const char *path, struct as_err *err);

/* Put l, which was made for the same job, into the state that the file holds. *ret_found is false,
 * and l untouched, when there is no such file. AS_E_INVAL naming the file: it is cut short or
 * malformed, or of another job (fingerprint). After an error l is to be freed. */
AS_MUST_CHECK as_status checkpoint_read(struct loop *l, const char *path, bool *ret_found,
                                        struct as_err *err);

#endif
