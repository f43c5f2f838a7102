/* What an error of the whole group means for its trials: the exit code, and whether the runner must
 * stop handing out the GPU (docs/decisions/3008). */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_FAULT_H
#define ASSAY_TRIAL_RUNNER_TRAIN_FAULT_H

#include "base/status.h"
#include "kernels/backend.h"

/* Returns EXIT_TRY_AGAIN or EXIT_FAILED for a back end that did not open. If a GPU was wanted
 * (ASSAY_BACKEND=cuda) and shown to this process, trying again elsewhere may help, and the reason
 * goes to the file ASSAY_DEVICE_FAULT: with "all: " before it, if this machine can use none. */
int fault_of_opening(const struct as_err *why);

/* The same for an error while the group trained on `be`. On the host: EXIT_FAILED. A device that
 * failed is reported; a device that is full, and a fault that our own launches can cause, are
 * not. */
int fault_of_training(const struct backend *be, const struct as_err *why);

/* Is this status of an operation on `be` a fault of a device, which no member of a group
 * escapes? */
bool fault_ends_all(const struct backend *be, as_status st);

#endif
