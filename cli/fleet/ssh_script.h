/* What ssh runs on a host of a fleet: scripts for its standard input, so that the token is in no
 * command line. */
#ifndef ASSAY_CLI_FLEET_SSH_SCRIPT_H
#define ASSAY_CLI_FLEET_SSH_SCRIPT_H

#include "base/str.h"
#include "cli/fleet/fleet_spec.h"

typedef enum ssh_verb { SSH_START, SSH_STATUS, SSH_STOP } ssh_verb;

/* Append the script. It prints "started", "running" or "stopped". The runner goes on when the
 * connection ends and says that it belongs to the job ssh/HOST. host: as the user wrote it; NULL:
 * as the host calls itself. token: for SSH_START; letters, digits and "._~+/=-"; NULL: none, as for
 * --print. Pure. */
void ssh_script(const struct fleet_spec *spec, ssh_verb verb, const char *host, const char *token,
                struct str *b);

/* The host without the user. */
const char *ssh_host_of(const char *host);

#endif
