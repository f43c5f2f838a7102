/* Ask and tell over HTTP: one client that asks for a trial and completes it at once. */
#ifndef ASSAY_BENCH_SCHEDULER_ASKS_H
#define ASSAY_BENCH_SCHEDULER_ASKS_H

#include "bench/scheduler/times.h"

/* `trials` trials of a sweep over five numbers and a category, by the search method `method`, on a
 * server of its own; each ask and each tell is added. */
void asks_run(const char *method, int trials, struct times *asks, struct times *tells);

#endif
