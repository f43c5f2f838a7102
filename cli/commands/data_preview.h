/* assay data preview NAME: how the values of a data set are distributed, or its first rows. */
#ifndef ASSAY_CLI_COMMANDS_DATA_PREVIEW_H
#define ASSAY_CLI_COMMANDS_DATA_PREVIEW_H

#include <stdbool.h>

#include "base/status.h"
#include "cli/session/session.h"

/* Print a row for each column, with its distribution; `first_rows`: the first rows instead. Errors
 * of the client. */
AS_MUST_CHECK as_status data_preview(const struct session *s, const char *name, bool first_rows,
                                     struct as_err *err);

#endif
