/* The thread that asks twice a second for what sweeps can still gain, and keeps it
 * (scheduler/services/regret_checks.h). A bound of a large sweep takes seconds, and neither
 * requests nor leases wait for it. */
#ifndef ASSAY_API_SERVER_REGRET_LOOP_H
#define ASSAY_API_SERVER_REGRET_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "scheduler/store/store.h"

struct regret_loop;

/* Start the thread. `db` is borrowed until regret_loop_end() has returned true. AS_E_NOMEM. */
AS_MUST_CHECK as_status regret_loop_start(struct store *db, struct regret_loop **ret,
                                          struct as_err *err);

/* Ask the thread to begin no other bound. Does not wait. NULL is allowed. */
void regret_loop_request_stop(struct regret_loop *r);

/* The same, wait for the bound that is computed, and free the loop. Returns false if that goes on
 * after wait_ms: nothing was freed then. NULL: true. */
AS_MUST_CHECK bool regret_loop_end(struct regret_loop *r, int64_t wait_ms);

#endif
