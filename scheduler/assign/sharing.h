/* How the free slots of a claim are shared among sweeps. Pure. */
#ifndef ASSAY_SCHEDULER_ASSIGN_SHARING_H
#define ASSAY_SCHEDULER_ASSIGN_SHARING_H

#include "scheduler/store/turn_store.h"

/* How many of `slots` slots go to the first of these sweeps, if the slots are handed out one after
 * another: each to the sweep of the highest priority with the fewest running trials, and among
 * equals to the one that had its turn longest ago.
 *   sweeps   n sweeps in the order of turns, 1..TURN_LIST_MAX */
int64_t share_of_first(const struct claimable_sweep *sweeps, size_t n, int64_t slots);

/* How many of its `share` a sweep gives to a claim for slots that are not free yet: at most `room`.
 * If that is less, nothing else may have the rest, because it is this sweep's turn: *want, what the
 * claim wants of all, becomes what is given here. */
int64_t share_ahead(int64_t share, int64_t room, int64_t *want);

#endif
