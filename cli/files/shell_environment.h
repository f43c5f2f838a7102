/* The variables of the shell in which a sweep is created, for runners on the same machine.
 *
 * Without them a trial would get the runner's Python and not the one of the virtual environment
 * that is active in the shell. The document names the machine, and a runner on another one ignores
 * them. Only PATH, VIRTUAL_ENV and CONDA_PREFIX are taken: others may be secrets, and
 * LD_LIBRARY_PATH would change the libraries of every program of the trial (trial.modules sets
 * it where it is needed). */
#ifndef ASSAY_CLI_FILES_SHELL_ENVIRONMENT_H
#define ASSAY_CLI_FILES_SHELL_ENVIRONMENT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/status.h"

/* Is this URL one of this machine: 127.0.0.0/8, [::1] or localhost? */
bool shell_environment_is_local(const char *url);

/* Set `trial.environment` of a document with `trial.command` that has neither it nor `container`,
 * with the variables of `base` (as environ). All else is unchanged. Nothing is set on a machine
 * without an identity. AS_E_INVAL: a variable is not UTF-8; AS_E_NOMEM. */
AS_MUST_CHECK as_status shell_environment_set(json_t *document, char *const *base,
                                              struct as_err *err);

#endif
