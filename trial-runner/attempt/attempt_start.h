/* Starts the process of an attempt, for the main thread: in its container, if it has one. */
#ifndef ASSAY_TRIAL_RUNNER_ATTEMPT_ATTEMPT_START_H
#define ASSAY_TRIAL_RUNNER_ATTEMPT_ATTEMPT_START_H

#include "trial-runner/attempt/attempt.h"

/* Start a->launch.spec, which has the variables of the program, as a->process.
 *   gpus  that a container of podman gets, UUIDs with commas between them; "": none
 * A container of a rank has the network of its machine. A container is guarded from now on
 * (container.h). Errors as child_spawn(); AS_E_INVAL: a folder cannot be mounted in a container. */
AS_MUST_CHECK as_status attempt_start(struct attempt *a, const char *gpus, struct as_err *err);

#endif
