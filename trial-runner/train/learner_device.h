/* The gradient of a learner (learner.h) where the member is on a device: it stays there, for sums
 * from device to device, or leaves through page-locked memory beside the backward pass. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_LEARNER_DEVICE_H
#define ASSAY_TRIAL_RUNNER_TRAIN_LEARNER_DEVICE_H

#include "trial-runner/train/lockstep.h"

struct learner_device;

/* ls has one member and is borrowed. *ret: learner_device_free() before the back end; NULL if the
 * numbers are in the host's memory, or padded. AS_E_NOMEM, errors of the device. */
AS_MUST_CHECK as_status learner_device_create(struct lockstep *ls, struct learner_device **ret,
                                              struct as_err *err);
void learner_device_free(struct learner_device *d);
AS_DEFINE_FREEP(struct learner_device, learner_device_free)

/* As replica_ops.gradient_on_device, of micro-step `micro`. */
AS_MUST_CHECK as_status learner_device_gradient(struct learner_device *d, struct backend *lane,
                                                size_t micro, float share, struct buf *to,
                                                struct as_err *err);

/* Computes the gradient of micro-step `micro` (lockstep_gradients) and gives its parameters away in
 * pieces, each once, last layers first: each as soon as it has come to the host, while the device
 * computes others. `values` is valid for the call.
 * Errors of the device; then some may have been given. */
AS_MUST_CHECK as_status learner_device_give(struct learner_device *d, struct backend *lane,
                                            size_t micro,
                                            void (*take)(void *arg, size_t first,
                                                         const float *values, size_t n),
                                            void *arg, struct as_err *err);

/* The gradient in network_gradients(), whole, in page-locked memory; a view of d until its next
 * call. */
AS_MUST_CHECK as_status learner_device_read(struct learner_device *d, const float **ret,
                                            struct as_err *err);

#endif
