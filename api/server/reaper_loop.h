/* A thread that does time's work (scheduler/lifecycle/reaper.h) every store_config()->reaper_ms, and the ends
 * of sweeps as soon as their last trial has ended. It has a thread of its own because a round may
 * take seconds: it computes ensembles. */
#ifndef ASSAY_API_SERVER_REAPER_LOOP_H
#define ASSAY_API_SERVER_REAPER_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "api/server/server.h"
#include "base/status.h"
#include "scheduler/store/store.h"

struct reaper_loop;

/* It hears of sweeps by store_on_finishing(). `db` and `s` are borrowed until reaper_loop_end()
 * said true. AS_E_NOMEM. */
AS_MUST_CHECK as_status reaper_loop_start(struct store *db, struct server *s,
                                          struct reaper_loop **ret, struct as_err *err);

/* No further round. Does not wait. */
void reaper_loop_tell(struct reaper_loop *r);

/* After reaper_loop_tell: wait for the round under way. False: it goes on after wait_ms, and
 * nothing was freed. */
AS_MUST_CHECK bool reaper_loop_end(struct reaper_loop *r, int64_t wait_ms);

#endif
