/* Runs a program of a cluster (sbatch, kubectl, ssh) and reads what it prints. */
#ifndef ASSAY_CLI_FLEET_COMMAND_H
#define ASSAY_CLI_FLEET_COMMAND_H

#include "base/status.h"
#include "base/str.h"

/* Run argv[0] (looked up in PATH) with `input` as its standard input, without a shell. Variables of
 * Assay (base/private_env.h), which may hold a token, are not passed on. Appends its standard
 * output to `out`. Not for several threads.
 *   argv       NULL-terminated; borrowed
 *   input      NULL: nothing
 *   timeout_ms then it is killed
 * AS_E_NOT_FOUND: there is no such program. AS_E_UNAVAILABLE: it took too long, or says that what
 * it speaks to cannot be reached. AS_E_CONFLICT: it failed; the message has what it printed. */
AS_MUST_CHECK as_status command_run(const char *const *argv, const char *input, int64_t timeout_ms,
                                    struct str *out, struct as_err *err);

/* Does what a program printed say that the other side cannot be reached now? Pure. */
bool command_says_away(const char *text);

#endif
