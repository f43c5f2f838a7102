/* Forks: trials that go on from a checkpoint of another trial. Conventions: "Rows" in
 * scheduler/README.md. */
#ifndef ASSAY_SCHEDULER_ROWS_FORK_ROW_H
#define ASSAY_SCHEDULER_ROWS_FORK_ROW_H

#include <stdint.h>

/* A fork of a trial, as people see it. */
struct fork_row {
    int64_t number, step; /* its own number; where it went on */
};

/* A fork that takes the place of a trial. */
struct fork_new {
    int64_t sweep_key;
    const char *sweep;        /* id */
    int64_t number;           /* its own */
    int64_t parent, replaced; /* trials that exist */
    int64_t step;             /* at which its parent was, and it begins */
    int64_t next;             /* the next rung that it may reach */
};

#endif
