/* What this machine has for trials.
 *
 * A process in a container sees all cores of its machine in /proc, and may use fewer: by its CPU
 * mask (cpuset) or by a quota of time. Both versions of control groups are read. A group is bounded
 * by each of its parents, so the way up to the root is walked. In a container the own group is
 * often mounted as the root; its files are then at the end of that way. */
#include "trial-runner/process/machine.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#define TEXT_MAX (64 << 10)
#define CGROUP_ROOT "/sys/fs/cgroup"

/* The text of a file; NULL: it cannot be read. Owned by the caller. */
static char *read_text(const char *root, const char *path, const char *name)
{
    AS_AUTO(str_done) struct str at = {0};
    char *text = NULL;
    size_t len = 0;
    str_printf(&at, "%s%s%s", root, path, name);
    if (at.failed || file_read(at.s, TEXT_MAX, &text, &len, NULL) < 0)
        return NULL;
    return text;
}

/* The number in a file; -1: there is none ("max", no such file). */
static int64_t read_number(const char *root, const char *path, const char *name)
{
    AS_AUTO(as_freep) char *text = read_text(root, path, name);
    char *end = NULL;
    long long v = text ? strtoll(text, &end, 10) : -1;
    return text && end > text && v >= 0 ? v : -1;
}

static void bound(int64_t *v, int64_t by)
{
    if (by >= 0 && (by < *v || *v < 0))
        *v = by;
}

/* Whole cores of a quota of time; less than one counts as one. */
static int64_t cores_of(int64_t quota, int64_t period)
{
    if (quota < 0 || period <= 0)
        return -1;
    return quota < period ? 1 : quota / period;
}

struct bounds {
    int64_t cpus, memory_bytes; /* -1: none */
};

/* The files of one group of version 2. */
static void read_group(const char *root, const char *group, struct bounds *b)
{
    AS_AUTO(as_freep) char *text = read_text(root, group, "/cpu.max");
    char *end = NULL;
    long long quota = text ? strtoll(text, &end, 10) : 0; /* "max": no number */
    if (text && end != text)
        bound(&b->cpus, cores_of(quota, strtoll(end, NULL, 10)));
    bound(&b->memory_bytes, read_number(root, group, "/memory.max"));
}

/* The files of one group of version 1. */
static void read_old_group(const char *root, const char *group, struct bounds *b)
{
    bound(&b->cpus, cores_of(read_number(root, group, "/cpu.cfs_quota_us"),
                             read_number(root, group, "/cpu.cfs_period_us")));
    bound(&b->memory_bytes, read_number(root, group, "/memory.limit_in_bytes"));
}

/* A group and its parents. `mount` is the folder of the hierarchy, `path` the group's path in
 * it. */
static void walk_up(const char *root, const char *mount, const char *path, bool is_old,
                    struct bounds *b)
{
    AS_AUTO(str_done) struct str at = {0};
    str_printf(&at, "%s%s", mount, path);
    if (at.failed)
        return;
    for (size_t least = strlen(mount);;) {
        (is_old ? read_old_group : read_group)(root, at.s, b);
        char *slash = strrchr(at.s, '/');
        if (strlen(at.s) <= least || !slash || (size_t)(slash - at.s) < least)
            return;
        *slash = '\0';
    }
}

/* One line of /proc/self/cgroup: ID:CONTROLLERS:PATH. */
static void read_line(const char *root, char *line, struct bounds *b)
{
    char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
    if (!path)
        return;
    *path++ = '\0';
    if (names[1] == '\0') {
        walk_up(root, CGROUP_ROOT, path, false, b);
        walk_up(root, CGROUP_ROOT "/unified", path, false, b);
        return;
    }
    names++;
    for (char *name; (name = strsep(&names, ","));) {
        AS_AUTO(str_done) struct str mount = {0};
        if (strcmp(name, "cpu") != 0 && strcmp(name, "memory") != 0)
            continue;
        str_printf(&mount, CGROUP_ROOT "/%s", name);
        if (!mount.failed)
            walk_up(root, mount.s, path, true, b);
    }
}

static void read_bounds(const char *root, struct bounds *b)
{
    AS_AUTO(as_freep) char *text = read_text(root, "/proc/self/cgroup", "");
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
        read_line(root, line, b);
}

static int64_t physical_memory(const char *root)
{
    AS_AUTO(as_freep) char *text = read_text(root, "/proc/meminfo", "");
    const char *line = text ? strstr(text, "MemTotal:") : NULL;
    long long kib = line ? strtoll(line + strlen("MemTotal:"), NULL, 10) : 0;
    return kib > 0 && kib < INT64_MAX >> 10 ? (int64_t)kib << 10 : -1;
}

void machine_read(const char *root, struct machine *ret)
{
    struct bounds b = {.cpus = -1, .memory_bytes = -1};
    *ret = (struct machine){0};
    cores_read(root, &ret->cores);
    AS_AUTO(as_freep) char *id = read_text(root, "/proc/sys/kernel/random/boot_id", "");
    if (id)
        (void)snprintf(ret->id, sizeof ret->id, "%.*s", (int)strcspn(id, "\n"), id);
    read_bounds(root, &b);
    bound(&b.cpus, ret->cores.n > 0 ? (int64_t)ret->cores.n : 1);
    bound(&b.memory_bytes, physical_memory(root));
    ret->cpus = b.cpus > 0 ? b.cpus : 1;
    ret->memory_bytes = b.memory_bytes > 0 ? b.memory_bytes : 0;
}
