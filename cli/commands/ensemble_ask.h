/* Asks the server for an ensemble of trials of sweeps, and waits for it. */
#ifndef ASSAY_CLI_COMMANDS_ENSEMBLE_ASK_H
#define ASSAY_CLI_COMMANDS_ENSEMBLE_ASK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "cli/session/request.h"
#include "cli/session/session.h"

#define ENSEMBLE_NO_END INT64_MAX /* wait as long as it takes */

/* Is it not made yet? */
bool ensemble_is_pending(const json_t *ensemble);

/* Ask for an ensemble of a sweep, and wait until it is made, or until it is known why there is
 * none, or until `until_ns` of clock_mono_ns().
 *   body  of the API's askEnsemble; NULL: AS_E_NOMEM
 *   ret   as the API has it: {"number", "request", "ensemble"}; owned by the caller
 * AS_E_CONFLICT: interrupted; errors of the client. */
AS_MUST_CHECK as_status ensemble_ask(const struct session *s, const struct trial_ref *sweep,
                                     const json_t *body, int64_t until_ns, json_t **ret,
                                     struct as_err *err);

/* Wait in the same way for the sweep's own ensemble, which is made when the sweep has ended. */
AS_MUST_CHECK as_status ensemble_wait_own(const struct session *s, const struct trial_ref *sweep,
                                          int64_t until_ns, json_t **ret, struct as_err *err);

#endif
