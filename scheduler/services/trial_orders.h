/* Orders of the trials of sweeps that are kept between requests, so that a page of a sorted list
 * costs what the page costs, by whatever key: a metric, a parameter, a time.
 *
 * An order is an array of keys in memory. A request reads which trials events have named since the
 * last one, and their keys; the first request for an order reads the keys of all trials. A page is
 * a part of the array after a place (decision 6008). */
#ifndef ASSAY_SCHEDULER_SERVICES_TRIAL_ORDERS_H
#define ASSAY_SCHEDULER_SERVICES_TRIAL_ORDERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/status.h"
#include "scheduler/rows/trial_row.h"
#include "scheduler/store/store.h"
#include "scheduler/store/trial_row_store.h"

#define TRIAL_ORDERS_BYTES ((size_t)128 << 20)

struct trial_orders;

/* At most about max_bytes; the order that was used longest ago goes first. NULL when memory is out.
 * Owned by the caller. */
struct trial_orders *trial_orders_create(size_t max_bytes);
/* No request may be running. */
void trial_orders_free(struct trial_orders *x);
AS_DEFINE_FREEP(struct trial_orders, trial_orders_free)
/* What it holds, for tests and figures. Any thread. */
size_t trial_orders_bytes(struct trial_orders *x);

/* The first `n` places after `after`, in the order of the query, of trials in its state and group.
 * ret: room for n. In a descending order the key of a place is the negative, so that it rises too.
 * Any thread.
 * AS_E_NOT_FOUND: the sweep was deleted. AS_E_INVAL: it has no such parameter. AS_E_UNAVAILABLE,
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status trial_orders_page(struct store *db, struct trial_orders *x,
                                          int64_t sweep_key, const struct trial_query *q,
                                          const struct trial_place *after, size_t n,
                                          struct trial_place *ret, size_t *ret_n,
                                          struct as_err *err);

#endif
