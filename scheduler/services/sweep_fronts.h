/* The Pareto fronts of sweeps that are kept between requests. A front knows the place in the order
 * of ends up to which it has seen the completed, feasible trials; a request reads those that ended
 * since. That suffices, because a completed trial keeps its values and is never retried. */
#ifndef ASSAY_SCHEDULER_SERVICES_SWEEP_FRONTS_H
#define ASSAY_SCHEDULER_SERVICES_SWEEP_FRONTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/status.h"
#include "scheduler/store/store.h"

#define SWEEP_FRONTS_BYTES ((size_t)32 << 20)

struct sweep_fronts;

/* At most about max_bytes; the front that was used longest ago goes first. NULL when memory is out.
 * Owned by the caller. */
struct sweep_fronts *sweep_fronts_create(size_t max_bytes);
/* No request may be running. */
void sweep_fronts_free(struct sweep_fronts *x);
AS_DEFINE_FREEP(struct sweep_fronts, sweep_fronts_free)
/* What it holds, for tests and figures. Any thread. */
size_t sweep_fronts_bytes(struct sweep_fronts *x);

/* Which front, and up to where it must be known. */
struct front_ask {
    int64_t sweep_key, finish_seq;
    const char *const *metrics; /* n_metrics, the names of the objectives */
    const bool *maximize;
    size_t n_metrics;
};

struct front_part {
    int64_t *numbers; /* ascending, in the arena */
    size_t n;
    bool has_more;
    bool is_empty;      /* the front is; the two below are not set */
    double *reference;  /* n_metrics, in the metrics' own units; in the arena */
    double hypervolume; /* of the whole front */
};

/* The numbers of the front above `after`, at most `most` of them. The front may be of a later place
 * than was asked for. Any thread. AS_E_UNAVAILABLE, AS_E_NOMEM. */
AS_MUST_CHECK as_status sweep_fronts_read(struct store *db, struct sweep_fronts *x, struct arena *a,
                                          const struct front_ask *ask, int64_t after, size_t most,
                                          struct front_part *ret, struct as_err *err);

#endif
