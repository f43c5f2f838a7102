/* Everything between a claim and the start of its process: the folder, params.json, checkpoints
 * that an earlier attempt left, data sets, the job of the built-in trainer, command and
 * environment. */
#ifndef ASSAY_TRIAL_RUNNER_AGENT_PREPARE_H
#define ASSAY_TRIAL_RUNNER_AGENT_PREPARE_H

#include "trial-runner/agent/attempt.h"

/* Fill a->spec. Called by the delivery thread in phase preparing; a->fetch does the fetching, for
 * as long as it takes the server to answer. AS_E_INVAL: the trial's document cannot be run, another
 * try would not help. AS_E_NOT_FOUND: a file of it is gone. AS_E_UNAVAILABLE: a stop was asked for.
 * AS_E_IO, AS_E_NOMEM, others: this runner's trouble, which another may not have. */
AS_MUST_CHECK as_status prepare(struct attempt *a, struct as_err *err);

#endif
