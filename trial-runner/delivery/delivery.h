/* The delivery thread of an attempt, which speaks HTTP. It prepares the attempt, sends measurements
 * while it runs, and sends its result until the server has it. */
#ifndef ASSAY_TRIAL_RUNNER_DELIVERY_DELIVERY_H
#define ASSAY_TRIAL_RUNNER_DELIVERY_DELIVERY_H

#include "trial-runner/attempt/attempt.h"

/* Start the thread. The attempt stays the caller's, who joins a->delivery when the phase is
 * `delivered`. AS_E_NOMEM. */
AS_MUST_CHECK as_status delivery_start(struct attempt *a, struct as_err *err);

#endif
