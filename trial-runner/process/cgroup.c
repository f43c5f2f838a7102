/* Control groups of trials.
 *
 * A group of version 2 may hand controllers to the groups below it only while no process is in
 * itself. So a runner that is alone in its group (a unit of systemd with Delegate=yes) moves to a
 * group below it. Where others are in the group too (a shell's session), they are left where they
 * are: groups are made without controllers, which still kills every descendant.
 *
 * A group is named assay-PID-N after its runner, so that the next runner knows which of them nobody
 * needs any more. */
#include "trial-runner/process/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"

#define TEXT_MAX (256 << 10)
#define NAME_PREFIX "assay-"
#define LEFT_WAIT_MS 1000 /* for processes of runners that have ended */
#define LOOK_MS 20

struct cgroup_home {
    char *path; /* owned; of the runner's own group */
    struct cgroup_controllers has;
    int64_t made;
};

/* ---- files of a group ---- */

static char *read_text(const char *folder, const char *name)
{
    AS_AUTO(as_freep) char *path = file_join(folder, name);
    char *text = NULL;
    size_t len = 0;
    return path && file_read(path, TEXT_MAX, &text, &len, NULL) == AS_OK ? text : NULL;
}

/* Returns 0 or an errno. */
static int write_text(const char *folder, const char *name, const char *text)
{
    AS_AUTO(as_freep) char *path = file_join(folder, name);
    AS_AUTO(file_closep) int fd = path ? open(path, O_WRONLY | O_CLOEXEC) : -1;
    if (!path)
        return ENOMEM;
    ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));
    return n < 0 ? errno : 0;
}

static bool has_word(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = text; at && (at = strstr(at, word)); at += n)
        if ((at == text || strchr(" \n", at[-1])) && strchr(" \n", at[n]))
            return true;
    return false;
}

/* ---- where the group of this process is ---- */

/* The path after "0::" of /proc/self/cgroup. */
static char *own_path(const char *root)
{
    AS_AUTO(as_freep) char *folder = file_join(*root ? root : "/", "proc/self");
    AS_AUTO(as_freep) char *text = folder ? read_text(folder, "cgroup") : NULL;
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
        if (as_starts_with(line, "0::/"))
            return as_strdup(line + 3);
    return NULL;
}

/* A line of /proc/self/mountinfo: ID PARENT DEVICE ROOT POINT OPTIONS … - TYPE SOURCE … */
static bool is_version_2(const char *line, char mounted[512], char point[512])
{
    const char *type = strstr(line, " - ");
    return type && as_starts_with(type, " - cgroup2 ") &&
           sscanf(line, "%*d %*d %*s %511s %511s", mounted, point) == 2;
}

/* The folder of the group `path`: below the mount point of version 2, which in a container may show
 * a part of the tree alone. */
static char *find_folder(const char *root, const char *path)
{
    AS_AUTO(as_freep) char *folder = file_join(*root ? root : "/", "proc/self");
    AS_AUTO(as_freep) char *text = folder ? read_text(folder, "mountinfo") : NULL;
    char mounted[512], point[512];
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
        AS_AUTO(str_done) struct str at = {0};
        if (!is_version_2(line, mounted, point))
            continue;
        size_t cut = strcmp(mounted, "/") == 0 ? 0 : strlen(mounted);
        if (strncmp(path, mounted, cut) != 0)
            continue;
        str_printf(&at, "%s%s%s", root, point, path + cut);
        while (at.len > 1 && at.s && at.s[at.len - 1] == '/')
            at.s[--at.len] = '\0';
        return str_take(&at);
    }
    return NULL;
}

/* ---- ends ---- */

/* Count the processes in the group itself. */
static size_t count_processes(const char *path)
{
    AS_AUTO(as_freep) char *text = read_text(path, "cgroup.procs");
    size_t n = 0;
    for (const char *at = text; at && (at = strchr(at, '\n')); at++)
        n++;
    return n;
}

/* Remove the group and those that its processes made below it. False: something is in one. */
static bool remove_groups(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        AS_AUTO(as_freep)
        char *below =
            e->d_type == DT_DIR && e->d_name[0] != '.' ? file_join(path, e->d_name) : NULL;
        if (below)
            (void)remove_groups(below);
    }
    if (d)
        closedir(d);
    return rmdir(path) == 0 || errno == ENOENT;
}

size_t cgroup_end(const char *path, int64_t wait_ms)
{
    if (!path)
        return 0;
    int64_t until = clock_mono_ns() + wait_ms * NS_PER_MS;
    size_t n = count_processes(path);
    (void)write_text(path, "cgroup.kill", "1");
    AS_AUTO(as_freep) char *events = file_join(path, "cgroup.events");
    AS_AUTO(file_closep) int fd = events ? open(events, O_RDONLY | O_CLOEXEC) : -1;
    while (!remove_groups(path) && clock_mono_ns() < until) {
        struct pollfd p = {.fd = fd, .events = POLLPRI}; /* `populated` has changed */
        (void)poll(&p, 1, LOOK_MS);
        char text[256];
        (void)!pread(fd, text, sizeof text, 0); /* arms it again */
    }
    return n;
}

/* What runners that have ended left. */
static void remove_left(const char *home)
{
    DIR *d = opendir(home);
    for (struct dirent *e; d && (e = readdir(d));) {
        long pid = as_starts_with(e->d_name, NAME_PREFIX)
                       ? strtol(e->d_name + strlen(NAME_PREFIX), NULL, 10)
                       : 0;
        if (pid <= 1 || kill((pid_t)pid, 0) == 0 || errno != ESRCH)
            continue;
        AS_AUTO(as_freep) char *path = file_join(home, e->d_name);
        (void)cgroup_end(path, LEFT_WAIT_MS);
    }
    if (d)
        closedir(d);
}

/* ---- home ---- */

/* Is this process alone in the group? */
static bool is_alone(const char *path)
{
    AS_AUTO(as_freep) char *text = read_text(path, "cgroup.procs");
    char *end = NULL;
    return text && strtol(text, &end, 10) == getpid() && strcmp(end, "\n") == 0;
}

static void leave_to_below(const char *home)
{
    char name[40];
    (void)snprintf(name, sizeof name, NAME_PREFIX "%d", (int)getpid());
    AS_AUTO(as_freep) char *below = file_join(home, name);
    if (below && (mkdir(below, 0755) == 0 || errno == EEXIST))
        (void)write_text(below, "cgroup.procs", "0");
}

static bool enable(const char *home, const char *available, const char *controller)
{
    char text[32];
    (void)snprintf(text, sizeof text, "+%s", controller);
    if (!has_word(available, controller))
        return false;
    int why = write_text(home, "cgroup.subtree_control", text);
    if (why == EBUSY && is_alone(home)) {
        leave_to_below(home);
        why = write_text(home, "cgroup.subtree_control", text);
    }
    return why == 0;
}

static void enable_controllers(struct cgroup_home *h)
{
    AS_AUTO(as_freep) char *available = read_text(h->path, "cgroup.controllers");
    if (!available)
        return;
    h->has.memory = enable(h->path, available, "memory");
    h->has.processes = enable(h->path, available, "pids");
    h->has.cpu = enable(h->path, available, "cpu");
}

/* Make a group, see that it can be killed, and remove it. */
static as_status try_group(struct cgroup_home *h, struct as_err *err)
{
    AS_AUTO(as_freep) char *path = NULL;
    static const struct cgroup_limits none = {0};
    as_status st = cgroup_make(h, &none, &path, err);
    if (st == AS_E_NOMEM)
        return st;
    if (st < 0)
        return as_fail(err, AS_E_UNSUPPORTED, "the control group %.150s is not delegated: %s",
                       h->path, strerror(errno));
    AS_AUTO(as_freep) char *kill_file = file_join(path, "cgroup.kill");
    AS_AUTO(file_closep) int entry = cgroup_open_entry(path);
    bool can_kill = kill_file && access(kill_file, W_OK) == 0;
    (void)remove_groups(path);
    if (!can_kill || entry < 0)
        return as_fail(err, AS_E_UNSUPPORTED, "the control groups below %.150s have no cgroup.kill",
                       h->path);
    return AS_OK;
}

as_status cgroup_home_open(const char *root, struct cgroup_home **ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *own = own_path(root);
    AS_AUTO(cgroup_home_closep) struct cgroup_home *h = as_calloc(1, sizeof *h);
    if (!h)
        return as_fail_nomem(err);
    h->path = own ? find_folder(root, own) : NULL;
    if (!h->path)
        return as_fail(err, AS_E_UNSUPPORTED,
                       "this host shows no control groups of version 2 to this process");
    as_status st = try_group(h, err);
    if (st < 0)
        return st;
    remove_left(h->path);
    enable_controllers(h);
    *ret = as_steal(h);
    return AS_OK;
}

void cgroup_home_close(struct cgroup_home *h)
{
    if (!h)
        return;
    free(h->path);
    free(h);
}

struct cgroup_controllers cgroup_home_controllers(const struct cgroup_home *h)
{
    return h->has;
}

/* ---- groups ---- */

static int limit(const char *path, bool has, const char *name, int64_t v, int64_t scale)
{
    char text[64];
    if (!has || v <= 0)
        return 0;
    (void)snprintf(text, sizeof text, scale > 1 ? "%" PRId64 " %" PRId64 : "%" PRId64, v * scale,
                   scale);
    return write_text(path, name, text);
}

#define CPU_PERIOD_US 100000

as_status cgroup_make(struct cgroup_home *h, const struct cgroup_limits *limits, char **ret,
                      struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    str_printf(&path, "%s/" NAME_PREFIX "%d-%" PRId64, h->path, (int)getpid(), ++h->made);
    as_status st = str_check(&path, err);
    if (st < 0)
        return st;
    if (mkdir(path.s, 0755) < 0)
        return as_fail(err, AS_E_IO, "cannot make the control group %.150s: %s", path.s,
                       strerror(errno));
    int why = limit(path.s, h->has.memory, "memory.max", limits->memory_bytes, 1);
    if (!why)
        why = limit(path.s, h->has.processes, "pids.max", limits->processes, 1);
    if (!why)
        why = limit(path.s, h->has.cpu, "cpu.max", limits->cpus, CPU_PERIOD_US);
    if (why) {
        (void)rmdir(path.s);
        return as_fail(err, AS_E_IO, "cannot limit the control group %.150s: %s", path.s,
                       strerror(why));
    }
    *ret = str_take(&path);
    return *ret ? AS_OK : as_fail_nomem(err);
}

int cgroup_open_entry(const char *path)
{
    AS_AUTO(as_freep) char *procs = file_join(path, "cgroup.procs");
    AS_AUTO(file_closep) int fd = procs ? open(procs, O_WRONLY | O_CLOEXEC) : -1;
    return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 4); /* a child uses 0 to 3 before */
}
