/* The summary of an ended sweep: the best trials, the best single model, the ensemble, the URL of
 * the dashboard. */
#ifndef ASSAY_CLI_COMMANDS_SWEEP_SUMMARY_H
#define ASSAY_CLI_COMMANDS_SWEEP_SUMMARY_H

#include <jansson.h>

#include "cli/session/request.h"
#include "cli/session/session.h"

/* Fetch and print the summary of an ended sweep on stdout; with s->json one line with "id",
 * "state", "reason", "best", "ensemble". Waits up to a minute for an ensemble that is still
 * pending. */
AS_MUST_CHECK as_status sweep_summary_print(const struct session *s, const struct trial_ref *ref,
                                            const json_t *sweep, int64_t top, struct as_err *err);

#endif
