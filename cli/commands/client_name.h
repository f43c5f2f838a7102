/* The client name of ask and tell: the server holds a trial for a client by this name.
 *
 * Two loops with the same name would receive the same trials. So the default name is not shared: it
 * is USER@HOST-PID-START, with the pid and the start time of the parent process (a shell or a
 * script). The start time is needed because pids are reused. A shell that asks again gets its
 * unfinished trial back; two shells or scripts never share a trial. A script that pipes `assay ask`
 * runs it in a new subshell each time, and should set a name with --client or ASSAY_CLIENT. */
#ifndef ASSAY_CLI_COMMANDS_CLIENT_NAME_H
#define ASSAY_CLI_COMMANDS_CLIENT_NAME_H

#include <stdbool.h>

#define CLIENT_NAME_SIZE 64

/* The default name. Returns buf. */
const char *client_name_default(char buf[CLIENT_NAME_SIZE]);

/* USER@HOST-, the prefix of all default names of this user on this machine. Returns buf. */
const char *client_name_prefix(char buf[CLIENT_NAME_SIZE]);

/* Whether this user may speak for the client `holder` without --client: only if it is a default
 * name of this user. */
bool client_name_is_ours(const char *holder);

#endif
