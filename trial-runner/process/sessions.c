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

#define STAT_MAX 1024
#define ANCESTORS_MAX                                                                              \
    256 /* that are looked at: a listing of processes that change may have a circle */
#define NO_SESSION SIZE_MAX

/* The fields of /proc/PID/stat that count here (proc(5)). */
struct process_stat {
    int pid, parent, session;
    unsigned long long user, system, user_waited, system_waited; /* clock ticks */
    long long pages;
};

/* The name of the program, in parentheses, may hold anything: the fields begin after the last
 * one. */
static bool parse_stat(const char *text, struct process_stat *ret)
{
    enum {
        PARENT = 1,
        SESSION = 3,
        USER = 11,
        SYSTEM = 12,
        USER_WAITED = 13,
        SYSTEM_WAITED = 14,
        PAGES = 21,
        FIELDS
    };
    long long fields[FIELDS] = {0};
    const char *rest = strrchr(text, ')');
    if (!rest || rest[1] != ' ' || rest[2] == '\0')
        return false;
    rest += 3; /* field 0 is a letter, the state */
    for (int i = PARENT; i < FIELDS; i++) {
        char *end;
        fields[i] = strtoll(rest, &end, 10);
        if (end == rest)
            return false;
        rest = end;
    }
    ret->parent = (int)fields[PARENT];
    ret->session = (int)fields[SESSION];
    ret->user = (unsigned long long)fields[USER];
    ret->system = (unsigned long long)fields[SYSTEM];
    ret->user_waited = (unsigned long long)fields[USER_WAITED];
    ret->system_waited = (unsigned long long)fields[SYSTEM_WAITED];
    ret->pages = fields[PAGES];
    return true;
}

static bool read_stat(int proc, const char *pid, struct process_stat *ret)
{
    char path[64], text[STAT_MAX];
    (void)snprintf(path, sizeof path, "%.20s/stat", pid);
    AS_AUTO(file_closep) int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    ret->pid = (int)strtol(pid, NULL, 10);
    return parse_stat(text, ret);
}

struct listing {
    struct process_stat *v; /* by pid; owned */
    size_t n, cap;
};

static int by_pid(const void *x, const void *y)
{
    const struct process_stat *a = x, *b = y;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

/* Without memory for all of them those that fit are listed. */
static void list_processes(const char *proc, struct listing *ret)
{
    DIR *d = opendir(proc);
    for (const struct dirent *e; d && (e = readdir(d));) {
        struct process_stat p;
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
static size_t owner_of(const struct listing *all, const struct process_stat *p,
                       const struct session_use *v, size_t n)
{
    size_t owner = find_session(v, n, p->session);
    for (int i = 0; i < ANCESTORS_MAX && owner == NO_SESSION && p && p->parent > 1; i++) {
        const struct process_stat wanted = {.pid = p->parent};
        p = bsearch(&wanted, all->v, all->n, sizeof *all->v, by_pid);
        owner = p ? find_session(v, n, p->session) : NO_SESSION;
    }
    return owner;
}

static void add_process(const struct process_stat *p, struct session_use *v)
{
    const long tick = sysconf(_SC_CLK_TCK), page = sysconf(_SC_PAGESIZE);
    v->cpu_ms += (int64_t)((p->user + p->system + p->user_waited + p->system_waited) * 1000 /
                           (unsigned long long)tick);
    v->memory_bytes += p->pages > 0 ? p->pages * page : 0;
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
            add_process(&all.v[i], &v[owner]);
    }
    free(all.v);
}
