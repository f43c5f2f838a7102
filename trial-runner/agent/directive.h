/* What the server asks of attempts in its answers. */
#ifndef ASSAY_TRIAL_RUNNER_AGENT_DIRECTIVE_H
#define ASSAY_TRIAL_RUNNER_AGENT_DIRECTIVE_H

#include <jansson.h>

#include "trial-runner/agent/attempt.h"

/* Is one of the directives a stop of this attempt? Then ask for it. Anything else is skipped. */
void directives_take_one(struct attempt *a, const json_t *directives);

#endif
