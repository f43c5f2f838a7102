/* assay data show NAME: prints the contents of a data set. */
#ifndef ASSAY_CLI_COMMANDS_DATA_SHOW_H
#define ASSAY_CLI_COMMANDS_DATA_SHOW_H

#include <jansson.h>
#include <stdbool.h>

#include "base/status.h"
#include "cli/session/session.h"

/* Print the data set, and a table of its columns. Errors of the client. */
AS_MUST_CHECK as_status data_show(const struct session *s, const char *name, struct as_err *err);

/* Are the classes of this data set (a Dataset of the API) whole numbers of a table or of arrays?
 * They may be quantities then, which --task regression predicts as numbers. */
bool data_show_numbers_are_classes(const json_t *dataset);

#endif
