/* Starts one child process of `assay up`: its user, its output, and the signal that it gets when
 * its parent dies. */
#ifndef ASSAY_CLI_UP_SPAWN_H
#define ASSAY_CLI_UP_SPAWN_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/status.h"

/* A user of the system; an empty name is the user who runs this program. */
struct system_user {
    char name[64];
    uid_t uid;
    gid_t gid;
};

struct spawn_spec {
    const char *const *argv;   /* argv[0] is a path; NULL-terminated; borrowed */
    const char *log_path;      /* its stdout and stderr are appended here; borrowed */
    const char *input;         /* its stdin, at most a few kilobytes; NULL: nothing */
    const char *set_env[4][2]; /* variables set for it: {name, value}; a NULL name ends the list */
    struct system_user user;
    bool is_server;   /* it is assayd, and reads the service's own variables */
    int death_signal; /* the kernel sends it to the child when this process dies */
};

/* Fork and exec. The child gets its own process group, so that Ctrl-C reaches only `assay up`, and
 * signals at their defaults. The service's own variables (base/private_env.h) are removed from its
 * environment, but for the settings of runners; assayd gets them, without those that would make it
 * use another server or database. AS_E_IO when the log cannot be opened or the fork
 * failed. If exec fails, the child ends with code 127 and a line in its log. */
AS_MUST_CHECK as_status spawn_child(const struct spawn_spec *spec, pid_t *ret, struct as_err *err);

/* Whether this user can enter the folder through all its parents. */
bool system_user_can_enter(const struct system_user *user, const char *folder);

#endif
