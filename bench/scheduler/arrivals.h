/* When the cycles of a load begin. With a rate they become due at random times (a Poisson process)
 * that are drawn without a look at any answer, and wait here until a slot is free: a server that
 * stalls is measured with all the cycles that it delays. */
#ifndef ASSAY_BENCH_SCHEDULER_ARRIVALS_H
#define ASSAY_BENCH_SCHEDULER_ARRIVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

struct arrivals {
    double rate; /* a second */
    int64_t next_ns, until_ns;
    int64_t *due; /* a ring of those that wait */
    size_t first, n;
    struct rng rng;
};

/* From now_ns to until_ns. Ends the program when memory is out. */
void arrivals_init(struct arrivals *a, double rate, int64_t now_ns, int64_t until_ns);
void arrivals_done(struct arrivals *a);

/* Add those that have become due; ends the program if more than a million wait. */
void arrivals_advance(struct arrivals *a, int64_t now_ns);
/* Take the one that has waited longest; false: none waits. */
bool arrivals_take(struct arrivals *a, int64_t *ret_due_ns);

#endif
