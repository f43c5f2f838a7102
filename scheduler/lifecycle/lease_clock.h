/* When a reaper may end leases, and when it looks for old rows. Pure: all times are given.
 *
 * A runner that was not heard is lost only when this process could have heard it. So a reaper tells
 * the clock of each look at leases, and ends none before it has looked for a whole lease without a
 * break. A break is half a lease without a look, at least a second: the process was stopped, the
 * machine slept, the database hung, or its clock was set. */
#ifndef ASSAY_SCHEDULER_LIFECYCLE_LEASE_CLOCK_H
#define ASSAY_SCHEDULER_LIFECYCLE_LEASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: it has not looked yet. One thread. */
struct lease_clock {
    int64_t looked_ms;      /* the last look, by the database's clock; 0: none */
    int64_t hears_since_ms; /* the first look after the last break */
    int64_t prune_at_ns;    /* monotonic: when old rows are looked for again */
};

/* There is a look at leases at now_ms, by the database's clock. True: leases that ran out may end.
 */
bool lease_clock_hears(struct lease_clock *c, int64_t lease_ms, int64_t now_ms);

/* Is it time to look for old rows? True once in every prune_ms; now_ns is monotonic. */
bool lease_clock_prunes(struct lease_clock *c, int64_t prune_ms, int64_t now_ns);

#endif
