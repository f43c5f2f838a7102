/* What a finished run leaves in $ASSAY_ARTIFACTS. Rows are in the order of the split, which depends
 * on validation.seed and the number of rows alone.
 *   predictions.npy    float32 [n_val, outputs]: probabilities, or numbers in the target's own unit
 *   targets.npy        int64 [n_val] class indices, or float32 [n_val, 1]
 *   model.safetensors  layers.I.weight [in, out], layers.I.bias [out];
 *                      input.mean, input.scale [features]: x = (raw - mean) / scale;
 *                      target.mean, target.scale [1], regression: y = output * scale + mean;
 *                      `__metadata__` says the rest */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_ARTIFACTS_H
#define ASSAY_TRIAL_RUNNER_TRAIN_ARTIFACTS_H

#include "trial-runner/train/job.h"
#include "trial-runner/train/loop.h"

/* Member k's files into the folder. AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status artifacts_write(const char *folder, const struct job *job, struct loop *l,
                                        size_t k, struct as_err *err);

#endif
