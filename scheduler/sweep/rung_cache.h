/* The boards of sweeps (rung_board.h) that this process has read, by the key of the sweep, so that
 * a transaction reads only the events that are new. A board is taken out while a transaction uses
 * it, and put back when that has committed. At most RUNG_CACHE_MAX are kept, the most recently used
 * ones. Any thread. */
#ifndef ASSAY_SCHEDULER_SWEEP_RUNG_CACHE_H
#define ASSAY_SCHEDULER_SWEEP_RUNG_CACHE_H

#include "scheduler/sweep/rung_board.h"

#define RUNG_CACHE_MAX 64

struct rung_cache;

/* AS_E_NOMEM. */
AS_MUST_CHECK as_status rung_cache_create(struct rung_cache **ret, struct as_err *err);
void rung_cache_free(struct rung_cache *c);

/* The board of a sweep; the caller's. NULL: none is there, or it was put with another stamp. */
struct rung_board *rung_cache_take(struct rung_cache *c, int64_t key, int64_t stamp);
/* Takes `b`. */
void rung_cache_put(struct rung_cache *c, int64_t key, int64_t stamp, struct rung_board *b);

#endif
