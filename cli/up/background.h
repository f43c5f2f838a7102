/* Starts `assay up` for a verb that needs a server where none runs. It goes on after that verb, as
 * one that a person started, and ends at SIGTERM. */
#ifndef ASSAY_CLI_UP_BACKGROUND_H
#define ASSAY_CLI_UP_BACKGROUND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/status.h"

/* Start it with so many runners, and wait until other commands find it (files/running_server.h).
 *   stop     true ends it, and the wait; NULL: never
 *   ret_pid  of the process; 0: another `assay up` was found first, which somebody else started
 * AS_E_UNAVAILABLE: it ended, and the message has the end of its output; AS_E_CONFLICT: stop() said
 * so; AS_E_IO; AS_E_NOMEM. */
AS_MUST_CHECK as_status background_up_start(size_t runners, bool (*stop)(void), pid_t *ret_pid,
                                            struct as_err *err);

#endif
