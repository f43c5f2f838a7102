/* Prints the trials of a sweep, however many, in bounded memory. */
#ifndef ASSAY_CLI_COMMANDS_TRIALS_PRINT_H
#define ASSAY_CLI_COMMANDS_TRIALS_PRINT_H

#include "cli/session/request.h"
#include "cli/session/session.h"

/* Print a list of trials on stdout: a table, or {"items": […]}.
 *   query  of the list, or NULL
 *   limit  0: all */
AS_MUST_CHECK as_status trials_print(const struct session *s, const struct trial_ref *sweep,
                                     const char *query, int64_t limit, struct as_err *err);

/* Write {"sweep": …, "items": […]} (session.json) or CSV of all trials to `output` ("-" and NULL:
 * stdout). A file is replaced when all is written. */
AS_MUST_CHECK as_status trials_export(const struct session *s, const struct trial_ref *sweep,
                                      const char *output, struct as_err *err);

#endif
