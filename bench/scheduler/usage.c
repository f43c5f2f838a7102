#include "bench/scheduler/usage.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/proc_stat.h"

struct process {
    pid_t parent;
    bool is_postgres;
    struct spent own, ended; /* ended: of its children that it waited for */
};

/* Text of a file of /proc, "" if the process is gone. */
static void read_text(const char *path, char *ret, size_t size)
{
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(ret, 1, size - 1, f) : 0;
    ret[n] = '\0';
    if (f)
        (void)fclose(f);
}

static struct spent ticks(double user, double system)
{
    double hz = (double)sysconf(_SC_CLK_TCK);
    return (struct spent){user / hz, system / hz};
}

/* What comes after n fields that blanks divide. */
static const char *skip_fields(const char *s, int n)
{
    for (int i = 0; i < n; i++) {
        s += strspn(s, " ");
        s += strcspn(s, " ");
    }
    return s;
}

/* The number at *s, which moves behind it; 0 where there is none. */
static unsigned long next_number(const char **s)
{
    char *end;
    unsigned long v = strtoul(*s, &end, 10);
    *s = end;
    return v;
}

static bool read_process(pid_t pid, struct process *ret)
{
    char path[64], text[PROC_STAT_MAX];
    struct proc_stat x;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    read_text(path, text, sizeof text);
    if (!proc_stat_parse(text, &x))
        return false;
    *ret = (struct process){.parent = x.parent,
                            .is_postgres = strstr(text, "(postgres)") != NULL,
                            .own = ticks((double)x.user, (double)x.system),
                            .ended = ticks((double)x.user_waited, (double)x.system_waited)};
    return true;
}

static void add(struct spent *sum, const struct spent *more)
{
    sum->user_s += more->user_s;
    sum->system_s += more->system_s;
}

/* The postmaster is our child, and the other processes of the cluster are its children. */
static struct spent of_database(void)
{
    struct spent sum = {0};
    DIR *d = opendir("/proc");
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        struct process p, parent;
        pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
        if (pid <= 0 || !read_process(pid, &p) || !p.is_postgres)
            continue;
        if (p.parent == getpid()) {
            add(&sum, &p.own);
            add(&sum, &p.ended);
        } else if (read_process(p.parent, &parent) && parent.parent == getpid()) {
            add(&sum, &p.own);
        }
    }
    if (d)
        (void)closedir(d);
    return sum;
}

static struct spent of_machine(void)
{
    char text[512];
    unsigned long t[8] = {0};
    read_text("/proc/stat", text, sizeof text);
    const char *rest = skip_fields(text, 1); /* "cpu" */
    for (size_t i = 0; i < 7; i++)
        t[i] = next_number(&rest);
    return ticks((double)(t[0] + t[1]), (double)(t[2] + t[5] + t[6]));
}

struct usage usage_now(pid_t server)
{
    struct process self = {0}, other = {0};
    (void)read_process(getpid(), &self);
    if (server > 0)
        (void)read_process(server, &other);
    return (struct usage){.at_s = (double)clock_mono_ns() / NS_PER_S,
                          .generator = self.own,
                          .server = other.own,
                          .database = of_database(),
                          .machine = of_machine()};
}

static struct spent minus(struct spent a, struct spent b)
{
    return (struct spent){a.user_s - b.user_s, a.system_s - b.system_s};
}

struct usage usage_since(const struct usage *begin, const struct usage *end)
{
    return (struct usage){.at_s = end->at_s - begin->at_s,
                          .generator = minus(end->generator, begin->generator),
                          .server = minus(end->server, begin->server),
                          .database = minus(end->database, begin->database),
                          .machine = minus(end->machine, begin->machine)};
}

double usage_us(const struct usage *begin, const struct usage *end, double n)
{
    const struct usage u = usage_since(begin, end);
    return 1e6 / n *
           (u.server.user_s + u.server.system_s + u.database.user_s + u.database.system_s);
}

void usage_format_each(const struct usage *u, double n, char *ret, size_t size)
{
    double us = 1e6 / n;
    (void)snprintf(ret, size, "load %.0f+%.0f, assayd %.0f+%.0f, PostgreSQL %.0f+%.0f",
                   us * u->generator.user_s, us * u->generator.system_s, us * u->server.user_s,
                   us * u->server.system_s, us * u->database.user_s, us * u->database.system_s);
}

void usage_format(const struct usage *u, char *ret, size_t size)
{
    double s = u->at_s, load = u->generator.user_s + u->generator.system_s;
    double ours =
        load + u->server.user_s + u->server.system_s + u->database.user_s + u->database.system_s;
    double others = u->machine.user_s + u->machine.system_s - ours;
    (void)snprintf(ret, size,
                   "processor: assayd %.2f+%.2f, PostgreSQL %.2f+%.2f, load %.2f+%.2f (%.0f%%), "
                   "others %.2f",
                   u->server.user_s / s, u->server.system_s / s, u->database.user_s / s,
                   u->database.system_s / s, u->generator.user_s / s, u->generator.system_s / s,
                   ours > 0 ? 100 * load / ours : 0, others > 0 ? others / s : 0);
}
