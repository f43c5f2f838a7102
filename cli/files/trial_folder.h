/* The folder that the commands of a sweep run in, when the runners are on this machine.
 *
 * A runner starts a command in its own folder unless the document has `trial.directory`; for the
 * runners of `assay up` that is wherever it was started, which is rarely what people mean. */
#ifndef ASSAY_CLI_FILES_TRIAL_FOLDER_H
#define ASSAY_CLI_FILES_TRIAL_FOLDER_H

#include <jansson.h>

#include "base/status.h"

/* Set `trial.directory` of a document with `trial.command`: `here` when it has none, below `here`
 * when it is relative. Everything else, also what is wrong, stays for the server to judge.
 *   here  absolute, borrowed; "${" in it is escaped
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status trial_folder_set(json_t *document, const char *here, struct as_err *err);

#endif
