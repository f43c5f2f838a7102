/* The thread of an attempt that speaks HTTP: prepares it, sends what it measures while it runs, and
 * delivers its result until the server has it. */
#ifndef ASSAY_TRIAL_RUNNER_AGENT_DELIVERY_H
#define ASSAY_TRIAL_RUNNER_AGENT_DELIVERY_H

#include "trial-runner/agent/attempt.h"

/* Start it. The attempt stays the caller's, who joins a->delivery once the phase is `delivered`.
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status delivery_start(struct attempt *a, struct as_err *err);

#endif
