/* The runners as children of `assay up`. */
#ifndef ASSAY_CLI_UP_LOCAL_RUNNERS_H
#define ASSAY_CLI_UP_LOCAL_RUNNERS_H

#include "base/status.h"
#include "cli/up/up.h"

/* Start the runners and wait until the server reports all of them as live. AS_E_UNAVAILABLE: a
 * signal requested a stop; AS_E_IO: they do not start. */
AS_MUST_CHECK as_status up_runners_start(struct up *u, struct as_err *err);

#endif
