/* The process is forked twice, so that it is nobody's child: a parent that goes on for long would
 * otherwise keep it as a zombie when it ends. The first child tells its pid through a pipe. */
#include "cli/up/background.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/temp_file.h"
#include "cli/files/process.h"
#include "cli/files/running_server.h"

#define POLL_MS 50
#define OUTPUT_SHOWN 600 /* bytes of its output in a message */

/* Runs in the second child. Does not return. */
static void exec_up(const char *program, const char *runners, int log_fd)
{
    char *const argv[] = {(char *)program, (char *)"up", (char *)"--runners", (char *)runners,
                          NULL};
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)setsid();
    (void)dup2(nothing, STDIN_FILENO);
    (void)dup2(log_fd, STDOUT_FILENO);
    (void)dup2(log_fd, STDERR_FILENO);
    for (int i = 1; i < NSIG; i++)
        (void)signal(i, SIG_DFL);
    (void)execv(program, argv);
    (void)fprintf(stderr, "cannot run %s: %s\n", program, strerror(errno));
    _exit(127);
}

/* Fork twice; *ret is the pid of the second child. */
static as_status start(const char *program, const char *runners, int log_fd, pid_t *ret,
                       struct as_err *err)
{
    int ends[2], status;
    pid_t second = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return as_fail(err, AS_E_IO, "cannot make a pipe: %s", strerror(errno));
    pid_t first = fork();
    if (first == 0) {
        second = fork();
        if (second == 0)
            exec_up(program, runners, log_fd);
        _exit(second > 0 && write(ends[1], &second, sizeof second) == sizeof second ? 0 : 1);
    }
    (void)close(ends[1]);
    bool told = first > 0 && read(ends[0], &second, sizeof second) == sizeof second;
    (void)close(ends[0]);
    while (first > 0 && waitpid(first, &status, 0) < 0 && errno == EINTR)
        ;
    if (!told)
        return as_fail(err, AS_E_IO, "cannot start %s up", program);
    *ret = second;
    return AS_OK;
}

static as_status fail_ended(const char *log, struct as_err *err)
{
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    as_status st = file_read(log, 1 << 20, &text, &len, err);
    if (st < 0)
        return st;
    while (len && text[len - 1] == '\n')
        text[--len] = '\0';
    return as_fail(err, AS_E_UNAVAILABLE, "`assay up` ended; the end of its output: %s",
                   text + (len > OUTPUT_SHOWN ? len - OUTPUT_SHOWN : 0));
}

/* Another program may have started one on this data folder at the same moment: ours has ended and
 * said the pid of that one. 0: it has not. */
static pid_t started_by_another(const char *log)
{
    static const char said[] = "assay up (pid ";
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    if (file_read(log, 1 << 20, &text, &len, NULL) != AS_OK)
        return 0;
    const char *at = strstr(text, said);
    return at && strstr(at, ") is running on ") ? (pid_t)strtol(at + strlen(said), NULL, 10) : 0;
}

static as_status wait_until_found(pid_t pid, const char *log, bool (*stop)(void),
                                  struct as_err *err)
{
    unsigned long long start = process_start_ticks(pid);
    for (;;) {
        AS_AUTO(running_server_done) struct running_server note = {0};
        const char *data = getenv("ASSAY_DATA");
        bool live = start && process_start_ticks(pid) == start;
        if (running_server_read(NULL, data && *data ? data : NULL, &note, NULL) == AS_OK)
            return AS_OK;
        if (!live) {
            pid_t other = started_by_another(log);
            if (other <= 0 || other == pid)
                return fail_ended(log, err);
            pid = other;
            start = process_start_ticks(pid);
        }
        if (stop && stop())
            return as_fail(err, AS_E_CONFLICT, "interrupted");
        clock_sleep_ms(POLL_MS);
    }
}

as_status background_up_start(size_t runners, bool (*stop)(void), pid_t *ret_pid,
                              struct as_err *err)
{
    AS_AUTO(file_closep) int log_fd = -1;
    char log[256], program[PATH_MAX], count[24];
    pid_t pid = 0;
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n <= 0)
        return as_fail(err, AS_E_IO, "cannot find this program: %s", strerror(errno));
    program[n] = '\0';
    (void)snprintf(count, sizeof count, "%zu", runners);
    as_status st = temp_file_create(log, sizeof log, &log_fd, err);
    if (st < 0)
        return st;
    st = start(program, count, log_fd, &pid, err);
    if (st == AS_OK)
        st = wait_until_found(pid, log, stop, err);
    (void)unlink(log);
    if (st < 0 && pid > 0)
        (void)kill(pid, SIGTERM);
    if (st < 0)
        return st;
    *ret_pid = process_start_ticks(pid) ? pid : 0;
    return AS_OK;
}
