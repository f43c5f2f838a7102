/* The reaper: changes that must happen although no request asks for them.
 *
 * Any number of servers may run it at once; every step is a guarded transaction of its own. */
#ifndef ASSAY_SCHEDULER_LIFECYCLE_REAPER_H
#define ASSAY_SCHEDULER_LIFECYCLE_REAPER_H

#include "base/status.h"
#include "scheduler/lifecycle/lease_clock.h"
#include "scheduler/store/store.h"

/* The reaper of a process: {.db = db} is ready. `db` is borrowed. One thread runs its rounds. */
struct reaper {
    struct store *db;
    struct lease_clock clock;
};

/* The counts of one round, for the log. */
struct reaper_report {
    int64_t runners_lost, clients_lost, attempts_lost, trials_timed_out;
    int64_t gangs_changed; /* ranks that went, gangs that began late or started again */
    int64_t sweeps_ended;  /* failed by wall time or failures, or moved to finishing */
    int64_t ensembles;     /* sweeps finished, and ensembles made on request */
    int64_t removed;       /* old keys and events */
    int64_t hopeless;      /* trials that waited and could not be promoted any more */
    bool more_to_finish;   /* reaper_finish() may have more to do */
};

/* Run one round: runners and clients whose lease ran out, trial_timeout (as a backstop, one grace
 * period and a lease after the runner should have ended the trial; never for a process that its
 * runner says ended in time), wall_time, sweeps that are over, their ensembles, those that users
 * asked for, old rows. No lease and no trial_timeout expires for one lease after this process
 * connected or reconnected, and after a break (lease_clock.h), so that runners can be heard first.
 * AS_E_UNAVAILABLE: the database is away; the next round does the rest. */
AS_MUST_CHECK as_status reaper_tick(struct reaper *reaper, struct reaper_report *ret,
                                    struct as_err *err);

/* Run only one part of a round: end sweeps that are over, a limited number each time, and make one
 * ensemble that was asked for. Call it when store_on_finishing() reports work, without waiting for
 * the next round. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status reaper_finish(struct reaper *reaper, struct reaper_report *ret,
                                      struct as_err *err);

#endif
