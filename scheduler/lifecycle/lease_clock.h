/* When a reaper may end leases and trials past their timeout, and when it looks for old rows. Pure:
 * all times are arguments.
 *
 * A silent runner is lost only if this process could have heard it. So a reaper reports each look
 * at leases to the clock, and ends no lease before it has looked for a whole lease without a break.
 * A break is a time of half a lease, and at least one second, without a look: the process was
 * stopped, the machine slept, the database hung, or its clock was set. */
#ifndef ASSAY_SCHEDULER_LIFECYCLE_LEASE_CLOCK_H
#define ASSAY_SCHEDULER_LIFECYCLE_LEASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: no look yet. One thread. */
struct lease_clock {
    int64_t looked_ms;      /* the last look, by the database's clock; 0: none */
    int64_t hears_since_ms; /* the first look after the last break */
    int64_t prune_at_ns;    /* monotonic: when to look for old rows again */
};

/* Record a look at leases at now_ms, by the database's clock. True: leases that ran out may end. */
bool lease_clock_hears(struct lease_clock *c, int64_t lease_ms, int64_t now_ms);

/* Is it time to look for old rows? True once in every prune_ms; now_ns is monotonic. */
bool lease_clock_prunes(struct lease_clock *c, int64_t prune_ms, int64_t now_ns);

#endif
