/* Descriptors are opened before fork(), so that their errors are those of the parent. The child
 * leaves variables out that would lead it to another server or database. Its user is changed before
 * the parent's death signal is set, because setuid() clears that setting; the parent's pid is
 * compared afterwards, because it may have died in between. The way back to root is tried and has
 * to fail (decision 9001). */
#include "cli/up/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/private_env.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#define EXIT_NO_EXEC 127

static bool become_user(const struct system_user *user)
{
    if (!user->name[0])
        return true;
    return initgroups(user->name, user->gid) == 0 && setgid(user->gid) == 0 &&
           setuid(user->uid) == 0 && (user->uid == 0 || setuid(0) != 0); /* there is no way back */
}

/* Those that would make a child use another server or database. */
static const char *const of_others[] = {"ASSAY_SERVER", "ASSAY_TOKEN", "ASSAY_TOKEN_FILE",
                                        "ASSAY_DATABASE"};

static bool server_keeps(const char *pair)
{
    return !as_starts_with(pair, "PG") &&
           !private_env_has_name(pair, of_others, AS_ARRAY_LEN(of_others));
}

/* The settings of a runner; it holds no credentials but its token. */
static bool others_keep(const char *pair)
{
    static const char *const names[] = {"ASSAY_LOG_LEVEL", "ASSAY_TRAINER", "ASSAY_NVML"};
    return as_starts_with(pair, "ASSAY_RUNNER_") ||
           private_env_has_name(pair, names, AS_ARRAY_LEN(names));
}

static void reset_signals(void)
{
    sigset_t none;
    (void)sigemptyset(&none);
    for (int i = 1; i < NSIG; i++)
        (void)signal(i, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Runs in the child. Does not return. */
static void exec_child(const struct spawn_spec *spec, int log_fd, int input_fd, pid_t parent)
{
    (void)setpgid(0, 0);
    (void)dup2(input_fd, STDIN_FILENO);
    (void)dup2(log_fd, STDOUT_FILENO);
    (void)dup2(log_fd, STDERR_FILENO);
    private_env_drop(spec->is_server ? server_keeps : others_keep);
    for (size_t i = 0; i < AS_ARRAY_LEN(spec->set_env) && spec->set_env[i][0]; i++)
        (void)setenv(spec->set_env[i][0], spec->set_env[i][1], 1);
    reset_signals();
    if (!become_user(&spec->user)) {
        (void)fprintf(stderr, "cannot become the user %s: %s\n", spec->user.name, strerror(errno));
        _exit(EXIT_NO_EXEC);
    }
    /* After setuid(), which clears this setting. If the parent died before this call, no signal
     * comes; getppid() detects that. */
    (void)prctl(PR_SET_PDEATHSIG, spec->death_signal);
    if (getppid() != parent)
        _exit(EXIT_NO_EXEC);
    (void)execv(spec->argv[0], (char *const *)spec->argv);
    (void)fprintf(stderr, "cannot run %s: %s\n", spec->argv[0], strerror(errno));
    _exit(EXIT_NO_EXEC);
}

/* A descriptor from which `text` can be read, or /dev/null. The text must fit into a pipe. */
static int open_input(const char *text)
{
    int ends[2];
    if (!text)
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    as_status st = file_write_all(ends[1], text, strlen(text), NULL);
    (void)close(ends[1]);
    if (st == AS_OK)
        return ends[0];
    (void)close(ends[0]);
    return -1;
}

as_status spawn_child(const struct spawn_spec *spec, pid_t *ret, struct as_err *err)
{
    AS_AUTO(file_closep)
    int log_fd = open(spec->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log_fd < 0)
        return as_fail(err, AS_E_IO, "cannot open %s: %s", spec->log_path, strerror(errno));
    AS_AUTO(file_closep) int input_fd = open_input(spec->input);
    if (input_fd < 0)
        return as_fail(err, AS_E_IO, "cannot make the input of %s: %s", spec->argv[0],
                       strerror(errno));
    pid_t parent = getpid(), pid = fork();
    if (pid < 0)
        return as_fail(err, AS_E_IO, "cannot fork: %s", strerror(errno));
    if (pid == 0)
        exec_child(spec, log_fd, input_fd, parent);
    (void)setpgid(pid, pid); /* in parent and child, so that neither must wait for the other */
    *ret = pid;
    return AS_OK;
}

bool system_user_can_enter(const struct system_user *user, const char *folder)
{
    if (!user->name[0])
        return access(folder, X_OK) == 0;
    pid_t pid = fork(); /* ask the kernel: groups, access lists and mounts matter */
    if (pid == 0)
        _exit(become_user(user) && access(folder, X_OK) == 0 ? 0 : 1);
    int status = 1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
