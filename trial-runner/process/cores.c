/* Cores for trials that ask for some.
 *
 * Runners of one machine know nothing of each other, and must not choose the same cores. So a core
 * is held by a socket in the abstract namespace whose name has the core's number: the system lets
 * one process bind it, and frees it when that process ends in any way. Runners in containers have
 * namespaces of their own; there the containers' CPU masks divide the machine.
 *
 * Cores are taken on one node of memory if one has enough, the one with the fewest free, and a
 * core's hyperthreads stay together. Nothing is promised when too few are free, or when another
 * user of the machine holds the names: the trial then runs unbound. A daemon for each machine
 * instead of several runners would make the names unnecessary. */
#include "trial-runner/process/cores.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#define LOCK_NAME "assay-core-%d"

static int read_place(const char *root, int cpu, const char *name)
{
    char path[300];
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    (void)snprintf(path, sizeof path, "%.200s/sys/devices/system/cpu/cpu%d/topology/%s", root, cpu,
                   name);
    return file_read(path, 4096, &text, &len, NULL) < 0 ? -1 : (int)strtol(text, NULL, 10);
}

/* Its folder has an entry nodeN. */
static int read_node(const char *root, int cpu)
{
    char path[300];
    int node = 0;
    (void)snprintf(path, sizeof path, "%.200s/sys/devices/system/cpu/cpu%d", root, cpu);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        if (as_starts_with(e->d_name, "node"))
            node = (int)strtol(e->d_name + strlen("node"), NULL, 10);
    if (d)
        closedir(d);
    return node;
}

void cores_read(const char *root, struct core_list *ret)
{
    cpu_set_t mine;
    ret->n = 0;
    if (sched_getaffinity(0, sizeof mine, &mine) != 0)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &mine))
            continue;
        int core = read_place(root, cpu, "core_id"),
            package = read_place(root, cpu, "physical_package_id");
        bool known = core >= 0 && package >= 0;
        ret->v[ret->n++] = (struct core){.cpu = cpu,
                                         .node = read_node(root, cpu),
                                         .body = known ? package * CORES_MAX + core : -1 - cpu};
    }
}

/* How many free cores there are on a node. */
static int64_t count_free(const struct core_list *l, const cpu_set_t *busy, int node)
{
    int64_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        n += l->v[i].node == node && !CPU_ISSET(l->v[i].cpu, busy);
    return n;
}

/* How many free hyperthreads the core of l->v[at] has; 0 if one of them is busy. */
static int64_t whole_body(const struct core_list *l, const cpu_set_t *busy, size_t at)
{
    int64_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        if (l->v[i].body != l->v[at].body)
            continue;
        if (CPU_ISSET(l->v[i].cpu, busy))
            return 0;
        n++;
    }
    return n;
}

typedef enum take_pass {
    TAKE_WHOLE, /* cores with all their hyperthreads, as many as are wanted */
    TAKE_RESTS, /* hyperthreads of cores of which others are busy */
    TAKE_ANY,
    TAKE_PASSES
} take_pass;

/* May l->v[at] be taken in this pass, when `want` are wanted? */
static bool is_for(const struct core_list *l, const cpu_set_t *busy, size_t at, take_pass pass,
                   int64_t want)
{
    int64_t whole = whole_body(l, busy, at);
    return pass == TAKE_ANY || (pass == TAKE_RESTS ? whole == 0 : whole > 0 && whole <= want);
}

/* Take free cores of a node, at most `want`. Returns how many. */
static int64_t take_of_node(const struct core_list *l, const cpu_set_t *busy, int node,
                            int64_t want, cpu_set_t *ret)
{
    cpu_set_t used = *busy;
    int64_t got = 0;
    for (int pass = 0; pass < TAKE_PASSES; pass++)
        for (size_t i = 0; i < l->n && got < want; i++) {
            const struct core *c = &l->v[i];
            if (c->node != node || CPU_ISSET(c->cpu, &used) ||
                !is_for(l, busy, i, (take_pass)pass, want - got))
                continue;
            for (size_t k = 0; k < l->n; k++) {
                bool goes = pass == TAKE_WHOLE ? l->v[k].body == c->body : k == i;
                if (!goes || CPU_ISSET(l->v[k].cpu, &used))
                    continue;
                CPU_SET(l->v[k].cpu, &used);
                CPU_SET(l->v[k].cpu, ret);
                got++;
            }
        }
    return got;
}

/* The node to take from next: with enough free cores, the one with the fewest; else the one with
 * the most. -1: none has a free core. */
static int best_node(const struct core_list *l, const cpu_set_t *busy, int64_t want)
{
    int best = -1;
    int64_t most = 0;
    for (size_t i = 0; i < l->n; i++) {
        int64_t n = count_free(l, busy, l->v[i].node);
        bool better = most >= want ? n >= want && n < most : n > most;
        if (better) {
            best = l->v[i].node;
            most = n;
        }
    }
    return best;
}

bool cores_choose(const struct core_list *l, const cpu_set_t *busy, int64_t want, cpu_set_t *ret)
{
    cpu_set_t used = *busy, chosen;
    int64_t left = want;
    CPU_ZERO(&chosen);
    for (int node; left > 0 && (node = best_node(l, &used, left)) >= 0;) {
        left -= take_of_node(l, &used, node, left, &chosen);
        CPU_OR(&used, &used, &chosen);
    }
    if (left > 0)
        return false;
    *ret = chosen;
    return true;
}

/* Bind the name of a core. -1: another trial has it. */
static int lock_core(int cpu)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int n = snprintf(at.sun_path + 1, sizeof at.sun_path - 1, LOCK_NAME, cpu);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&at, len) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

void core_hold_done(struct core_hold *h)
{
    for (size_t i = 0; i < h->n; i++)
        close(h->locks[i]);
    free(h->locks);
    *h = (struct core_hold){0};
}

/* Hold these cores; those that others hold are added to `busy`. */
static bool hold_all(struct core_hold *h, const cpu_set_t *set, cpu_set_t *busy)
{
    bool all = true;
    h->locks = as_calloc((size_t)CPU_COUNT(set), sizeof *h->locks);
    for (int cpu = 0; h->locks && cpu < CPU_SETSIZE; cpu++) {
        int fd = CPU_ISSET(cpu, set) ? lock_core(cpu) : -1;
        if (fd >= 0)
            h->locks[h->n++] = fd;
        else if (CPU_ISSET(cpu, set))
            CPU_SET(cpu, busy);
        all = all && (fd >= 0 || !CPU_ISSET(cpu, set));
    }
    all = all && h->locks;
    if (!all)
        core_hold_done(h);
    return all;
}

bool core_hold_take(struct core_hold *h, const struct core_list *l, int64_t want)
{
    cpu_set_t busy, set;
    CPU_ZERO(&busy);
    for (int before = -1; CPU_COUNT(&busy) > before;) {
        before = CPU_COUNT(&busy);
        if (!cores_choose(l, &busy, want, &set))
            return false;
        if (hold_all(h, &set, &busy)) {
            h->set = set;
            return true;
        }
    }
    return false;
}
