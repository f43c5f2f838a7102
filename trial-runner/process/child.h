/* Processes of trials: start one in a session of its own, signal its process group, and find
 * processes that left the group.
 *
 * The thread that spawns must outlive its children: PR_SET_PDEATHSIG, which kills a trial when the
 * runner dies, acts when the thread that forked ends. In the runner this is the main thread. */
#ifndef ASSAY_TRIAL_RUNNER_PROCESS_CHILD_H
#define ASSAY_TRIAL_RUNNER_PROCESS_CHILD_H

#include <stdbool.h>
#include <sched.h>
#include <sys/types.h>

#include "trial-runner/process/child_env.h"
#include "trial-runner/process/confinement.h"

struct child_spec {
    char **argv;            /* NULL-terminated; owned, each element too */
    char *directory;        /* owned; NULL: the runner's own */
    int *stdin_fd;          /* becomes descriptor 0; borrowed; NULL: /dev/null */
    const cpu_set_t *cores; /* it runs on these alone; borrowed; NULL: on those of the runner */
    struct child_env env;
    struct confinement *confinement; /* what stands around it; borrowed; NULL: nothing */
    bool is_engine;                  /* the engine of a container (confinement.h) */
    int64_t cpus;                    /* it may use so many; 0: all */
    char *cgroup;                    /* owned; of its process, set by child_spawn(); NULL: none */
};

void child_spec_done(struct child_spec *s);

/* Set argv, which must not be set yet, to copies of n texts. AS_E_NOMEM. */
AS_MUST_CHECK as_status child_spec_set_argv(struct child_spec *s, const char *const *args, size_t n,
                                            struct as_err *err);

/* The same in place of what argv is; the texts may be views of that. AS_E_NOMEM. */
AS_MUST_CHECK as_status child_spec_replace_argv(struct child_spec *s, const char *const *args,
                                                size_t n, struct as_err *err);

/* Start argv[0], which is looked up in the PATH of s->env, never through a shell. It gets stdin
 * from s->stdin_fd or /dev/null, stdout and stderr into one pipe, no other descriptor, default
 * signals, a new session and process group, and SIGKILL when this thread ends. Returns when the
 * program runs.
 *   ret_out_fd  read end of the pipe, non-blocking; owned by the caller
 * AS_E_NOT_FOUND "cannot run 'xyz': No such file or directory" and other errors of exec and chdir;
 * AS_E_IO: no process or pipe can be created, or it cannot be confined. */
AS_MUST_CHECK as_status child_spawn(struct child_spec *s, pid_t *ret_pid, int *ret_out_fd,
                                    struct as_err *err);

/* The same, with one end of a new stream socket as stdin, whatever s->stdin_fd says.
 *   ret_fd  the other end, non-blocking; owned by the caller. All are untouched on failure */
AS_MUST_CHECK as_status child_spawn_on_socket(struct child_spec *s, pid_t *ret_pid, int *ret_out_fd,
                                              int *ret_fd, struct as_err *err);

/* Signal the whole process group of a child that was not reaped yet. */
void child_signal_group(pid_t pid, int sig);

/* Reap a child that is a zombie, or soon will be. Before that, kill the rest of its process group;
 * after it, kill what is in its control group (NULL: it has none), and the processes that left the
 * process group (as child_kill_strays(dir) does).
 *   ret_wait_status  as from waitpid
 * Returns how many strays were killed. */
size_t child_take_end(pid_t pid, const char *cgroup, const char *dir, int *ret_wait_status);

/* SIGKILL every process whose environment names a report file below `dir`, which is the work folder
 * of one trial or of the runner. Returns how many were killed. A process that overwrote its
 * environment is not found. */
size_t child_kill_strays(const char *dir);

#endif
