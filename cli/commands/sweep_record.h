/* A sweep with all its trials: what `assay export --json` writes and `assay replay` reads. */
#ifndef ASSAY_CLI_HISTORY_H
#define ASSAY_CLI_HISTORY_H

#include <jansson.h>

#include "api/client/client.h"
#include "base/status.h"

#define HISTORY_MAX_BYTES (1 << 30)

/* From the server. `name` is the sweep's id. The two are owned by the caller. */
AS_MUST_CHECK as_status history_fetch(struct client *c, const char *name, json_t **ret_sweep,
                                      json_t **ret_items, struct as_err *err);

/* From a file, {"sweep": …, "items": […]}; "-" is standard input. AS_E_INVAL names the file. */
AS_MUST_CHECK as_status history_read_file(const char *path, json_t **ret_sweep, json_t **ret_items,
                                          struct as_err *err);

#endif
