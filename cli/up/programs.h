/* Finds the other programs: beside this one (installed), in this build tree, then in PATH. */
#ifndef ASSAY_CLI_UP_PROGRAMS_H
#define ASSAY_CLI_UP_PROGRAMS_H

#include "base/status.h"

/* `name` is "assayd", "assay-runner" or "assay-serve". An absolute path, owned by the caller.
 * AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status program_find(const char *name, char **ret, struct as_err *err);

#endif
