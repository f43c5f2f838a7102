/* Ranks that nobody reports: those whose runner is gone or no longer runs them, and gangs that
 * cannot go on by themselves. Any number of servers may do this at once; each step is a guarded
 * transaction of its own. */
#ifndef ASSAY_SCHEDULER_LIFECYCLE_GANG_REPAIR_H
#define ASSAY_SCHEDULER_LIFECYCLE_GANG_REPAIR_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/store/seat_store.h"
#include "scheduler/store/store.h"

/* Ranks of a runner that is lost, has left, or registered again without them. runner NULL: of all
 * runners. *ret_n: how many went. AS_E_UNAVAILABLE: the reaper does the rest. */
AS_MUST_CHECK as_status gangs_drop_orphans(struct store *db, const char *runner, int64_t *ret_n,
                                           struct as_err *err);

/* The ranks of the list that are due (store_seat_missing): their runner no longer runs them. */
AS_MUST_CHECK as_status gangs_drop_missing(struct store *db, const struct held_seat_list *missing,
                                           struct as_err *err);

/* A round of the reaper: orphans; gangs that never got all their ranks begin with those that
 * listen, after a lease; of gangs that wait for ranks for two leases all but the oldest give their
 * seats back and start again. *ret_n: how many gangs or ranks changed. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status gangs_tend(struct store *db, int64_t *ret_n, struct as_err *err);

#endif
