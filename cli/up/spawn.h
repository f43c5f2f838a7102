/* Starting one child process of `assay up`: as whom, where its output goes, what it hears when its
 * parent dies. */
#ifndef ASSAY_CLI_UP_SPAWN_H
#define ASSAY_CLI_UP_SPAWN_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/status.h"

/* Another user of the system; an empty name stands for ourselves. */
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
    int death_signal; /* what the kernel sends it when we die, however we die */
};

/* Fork and exec, in a process group of its own (Ctrl-C reaches us alone) with signals at their
 * defaults, and without our own ASSAY_SERVER, ASSAY_TOKEN, ASSAY_TOKEN_FILE and PG* variables.
 * AS_E_IO when the log cannot be opened or the fork failed; a failing exec ends the child with 127
 * and a line in its log. */
AS_MUST_CHECK as_status spawn_child(const struct spawn_spec *spec, pid_t *ret, struct as_err *err);

/* Can this user enter the folder, by all its parents? */
bool system_user_can_enter(const struct system_user *user, const char *folder);

#endif
