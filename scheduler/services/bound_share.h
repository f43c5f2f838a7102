/* How much of a processor the bounds of live sweeps may take, and what the next bound is expected
 * to cost. Nothing here reads a clock: times are by clock_mono_ns(), and durations are processor
 * time, in nanoseconds. */
#ifndef ASSAY_SCHEDULER_SERVICES_BOUND_SHARE_H
#define ASSAY_SCHEDULER_SERVICES_BOUND_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* A share of 1 / (rest + 1) of a processor. A bound begins when as much rest has passed as its
 * expected cost asks for; what it cost beyond that is rested for afterwards. */
struct bound_share {
    int64_t rest;     /* times as long as a bound takes */
    int64_t saved_ns; /* of rest before a bound, which is kept for the next ones at most */
    int64_t free_ns;  /* all rest up to this time is spent */
};

/* Rest that a bound asks for beforehand is that of so much expected cost at most: what is expected
 * of a sweep that has grown much may be far too much. */
#define BOUND_EXPECTED_MAX_NS (500 * NS_PER_MS)

/* Has a bound of this expected cost its rest behind it? */
bool bound_share_covers(const struct bound_share *s, int64_t expected_ns, int64_t now_ns);
/* A bound that took so long has ended now. */
void bound_share_spend(struct bound_share *s, int64_t took_ns, int64_t now_ns);

/* What a bound took. */
struct bound_cost {
    int64_t key;       /* of the sweep */
    int64_t completed; /* trials */
    int64_t took_ns;
    int64_t end_ns;
};

/* The cost of a bound of so many completed trials, BOUND_EXPECTED_MAX_NS at most. It is constant up
 * to 64 trials, and grows with their number to the power of 1.5 then: as measured up to 2,000 of
 * them, where it grows less below 500 and more above. */
int64_t bound_cost_expected(const struct bound_cost *last, int64_t completed);

#endif
