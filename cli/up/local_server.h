/* assayd as a child of `assay up`. */
#ifndef ASSAY_CLI_UP_LOCAL_SERVER_H
#define ASSAY_CLI_UP_LOCAL_SERVER_H

#include "base/status.h"
#include "cli/up/up.h"

/* Choose u->port. If the default port is taken, use a free one (0). AS_E_CONFLICT: the port of
 * --port is taken. */
AS_MUST_CHECK as_status up_server_choose_port(struct up *u, struct as_err *err);

/* Start assayd, wait until it has written its address, and set u->url. AS_E_UNAVAILABLE: the
 * database cannot be reached, or a signal requested a stop; AS_E_IO: it does not start (the end of
 * its log is printed). */
AS_MUST_CHECK as_status up_server_start(struct up *u, struct as_err *err);

#endif
