/* The floor on bare tables: a claim from a queue (FOR UPDATE SKIP LOCKED), one measurement, a
 * completion, each a transaction, run by pgbench. The tables have their keys and the queue's index,
 * and nothing else that a service needs. */
#ifndef ASSAY_BENCH_SCHEDULER_PGBENCH_H
#define ASSAY_BENCH_SCHEDULER_PGBENCH_H

#include "bench/scheduler/floor.h"

#define PGBENCH_SET 50

/* Cycles in a second on a new database of the fixture, with `clients` connections that each take
 * `set` trials at a time (1 or PGBENCH_SET). A rate of NaN: there is no
 * pgbench. */
struct floor pgbench_cycles(int set, int clients, double seconds);

/* Points in a second of `clients` connections that insert sets of `set` points into a bare table,
 * each set a transaction. A rate of NaN: there is no pgbench. */
struct floor pgbench_points(int set, int clients, double seconds);

#endif
