/* What a sweep can still gain, at most. */
#ifndef ASSAY_SCHEDULER_SERVICES_SWEEP_REGRET_H
#define ASSAY_SCHEDULER_SERVICES_SWEEP_REGRET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/store/store.h"
#include "scheduler/suggester/result_cache.h"

struct regret_row {
    const char *metric;
    int64_t finish_seq; /* the last place of the sweep's order that it knows */
    bool is_stale;      /* a newer answer is being computed */
    bool is_enough;     /* so many trials that the bound says something (search/regret_bound.h) */
    double bound;       /* in the metric's unit; NaN: none, as with several metrics */
    double relative;    /* share of it in median - best of the completed trials; NaN: none */
};

/* The bound for the sweep's one metric. Computed in the calling thread, which takes up to seconds
 * with many trials, and kept in `cache` (NULL: nowhere) as importance is. AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status sweep_regret(struct store *db, struct result_cache *cache, struct arena *a,
                                     const char *id, struct regret_row *ret, struct as_err *err);

#endif
