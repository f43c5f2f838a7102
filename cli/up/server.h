/* assayd as a child of `assay up`. */
#ifndef ASSAY_CLI_UP_SERVER_H
#define ASSAY_CLI_UP_SERVER_H

#include "base/status.h"
#include "cli/up/up.h"

/* Settle u->port: one that was not chosen and is taken gives way to a free one (0). AS_E_CONFLICT:
 * the chosen port is taken. */
AS_MUST_CHECK as_status up_server_choose_port(struct up *u, struct as_err *err);

/* Start assayd and wait until it has its address; u->url is set. AS_E_UNAVAILABLE: the database
 * cannot be reached, or a stop was asked for; AS_E_IO: it does not start (the end of its log is
 * said). */
AS_MUST_CHECK as_status up_server_start(struct up *u, struct as_err *err);

#endif
