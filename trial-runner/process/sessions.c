/* All processes are listed first, and then each is given to the session that it belongs to: its
 * own, or that of its nearest ancestor which is in one of them. */
#include "trial-runner/process/sessions.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/proc_stat.h"

#define ANCESTORS_MAX                                                                              \
    256 /* that are looked at: a listing of processes that change may have a circle */
#define NO_SESSION SIZE_MAX

struct process {
    int pid;
    struct proc_stat stat;
};

static bool read_stat(int proc, const char *pid, struct process *ret)
{
    char path[64], text[PROC_STAT_MAX];
    (void)snprintf(path, sizeof path, "%.20s/stat", pid);
    AS_AUTO(file_closep) int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    ret->pid = (int)strtol(pid, NULL, 10);
    return proc_stat_parse(text, &ret->stat);
}

struct listing {
    struct process *v; /* by pid; owned */
    size_t n, cap;
};

static int by_pid(const void *x, const void *y)
{
    const struct process *a = x, *b = y;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

/* Without memory for all of them those that fit are listed. */
static void list_processes(const char *proc, struct listing *ret)
{
    DIR *d = opendir(proc);
    for (const struct dirent *e; d && (e = readdir(d));) {
        struct process p;
        if (e->d_name[0] < '1' || e->d_name[0] > '9' || !read_stat(dirfd(d), e->d_name, &p))
            continue;
        if (as_reserve_one(&ret->v, ret->n, &ret->cap, sizeof *ret->v, NULL) != AS_OK)
            break;
        ret->v[ret->n++] = p;
    }
    if (d)
        (void)closedir(d);
    if (ret->n > 0)
        qsort(ret->v, ret->n, sizeof *ret->v, by_pid);
}

static size_t find_session(const struct session_use *v, size_t n, int session)
{
    for (size_t i = 0; i < n; i++)
        if (v[i].session == session)
            return i;
    return NO_SESSION;
}

/* The session that a process belongs to. */
static size_t owner_of(const struct listing *all, const struct process *p,
                       const struct session_use *v, size_t n)
{
    size_t owner = find_session(v, n, p->stat.session);
    for (int i = 0; i < ANCESTORS_MAX && owner == NO_SESSION && p && p->stat.parent > 1; i++) {
        const struct process wanted = {.pid = p->stat.parent};
        p = bsearch(&wanted, all->v, all->n, sizeof *all->v, by_pid);
        owner = p ? find_session(v, n, p->stat.session) : NO_SESSION;
    }
    return owner;
}

static void add_process(const struct proc_stat *x, struct session_use *v)
{
    const long tick = sysconf(_SC_CLK_TCK), page = sysconf(_SC_PAGESIZE);
    v->cpu_ms += (int64_t)((x->user + x->system + x->user_waited + x->system_waited) * 1000 /
                           (unsigned long long)tick);
    v->memory_bytes += x->pages > 0 ? x->pages * page : 0;
    v->processes++;
}

void sessions_read(const char *root, struct session_use *v, size_t n)
{
    char at[300];
    struct listing all = {0};
    for (size_t i = 0; i < n; i++)
        v[i] = (struct session_use){.session = v[i].session};
    if ((size_t)snprintf(at, sizeof at, "%s/proc", root) >= sizeof at)
        return;
    list_processes(at, &all);
    for (size_t i = 0; i < all.n; i++) {
        size_t owner = owner_of(&all, &all.v[i], v, n);
        if (owner != NO_SESSION)
            add_process(&all.v[i].stat, &v[owner]);
    }
    free(all.v);
}
