/* The program's three streams are pipes that are polled together, so that a program which writes
 * before it has read all of its input does not block. */
#include "cli/fleet/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/private_env.h"

#define OUTPUT_MAX (8 << 20)
#define SHOWN_MAX 300

extern char **environ;

bool command_says_away(const char *text)
{
    static const char *const signs[] = {"Unable to contact slurm controller",
                                        "Socket timed out",
                                        "Connection refused",
                                        "connection refused",
                                        "Connection timed out",
                                        "i/o timeout",
                                        "no route to host",
                                        "No route to host",
                                        "Slurm controller not responding",
                                        "TLS handshake timeout",
                                        "Unable to connect to the server",
                                        "the server is currently unable",
                                        "ServiceUnavailable",
                                        "Could not resolve hostname",
                                        "Zero Bytes were transmitted"};
    for (size_t i = 0; i < AS_ARRAY_LEN(signs); i++)
        if (strstr(text, signs[i]))
            return true;
    return false;
}

/* kubectl may need those of a cloud to sign in to its cluster. */
static bool is_kept_back(const char *pair)
{
    return private_env_is(pair) && !as_starts_with(pair, "AWS_");
}

/* The environment without the variables of Assay: views, the array is the caller's. */
static char **environment(void)
{
    size_t n = 0, kept = 0;
    while (environ[n])
        n++;
    char **list = as_calloc(n + 1, sizeof *list);
    for (size_t i = 0; list && i < n; i++)
        if (!is_kept_back(environ[i]))
            list[kept++] = environ[i];
    return list;
}

struct streams {
    int in, out, err; /* our ends; -1: closed */
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static as_status spawn_program(const char *const *argv, struct streams *s, pid_t *ret,
                               struct as_err *err)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1}, bad[2] = {-1, -1};
    posix_spawn_file_actions_t files;
    AS_AUTO(as_freep) char **env = environment();
    if (!env)
        return as_fail_nomem(err);
    if (posix_spawn_file_actions_init(&files) != 0)
        return as_fail_nomem(err);
    int failed = pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(bad, O_CLOEXEC) ? errno : 0;
    if (!failed)
        failed = posix_spawn_file_actions_adddup2(&files, in[0], 0) |
                 posix_spawn_file_actions_adddup2(&files, out[1], 1) |
                 posix_spawn_file_actions_adddup2(&files, bad[1], 2);
    if (!failed) /* it changes neither argv nor its texts */
        failed = posix_spawnp(ret, argv[0], &files, NULL, (char *const *)(uintptr_t)argv, env);
    posix_spawn_file_actions_destroy(&files);
    close_fd(&in[0]);
    close_fd(&out[1]);
    close_fd(&bad[1]);
    *s = (struct streams){in[1], out[0], bad[0]};
    if (!failed)
        return AS_OK;
    close_fd(&s->in);
    close_fd(&s->out);
    close_fd(&s->err);
    return failed == ENOENT ? as_fail(err, AS_E_NOT_FOUND, "%s: not installed here", argv[0])
                            : as_fail(err, AS_E_IO, "%s: %s", argv[0], strerror(failed));
}

static void read_some(int *fd, struct str *b)
{
    char buf[16384];
    ssize_t n = read(*fd, buf, sizeof buf);
    if (n > 0 && b->len < OUTPUT_MAX)
        str_add(b, buf, (size_t)n);
    else if (n == 0 || (n < 0 && errno != EINTR))
        close_fd(fd);
}

static void write_some(int *fd, const char **input)
{
    ssize_t n = write(*fd, *input, strlen(*input));
    if (n > 0)
        *input += n;
    if ((n < 0 && errno != EINTR) || **input == '\0')
        close_fd(fd);
}

/* Pass all streams on. False: it took too long. */
static bool talk(struct streams *s, const char *input, int64_t end_ns, struct str *out,
                 struct str *errors)
{
    if (*input == '\0')
        close_fd(&s->in);
    while (s->out >= 0 || s->err >= 0) {
        struct pollfd p[] = {{.fd = s->in, .events = POLLOUT},
                             {.fd = s->out, .events = POLLIN},
                             {.fd = s->err, .events = POLLIN}};
        int64_t left_ms = (end_ns - clock_mono_ns()) / NS_PER_MS;
        if (left_ms <= 0)
            return false;
        if (poll(p, AS_ARRAY_LEN(p), left_ms > 1000 ? 1000 : (int)left_ms) < 0 && errno != EINTR)
            return false;
        if (s->in >= 0 && p[0].revents)
            write_some(&s->in, &input);
        if (s->out >= 0 && p[1].revents)
            read_some(&s->out, out);
        if (s->err >= 0 && p[2].revents)
            read_some(&s->err, errors);
    }
    return true;
}

/* What it printed, in one line. */
static void shorten(struct str *b)
{
    while (b->len > 0 && strchr(" \n", b->s[b->len - 1]))
        b->s[--b->len] = '\0';
    for (size_t i = 0; i < b->len; i++)
        if ((unsigned char)b->s[i] < ' ')
            b->s[i] = ' ';
}

static as_status judge(const char *name, int status, const struct str *errors, struct as_err *err)
{
    const char *said = errors->len ? str_cstr(errors) : "it printed no reason";
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return AS_OK;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return as_fail(err, AS_E_NOT_FOUND, "%s: not installed here", name);
    return as_fail(err, command_says_away(said) ? AS_E_UNAVAILABLE : AS_E_CONFLICT, "%s: %.*s",
                   name, SHOWN_MAX, said);
}

as_status command_run(const char *const *argv, const char *input, int64_t timeout_ms,
                      struct str *out, struct as_err *err)
{
    AS_AUTO(str_done) struct str errors = {0};
    struct streams s;
    pid_t pid = 0;
    int status = 0;
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    as_status st = spawn_program(argv, &s, &pid, err);
    if (st < 0)
        return st;
    (void)sigaction(SIGPIPE, &ignore, &before); /* it may end before it has read all */
    bool in_time =
        talk(&s, input ? input : "", clock_mono_ns() + timeout_ms * NS_PER_MS, out, &errors);
    (void)sigaction(SIGPIPE, &before, NULL);
    close_fd(&s.in);
    close_fd(&s.out);
    close_fd(&s.err);
    if (!in_time)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!in_time)
        return as_fail(err, AS_E_UNAVAILABLE, "%s: no answer for %lld s", argv[0],
                       (long long)timeout_ms / 1000);
    st = str_check(out, err);
    shorten(&errors);
    return st < 0 ? st : judge(argv[0], status, &errors, err);
}
