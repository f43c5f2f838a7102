#include "trial-runner/process/sessions.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

#define STAT_MAX 1024

/* The fields of /proc/PID/stat that count here (proc(5)). */
struct process_stat {
    int session;
    unsigned long long user, system, user_waited, system_waited; /* clock ticks */
    long long pages;
};

/* The name of the program, in parentheses, may hold anything: the fields begin after the last
 * one. */
static int parse_stat(const char *text, struct process_stat *ret)
{
    const char *rest = strrchr(text, ')');
    return rest && sscanf(rest + 1,
                          " %*c %*d %*d %d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu %*d %*d "
                          "%*d %*d %*u %*u %lld",
                          &ret->session, &ret->user, &ret->system, &ret->user_waited,
                          &ret->system_waited, &ret->pages) == 6;
}

static int read_stat(int proc, const char *pid, struct process_stat *ret)
{
    char path[64], text[STAT_MAX];
    (void)snprintf(path, sizeof path, "%.20s/stat", pid);
    AS_AUTO(file_closep) int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    return parse_stat(text, ret);
}

static void add_process(const struct process_stat *p, struct session_use *v, size_t n)
{
    const long tick = sysconf(_SC_CLK_TCK), page = sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < n; i++) {
        if (v[i].session != p->session)
            continue;
        v[i].cpu_ms += (int64_t)((p->user + p->system + p->user_waited + p->system_waited) * 1000 /
                                 (unsigned long long)tick);
        v[i].memory_bytes += p->pages > 0 ? p->pages * page : 0;
        v[i].processes++;
        return;
    }
}

void sessions_read(const char *root, struct session_use *v, size_t n)
{
    char at[300];
    for (size_t i = 0; i < n; i++)
        v[i] = (struct session_use){.session = v[i].session};
    if ((size_t)snprintf(at, sizeof at, "%s/proc", root) >= sizeof at)
        return;
    DIR *d = opendir(at);
    for (const struct dirent *e; d && (e = readdir(d));) {
        struct process_stat p;
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && read_stat(dirfd(d), e->d_name, &p))
            add_process(&p, v, n);
    }
    if (d)
        (void)closedir(d);
}
