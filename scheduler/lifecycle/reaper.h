/* Time's work: what must happen although nobody asks for it.
 *
 * Any number of servers may run it at once; every step is a guarded transaction of its own. */
#ifndef ASSAY_SCHEDULER_LIFECYCLE_REAPER_H
#define ASSAY_SCHEDULER_LIFECYCLE_REAPER_H

#include "base/status.h"
#include "scheduler/lifecycle/lease_clock.h"
#include "scheduler/store/store.h"

/* One reaper of a process: {.db = db} is ready. `db` is borrowed. Its rounds are run by one thread.
 */
struct reaper {
    struct store *db;
    struct lease_clock clock;
};

/* What a tick did, for the log. */
struct reaper_report {
    int64_t runners_lost, clients_lost, attempts_lost, trials_timed_out;
    int64_t sweeps_ended; /* failed by wall time or failures, or moved to finishing */
    int64_t ensembles;    /* sweeps finished */
    int64_t removed;      /* old keys, events and blobs */
    bool more_to_finish;  /* not all sweeps that are over were finished: reaper_finish() */
};

/* One round: runners and clients whose lease ran out, trial_timeout (as a backstop, one grace
 * period and a lease after the runner should have done it), wall_time, sweeps that are over, their
 * ensembles, old rows. For one lease after this process connected or connected again, and after a
 * break (lease_clock.h), nobody is expired, so that runners can be heard first. AS_E_UNAVAILABLE:
 * the database is away; the rest of the round is left to the next one. */
AS_MUST_CHECK as_status reaper_tick(struct reaper *reaper, struct reaper_report *ret,
                                    struct as_err *err);

/* One part of a round alone: the ends of sweeps that are over, some at a time. To be called without
 * waiting for the next round when store_on_finishing() says so. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status reaper_finish(struct reaper *reaper, struct reaper_report *ret,
                                      struct as_err *err);

#endif
