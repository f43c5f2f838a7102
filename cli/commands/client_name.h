/* Who asks and tells: the name under which the server holds trials for whoever runs them.
 *
 * Two loops under one name would be handed the same trials, so no name is shared by default:
 * USER@HOST-PID-START, of the process that started this one (a shell, a script) and of when that
 * began, since pids come again. The same shell that asks twice gets its unfinished trial back; two
 * shells, and two scripts, never share one. A script that pipes `assay ask` runs it in a subshell
 * of its own each time and is better off naming itself, with --client or ASSAY_CLIENT. */
#ifndef ASSAY_CLI_COMMANDS_CLIENT_NAME_H
#define ASSAY_CLI_COMMANDS_CLIENT_NAME_H

#include <stdbool.h>

#define CLIENT_NAME_SIZE 64

/* The default name. Returns buf. */
const char *client_name_default(char buf[CLIENT_NAME_SIZE]);

/* USER@HOST- : what the default names of this user on this machine begin with. Returns buf. */
const char *client_name_prefix(char buf[CLIENT_NAME_SIZE]);

/* May this user tell for that holder without naming it? Only for a default name of their own. */
bool client_name_is_ours(const char *holder);

#endif
