/* The load over POST /v1/runners/{runner}/batch: each runner has one request under way, with the
 * measurements and the ends of the trials that it got before, and a claim for its free slots. One
 * thread drives all runners. */
#ifndef ASSAY_BENCH_SCHEDULER_BATCHES_H
#define ASSAY_BENCH_SCHEDULER_BATCHES_H

#include "bench/scheduler/load.h"

/* Run it, and end the trials that were begun. *ret is zeroed, or has the memory of earlier
 * times. */
void batches_run(const struct load_plan *plan, struct load_result *ret);

#endif
