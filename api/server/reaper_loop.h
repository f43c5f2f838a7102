/* The thread of the reaper (scheduler/lifecycle/reaper.h). It runs a round every
 * store_config()->reaper_ms, and ends a sweep as soon as its last trial has ended. The reaper has a
 * thread of its own because a round may take seconds: it computes ensembles. */
#ifndef ASSAY_API_SERVER_REAPER_LOOP_H
#define ASSAY_API_SERVER_REAPER_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "api/server/server.h"
#include "base/status.h"
#include "scheduler/store/store.h"

struct reaper_loop;

/* Start the thread. store_on_finishing() notifies it of finished sweeps. `db` and `s` are borrowed
 * until reaper_loop_end() has returned true. AS_E_NOMEM. */
AS_MUST_CHECK as_status reaper_loop_start(struct store *db, struct server *s,
                                          struct reaper_loop **ret, struct as_err *err);

/* Ask the thread to start no further round. Does not wait. */
void reaper_loop_request_stop(struct reaper_loop *r);

/* Call it after reaper_loop_request_stop: wait for the running round, then free the loop. Returns
 * false if the round still runs after wait_ms: nothing was freed then. */
AS_MUST_CHECK bool reaper_loop_end(struct reaper_loop *r, int64_t wait_ms);

#endif
