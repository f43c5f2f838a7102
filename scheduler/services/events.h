/* Events: what happened, in the order in which it was committed.
 *
 * An event is written in the transaction of its change. Ids grow with the writing transactions'
 * ids, and readers see only what is older than every transaction still under way, so that
 * following by id skips nothing. */
#ifndef ASSAY_SCHEDULER_SERVICES_EVENTS_H
#define ASSAY_SCHEDULER_SERVICES_EVENTS_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/rows/event_row.h"
#include "scheduler/store/store.h"

/* Events with an id above `after`, ascending, at most `limit` (1..1000); of one sweep, or of all
 * and of runners when `sweep` is NULL. ret->last_id is the place to go on from, and moves past
 * events of other sweeps too. AS_E_NOT_FOUND: no such sweep. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status events_after(struct store *db, struct arena *a, const char *sweep,
                                     int64_t after, int64_t limit, struct event_list *ret,
                                     struct as_err *err);

/* Where "from now on" starts: pass it as `after`. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status events_now(struct store *db, int64_t *ret_after, struct as_err *err);

#endif
