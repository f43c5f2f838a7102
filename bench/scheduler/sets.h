/* The floor on Assay's own tables, without HTTP: a set of trials begins, another statement set
 * measures it, a third one completes it, each a transaction on a connection of its own. The
 * statements write what the service writes: trials, attempts, measurements, events, counts. They
 * decide nothing. */
#ifndef ASSAY_BENCH_SCHEDULER_SETS_H
#define ASSAY_BENCH_SCHEDULER_SETS_H

#include "bench/scheduler/floor.h"

/* Cycles in a second of `connections` threads, on a database of its own with `sweeps` sweeps. Each
 * set has `set` trials, spread evenly over the sweeps. */
struct floor sets_cycles(int sweeps, int set, int connections, double seconds);

#endif
