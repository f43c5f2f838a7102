#include "cli/up_leftover.h"

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
#include "cli/session.h"
#include "cli/up_child.h"

#define POLL_MS 50 /* other people's children: nothing to wait on but time */

struct process {
    pid_t pid;
    unsigned long long start;
};

static bool is_there(const struct process *p)
{
    return up_process_start(p->pid) == p->start;
}

/* Send and wait; true when it is gone. */
static bool send_and_wait(const struct process *p, int number, int64_t wait_ms)
{
    if (!is_there(p) || kill(p->pid, number) != 0)
        return !is_there(p);
    int64_t end_ns = clock_mono_ns() + wait_ms * NS_PER_MS;
    while (is_there(p) && clock_mono_ns() < end_ns)
        clock_sleep_ms(POLL_MS);
    return !is_there(p);
}

static as_status stop(const struct process *p, const char *name, struct as_err *err)
{
    bool database = as_streq(name, "postgres");
    if (!is_there(p))
        return AS_OK;
    session_say("%s (pid %d) was left by an assay up that was killed; stopping it", name,
                (int)p->pid);
    if (send_and_wait(p, database ? SIGINT : SIGTERM, database ? 10000 : 3000) ||
        send_and_wait(p, database ? SIGQUIT : SIGTERM, 4000) || send_and_wait(p, SIGKILL, 2000))
        return AS_OK;
    return as_fail(err, AS_E_TIMEOUT,
                   "%s (pid %d), left by an assay up that was killed, does not end", name,
                   (int)p->pid);
}

/* One line "NAME PID START"; a torn one names nobody. */
static as_status stop_line(char *line, struct as_err *err)
{
    char *space = strchr(line, ' ');
    if (!space)
        return AS_OK;
    *space = 0;
    char *end;
    struct process p = {.pid = (pid_t)strtol(space + 1, &end, 10)};
    p.start = strtoull(end, &end, 10);
    if (p.pid <= 1 || p.start == 0 || *end)
        return AS_OK;
    return stop(&p, line, err);
}

as_status up_leftover_stop(const char *notes_path, struct as_err *err)
{
    AS_AUTO(as_freep) char *text = NULL;
    size_t len;
    as_status st = file_read(notes_path, 65536, &text, &len, err);
    if (st == AS_E_NOT_FOUND)
        return AS_OK;
    /* The last started first: runners, then assayd, then postgres. */
    while (st == AS_OK && len > 0) {
        while (len > 0 && text[len - 1] == '\n')
            text[--len] = 0;
        while (len > 0 && text[len - 1] != '\n')
            len--;
        st = stop_line(text + len, err);
    }
    return st;
}

/* Does the process run a postgres on this folder? */
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

as_status up_leftover_stop_postmaster(const char *cluster, struct as_err *err)
{
    AS_AUTO(as_freep) char *path = file_join(cluster, "postmaster.pid");
    AS_AUTO(as_freep) char *text = NULL;
    size_t len;
    if (!path)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    as_status st = file_read(path, 65536, &text, &len, err);
    if (st == AS_E_NOT_FOUND)
        return AS_OK;
    if (st < 0)
        return st;
    struct process p = {.pid = (pid_t)strtol(text, NULL, 10)};
    if (p.pid <= 1 || !is_postmaster_of(p.pid, cluster))
        return AS_OK; /* a stale file: postgres itself copes with it */
    p.start = up_process_start(p.pid);
    return stop(&p, "postgres", err);
}
