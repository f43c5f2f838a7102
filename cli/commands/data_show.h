/* assay data show NAME: prints the contents of a data set. */
#ifndef ASSAY_CLI_COMMANDS_DATA_SHOW_H
#define ASSAY_CLI_COMMANDS_DATA_SHOW_H

#include "base/status.h"
#include "cli/session/session.h"

/* Print the data set, and a table of its columns. Errors of the client. */
AS_MUST_CHECK as_status data_show(const struct session *s, const char *name, struct as_err *err);

#endif
