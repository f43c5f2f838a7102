/* Directives: requests of the server in its answers, such as to stop an attempt. */
#ifndef ASSAY_TRIAL_RUNNER_ATTEMPT_DIRECTIVE_H
#define ASSAY_TRIAL_RUNNER_ATTEMPT_DIRECTIVE_H

#include <jansson.h>

#include "trial-runner/attempt/attempt.h"

/* If one of the directives stops this attempt, ask the attempt to stop. Other directives are
 * ignored. */
void directives_take_one(struct attempt *a, const json_t *directives);

#endif
