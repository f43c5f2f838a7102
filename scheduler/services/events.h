/* Events in the order of their commits.
 *
 * An event is written in the transaction of its change. Ids grow with the ids of the writing
 * transactions, and readers see only events that are older than every open transaction. So a reader
 * that follows by id misses nothing. */
#ifndef ASSAY_SCHEDULER_SERVICES_EVENTS_H
#define ASSAY_SCHEDULER_SERVICES_EVENTS_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/rows/event_row.h"
#include "scheduler/store/store.h"

/* Events with an id above `after`, ascending, at most `limit` (1..1000): those of one sweep, or, if
 * `sweep` is NULL, those of all sweeps and runners. ret->last_id is the next `after`; it also moves
 * past events of other sweeps. AS_E_NOT_FOUND: no such sweep. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status events_after(struct store *db, struct arena *a, const char *sweep,
                                     int64_t after, int64_t limit, struct event_list *ret,
                                     struct as_err *err);

/* The id of the latest event: pass it as `after` to follow from now on. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status events_now(struct store *db, int64_t *ret_after, struct as_err *err);

#endif
