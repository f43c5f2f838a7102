/* Processor time by program: the load generator (this process), assayd, and PostgreSQL (all its
 * processes, those that have ended included). */
#ifndef ASSAY_BENCH_SCHEDULER_USAGE_H
#define ASSAY_BENCH_SCHEDULER_USAGE_H

#include <stddef.h>
#include <sys/types.h>

struct spent {
    double user_s, system_s;
};

struct usage {
    double at_s;                                       /* monotonic */
    struct spent generator, server, database, machine; /* machine: of all programs */
};

/* What was spent until now. `server` 0: there is none. The database is this process's child. */
struct usage usage_now(pid_t server);
struct usage usage_since(const struct usage *begin, const struct usage *end);

/* Microseconds of assayd and PostgreSQL for each of n. */
double usage_us(const struct usage *begin, const struct usage *end, double n);

/* "load 9+12, assayd 60+20, PostgreSQL 210+30": microseconds for each of n, in user and in system
 * mode. */
void usage_format_each(const struct usage *u, double n, char *ret, size_t size);

/* "processor: assayd 0.61+0.20, PostgreSQL 0.70+0.15, load 0.05+0.06 (6%), others 0.20": cores, in
 * user and in system mode. The share is that of the load generator in what the three spent. */
void usage_format(const struct usage *u, char *ret, size_t size);

#endif
