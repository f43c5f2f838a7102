#include "bench/peer_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

void peer_process_end(struct peer_process *c)
{
    if (c->pid == 0)
        return;
    (void)close(c->to);
    (void)fclose(c->from);
    if (c->parent == getpid())
        (void)waitpid(c->pid, NULL, 0);
    *c = (struct peer_process){0};
}

as_status peer_process_start(char *const argv[], bool quiet, struct peer_process *ret,
                             struct as_err *err)
{
    int in[2], out[2];
    struct peer_process c = {.parent = getpid()};
    (void)signal(SIGPIPE, SIG_IGN);
    if (pipe2(in, O_CLOEXEC) != 0)
        return as_fail(err, AS_E_IO, "no pipe");
    if (pipe2(out, O_CLOEXEC) != 0) {
        (void)close(in[0]);
        (void)close(in[1]);
        return as_fail(err, AS_E_IO, "no pipe");
    }
    posix_spawn_file_actions_t files;
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawn_file_actions_adddup2(&files, in[0], STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
    if (quiet)
        (void)posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int failed = posix_spawnp(&c.pid, argv[0], &files, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)close(in[0]);
    (void)close(out[1]);
    c.to = in[1];
    c.from = fdopen(out[0], "r");
    if (failed == 0 && c.from != NULL) {
        *ret = c;
        return AS_OK;
    }
    (void)close(in[1]);
    (void)(c.from != NULL ? fclose(c.from) : close(out[0]));
    return as_fail(err, AS_E_UNAVAILABLE, "%s does not start", argv[0]);
}
