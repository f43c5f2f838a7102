/* The delivery thread of an attempt, which speaks HTTP. It prepares the attempt, unless that is
 * quick, sends measurements while it runs, and sends its result until the server has it. */
#ifndef ASSAY_TRIAL_RUNNER_DELIVERY_DELIVERY_H
#define ASSAY_TRIAL_RUNNER_DELIVERY_DELIVERY_H

#include "trial-runner/attempt/attempt.h"

/* Start the thread. The attempt stays the caller's, who joins a->delivery when the phase is
 * `delivered`. AS_E_NOMEM. */
AS_MUST_CHECK as_status delivery_start(struct attempt *a, struct as_err *err);

/* Prepare an attempt with is_quick, whose thread was started: in the thread that holds it, because
 * to wake another one takes longer. The attempt may be gone when this returns. */
void delivery_prepare(struct attempt *a);

#endif
