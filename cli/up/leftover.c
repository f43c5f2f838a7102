/* Stops processes of an `assay up` that was killed.
 *
 * The processes are not children of this program: their end can only be polled, and their pids may
 * belong to other programs by now. Every signal is therefore preceded by a check of the start time.
 *
 * postgres has its own steps. SIGINT is its fast shutdown and may take seconds to write a
 * checkpoint; SIGKILL comes last, because it leaves shared memory and a recovery behind. */
#include "cli/up/leftover.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/files/process.h"
#include "cli/up/spawn.h"
#include "cli/up/supervisor.h"
#include "cli/view/say.h"

#define POLL_MS 50 /* not our children, so waitpid() cannot be used */

struct process {
    const char *name; /* borrowed */
    pid_t pid;
    unsigned long long start;
};

static bool is_there(const struct process *p)
{
    return process_start_ticks(p->pid) == p->start;
}

/* A step of stopping a process: the signal, and the time to wait before the next step. */
struct step {
    int signal;
    int64_t wait_ms;
};
static const struct step end_program[] = {{SIGTERM, 3000}, {SIGTERM, 4000}, {SIGKILL, 2000}};
static const struct step end_postgres[] = {{SIGINT, 10000}, {SIGQUIT, 4000}, {SIGKILL, 2000}};

/* Send a signal (0: none) to the processes that still run; returns how many those are. */
static size_t send_signal(const struct process *list, size_t n, int number)
{
    size_t there = 0;
    for (size_t i = 0; i < n; i++)
        if (is_there(&list[i]) && (number == 0 || kill(list[i].pid, number) == 0))
            there++;
    return there;
}

/* Stop all processes at once: a runner that waits for its trials must not delay the others. */
static as_status stop_processes(const struct process *list, size_t n, const struct step steps[3],
                                struct as_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (is_there(&list[i]))
            say("%s (pid %d) was left by an assay up that was killed; stopping it", list[i].name,
                (int)list[i].pid);
    for (size_t k = 0; k < 3; k++) {
        size_t there = send_signal(list, n, steps[k].signal);
        int64_t end_ns = clock_mono_ns() + steps[k].wait_ms * NS_PER_MS;
        while (there && (there = send_signal(list, n, 0)) > 0 && clock_mono_ns() < end_ns)
            clock_sleep_ms(POLL_MS);
    }
    for (size_t i = 0; i < n; i++)
        if (is_there(&list[i]))
            return as_fail(err, AS_E_TIMEOUT,
                           "%s (pid %d), left by an assay up that was killed, does not end",
                           list[i].name, (int)list[i].pid);
    return AS_OK;
}

/* Parse a line "NAME PID START". False for an incomplete line: it identifies no process. */
static bool parse_note(char *line, struct process *ret)
{
    char *space = strchr(line, ' '), *end;
    if (!space)
        return false;
    *space = 0;
    *ret = (struct process){.name = line, .pid = (pid_t)strtol(space + 1, &end, 10)};
    ret->start = strtoull(end, &end, 10);
    return ret->pid > 1 && ret->start > 0 && !*end;
}

as_status leftover_stop(const char *notes_path, struct as_err *err)
{
    AS_AUTO(as_freep) char *text = NULL;
    struct process programs[SUPERVISOR_MAX], databases[SUPERVISOR_MAX], p;
    size_t len, n_programs = 0, n_databases = 0;
    as_status st = file_read(notes_path, 65536, &text, &len, err);
    if (st == AS_E_NOT_FOUND)
        return AS_OK;
    if (st < 0)
        return st;
    for (char *line = text, *next; line; line = next) {
        if ((next = strchr(line, '\n')))
            *next++ = 0;
        if (!parse_note(line, &p))
            continue;
        if (as_streq(p.name, "postgres") && n_databases < SUPERVISOR_MAX)
            databases[n_databases++] = p;
        else if (n_programs < SUPERVISOR_MAX)
            programs[n_programs++] = p;
    }
    st = stop_processes(programs, n_programs, end_program, err);
    if (st < 0)
        return st;
    return stop_processes(databases, n_databases, end_postgres, err);
}

/* Whether the process is a postgres on this folder. "(deleted)": its program was upgraded. */
static bool is_postmaster_of(pid_t pid, const char *cluster)
{
    char path[64], exe[PATH_MAX];
    AS_AUTO(as_freep) char *line = NULL;
    (void)snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    ssize_t n = readlink(path, exe, sizeof exe - 1);
    if (n <= 0)
        return false;
    exe[n] = 0;
    const char *base = strrchr(exe, '/');
    if (!base ||
        (!as_streq(base + 1, "postgres") && !as_starts_with(base + 1, "postgres (deleted)")))
        return false;
    (void)snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    AS_AUTO(file_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *buf = line = as_calloc(1, 65536);
    n = fd >= 0 && buf ? read(fd, buf, 65535) : -1;
    for (ssize_t i = 0; i < n; i += (ssize_t)strlen(buf + i) + 1)
        if (as_streq(buf + i, cluster))
            return true;
    return false;
}

as_status leftover_stop_postmaster(const char *cluster, struct as_err *err)
{
    AS_AUTO(as_freep) char *path = file_join(cluster, "postmaster.pid");
    AS_AUTO(as_freep) char *text = NULL;
    size_t len;
    if (!path)
        return as_fail_nomem(err);
    as_status st = file_read(path, 65536, &text, &len, err);
    if (st == AS_E_NOT_FOUND)
        return AS_OK;
    if (st < 0)
        return st;
    struct process p = {.name = "postgres", .pid = (pid_t)strtol(text, NULL, 10)};
    if (p.pid <= 1 || !is_postmaster_of(p.pid, cluster))
        return AS_OK; /* a stale file; postgres replaces it when it starts */
    p.start = process_start_ticks(p.pid);
    return stop_processes(&p, 1, end_postgres, err);
}
