/* Starts the sweep of a further layer (layer_sweep.h). */
#ifndef ASSAY_CLI_COMMANDS_LAYER_RUN_H
#define ASSAY_CLI_COMMANDS_LAYER_RUN_H

#include "cli/session/request.h"
#include "cli/session/session.h"

/* Choose trials of a sweep that has ended, and start a sweep that trains their configurations again
 * beside what they predicted.
 *   below    the sweep of the layer before
 *   also     a sweep over narrower ranges of the same parameters, whose trials take part; NULL:
 *            none
 *   trials   how many, 1 to LAYER_MOST_TRIALS
 *   time_ms  for all of it; 0: no limit
 *   ret      the new sweep, which runs
 * AS_E_CONFLICT: interrupted; AS_E_INVAL as for layer_document(); errors of the server. */
AS_MUST_CHECK as_status layer_start(const struct session *s, const struct trial_ref *below,
                                    const char *also, size_t trials, int64_t time_ms,
                                    struct trial_ref *ret, struct as_err *err);

#endif
