/* A sweep with all its trials: what `assay export --json` writes and `assay replay` reads. */
#ifndef ASSAY_CLI_COMMANDS_SWEEP_RECORD_H
#define ASSAY_CLI_COMMANDS_SWEEP_RECORD_H

#include <jansson.h>

#include "api/client/client.h"
#include "base/status.h"
#include "cli/session/request.h"

#define SWEEP_RECORD_MAX_BYTES (1 << 30)

/* Put the bounds of what was left to gain into a sweep of the API, as `regret_checks`. */
AS_MUST_CHECK as_status sweep_record_add_checks(struct client *c, const struct trial_ref *ref,
                                                json_t *sweep, struct as_err *err);

/* Fetch a sweep with these bounds, and all its trials. `name` is the sweep's id. Both are owned by
 * the caller. */
AS_MUST_CHECK as_status sweep_record_fetch(struct client *c, const char *name, json_t **ret_sweep,
                                           json_t **ret_items, struct as_err *err);

/* Read the two from a file, {"sweep": …, "items": […]}; "-" is standard input. AS_E_INVAL names the
 * file. */
AS_MUST_CHECK as_status sweep_record_read_file(const char *path, json_t **ret_sweep,
                                               json_t **ret_items, struct as_err *err);

#endif
