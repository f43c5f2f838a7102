/* The line of /proc/PID/stat (proc(5)). */
#ifndef ASSAY_BASE_PROC_STAT_H
#define ASSAY_BASE_PROC_STAT_H

#include <stdbool.h>

#define PROC_STAT_MAX 1024 /* bytes of a line that are enough */

struct proc_stat {
    char state; /* 'R', 'S', 'Z' … */
    int parent, session;
    unsigned long long user, system, user_waited, system_waited; /* clock ticks */
    unsigned long long start;                                    /* clock ticks since the boot */
    long long pages;                                             /* that are resident */
};

/* False: it is no such line; ret is untouched. */
bool proc_stat_parse(const char *text, struct proc_stat *ret);

#endif
