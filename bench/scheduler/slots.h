/* The load over the routes of single attempts: each slot has a connection of its own, claims a
 * trial, sends its measurements, completes it, and begins again. One thread drives all slots. */
#ifndef ASSAY_BENCH_SCHEDULER_SLOTS_H
#define ASSAY_BENCH_SCHEDULER_SLOTS_H

#include "bench/scheduler/load.h"

/* Run it, and end the trials that were begun. *ret is zeroed, or has the memory of earlier
 * times. */
void slots_run(const struct load_plan *plan, struct load_result *ret);

#endif
