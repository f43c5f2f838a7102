/* How far a rank may be ahead of the others. Pure.
 *
 * A clock is a step of the training. A rank has `done` clocks when it has computed the gradients of
 * clocks 0 to done-1. With the bound s it may begin clock t if every rank has done t-s clocks: s =
 * 0 is bulk-synchronous (Valiant 1990), other bounds are stale synchronous parallel (Ho et al.
 * 2013), CLOCK_NO_BOUND is asynchronous. So no rank leads the slowest by more than s clocks, and
 * what it reads has all writes of clocks before t-s. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_STALENESS_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_STALENESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLOCK_NO_BOUND INT64_MAX

/* May a rank begin clock `next` where all ranks have done `slowest` clocks or more? */
bool clock_may_begin(int64_t bound, int64_t slowest, int64_t next);

/* The fewest clocks that any of n >= 1 ranks has done. */
int64_t clock_slowest(const int64_t *done, size_t n);

#endif
