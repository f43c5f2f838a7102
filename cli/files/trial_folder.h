/* The working directory of the commands of a sweep, when the runners are on this machine.
 *
 * A runner starts a command in its own working directory unless the document has `trial.directory`.
 * For the runners of `assay up` that is the directory in which `assay up` was started. People
 * expect the directory in which they typed `assay run`. */
#ifndef ASSAY_CLI_FILES_TRIAL_FOLDER_H
#define ASSAY_CLI_FILES_TRIAL_FOLDER_H

#include <jansson.h>

#include "base/status.h"

/* Set `trial.directory` of a document with `trial.command`: to `here` when it has none, to a path
 * below `here` when it is relative. All else is unchanged; the server reports errors.
 *   here  absolute, borrowed; "${" in it is escaped
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status trial_folder_set(json_t *document, const char *here, struct as_err *err);

#endif
