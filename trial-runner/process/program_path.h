/* A program in place of this process, looked up in the PATH that it will have.
 *
 * execvp() does that with the PATH of the caller. After vfork() the caller's environment must not
 * be changed for it, because the process has the memory of its parent. */
#ifndef ASSAY_TRIAL_RUNNER_PROCESS_PROGRAM_PATH_H
#define ASSAY_TRIAL_RUNNER_PROCESS_PROGRAM_PATH_H

#include "base/mem.h"
#include "base/status.h"

struct program_path {
    char *const *argv, *const *env; /* NULL-terminated; borrowed */
    const char *path;               /* folders with ':' between them; borrowed */
    char **for_shell;               /* owned: "/bin/sh", a file, argv[1] and so on, NULL */
};

/* Prepare for program_path_exec(): all memory that it needs.
 *   argv  at least one text
 *   path  as in struct program_path; NULL: the system's own folders, as execvp() has it
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status program_path_init(struct program_path *p, char *const *argv,
                                          char *const *env, const char *path, struct as_err *err);
void program_path_done(struct program_path *p);

/* Become argv[0], found as execvp() finds it: a name without '/' in the first folder of the path
 * that has it and lets it be run; a text without an interpreter is run by /bin/sh. Returns only on
 * failure, with errno. Async-signal-safe; writes no memory but its stack, errno and
 * *p->for_shell. */
void program_path_exec(const struct program_path *p);

#endif
