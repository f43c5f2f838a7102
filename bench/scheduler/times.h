/* Measured times, kept one by one: a quantile is exact. */
#ifndef ASSAY_BENCH_SCHEDULER_TIMES_H
#define ASSAY_BENCH_SCHEDULER_TIMES_H

#include <stddef.h>

struct times {
    double *ms;
    size_t n, cap;
};

void times_done(struct times *t);
void times_clear(struct times *t); /* keeps the memory */
/* Ends the program when memory is out. */
void times_add(struct times *t, double ms);
void times_join(struct times *t, const struct times *more);

/* The smallest time that at least the share q of all do not exceed; NaN if there is none. Sorts. */
double times_quantile(struct times *t, double q);

#endif
