#include "tests/api/server/assayd_process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "tests/support/check_main.h"
#include "tests/support/roots.h"

#define LOG_MAX ((size_t)64 << 20)
#define SHOWN_MAX ((size_t)32 << 10) /* room for a few reports of ThreadSanitizer */
#define ARGS_MAX 31
#define PROCESSES_MAX 8

static struct process {
    pid_t pid; /* 0: none */
    char log[128];
} processes[PROCESSES_MAX];

static struct process *find_process(pid_t pid)
{
    for (size_t i = 0; i < PROCESSES_MAX; i++)
        if (processes[i].pid == pid)
            return &processes[i];
    ck_abort_msg("no place for process %d", (int)pid);
}

static void show_log(const struct process *p, const char *what)
{
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    struct as_err err;
    if (file_read(p->log, LOG_MAX, &text, &len, &err) < 0) {
        (void)fprintf(stderr, "--- assayd %d %s; no log: %s\n", (int)p->pid, what, err.msg);
        return;
    }
    size_t skip = len > SHOWN_MAX ? len - SHOWN_MAX : 0;
    (void)fprintf(stderr, "--- assayd %d %s; the end of its log:\n%.*s\n---\n", (int)p->pid, what,
                  (int)(len - skip), text + skip);
}

/* Called in the child. Does not return. */
static void exec_assayd(const char *log, const char *const *args)
{
    const char *argv[ARGS_MAX + 2] = {"assayd"};
    char program[512];
    (void)snprintf(program, sizeof program, "%s/api/server/assayd", build_root());
    for (size_t n = 0; n < ARGS_MAX && args[n]; n++)
        argv[n + 1] = args[n];
    int fd = open(log, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    (void)dup2(fd, STDERR_FILENO);
    (void)dup2(fd, STDOUT_FILENO);
    execv(program, (char *const *)argv);
    _exit(127);
}

pid_t assayd_start(const char *dir, const char *const *args)
{
    static unsigned counter;
    struct process *p = find_process(0);
    (void)snprintf(p->log, sizeof p->log, "%s/log-%u", dir, counter++);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        exec_assayd(p->log, args);
    p->pid = pid;
    return pid;
}

static int status_of(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status) - 1000;
}

int assayd_wait(pid_t pid, int want)
{
    struct process *p = find_process(pid);
    int status = 0, code = -1;
    bool has_ended = false;
    char what[80];
    int64_t until = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    while (!(has_ended = waitpid(pid, &status, WNOHANG) == pid) && clock_mono_ns() < until)
        clock_sleep_ms(10);
    if (has_ended) {
        code = status_of(status);
    } else {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, &status, 0);
    }
    (void)snprintf(what, sizeof what, "ended with %d, expected was %d (-1: it does not end)", code,
                   want);
    if (code != want)
        show_log(p, what);
    p->pid = 0;
    return code;
}

bool assayd_runs(pid_t pid)
{
    siginfo_t info = {0};
    bool has_ended =
        waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid;
    if (has_ended)
        show_log(find_process(pid), "ended by itself");
    return !has_ended;
}

static bool log_has(const struct process *p, const char *part)
{
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    return file_read(p->log, LOG_MAX, &text, &len, NULL) == AS_OK && strstr(text, part) != NULL;
}

void assayd_await_log(pid_t pid, const char *text)
{
    const struct process *p = find_process(pid);
    int64_t until = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    while (!log_has(p, text)) {
        ck_assert(assayd_runs(pid));
        ck_assert_msg(clock_mono_ns() < until, "'%s' is not in the log of assayd", text);
        clock_sleep_ms(10);
    }
}

void assayd_end_all(void)
{
    for (size_t i = 0; i < PROCESSES_MAX; i++) {
        struct process *p = &processes[i];
        if (p->pid == 0)
            continue;
        (void)kill(p->pid, SIGKILL);
        (void)waitpid(p->pid, NULL, 0);
        show_log(p, "was running when the test failed, or had ended");
        p->pid = 0;
    }
}
