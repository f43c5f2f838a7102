/* assay trials add SWEEP: adds known results, and configurations to run next. */
#ifndef ASSAY_CLI_COMMANDS_TRIALS_ADD_H
#define ASSAY_CLI_COMMANDS_TRIALS_ADD_H

#include <stdbool.h>

#include "base/opt.h"
#include "base/status.h"
#include "cli/session/session.h"

struct trials_add {
    struct opt_list params;  /* NAME=VALUE */
    struct opt_list metrics; /* NAME=NUMBER */
    const char *file;        /* known_results.h; NULL: one trial, from the two above */
    const char *reason;      /* NULL: none */
    bool failed;
};

/* Add the trials and print their states. No trial of a file with an error is sent. A file can be
 * added again: no row is added twice. */
AS_MUST_CHECK as_status trials_add(const struct session *s, const char *sweep,
                                   const struct trials_add *a, struct as_err *err);

#endif
