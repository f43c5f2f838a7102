/* What the model of a sweep predicts over its parameters (search/importance/surface.h). */
#ifndef ASSAY_SCHEDULER_SERVICES_SWEEP_SURFACE_H
#define ASSAY_SCHEDULER_SERVICES_SWEEP_SURFACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/store/store.h"
#include "scheduler/suggester/result_cache.h"

#define SURFACE_MIN_PLACES 2
#define SURFACE_MAX_PLACES 64
#define SURFACE_PLACES 32 /* unless the request says another number */

struct surface_request {
    const char *sweep;  /* id */
    const char *metric; /* NULL: the first objective */
    const char *x;      /* NULL: each parameter alone, one surface after another; y is NULL */
    const char *y;      /* NULL: along x alone */
    int64_t places;     /* on an axis of a number: SURFACE_MIN_PLACES..SURFACE_MAX_PLACES */
    int64_t max_age_ms; /* an older answer will do for so long (struct result_wanted) */
};

struct surface_row {
    const char *metric;
    int64_t trials;       /* with a value */
    bool is_stale;        /* more trials have ended since it was computed */
    double r2;            /* of the model, on trials that were left out of its fit; NaN: no model */
    const char *reason;   /* why there is no model; NULL: there is one */
    const char *surfaces; /* JSON, a list of the API's Surface */
};

/* The surfaces of one request. They are computed in the calling thread, which takes up to seconds
 * with many trials, so call it where slow operations may run. The answer is kept in `cache` (NULL:
 * nowhere) until another trial ends; while another request computes it, and while it will do, the
 * older one is returned. AS_E_NOT_FOUND. AS_E_INVAL: no such metric or parameter, one that cannot
 * vary, or more cells than SURFACE_MAX_CELLS. */
AS_MUST_CHECK as_status sweep_surface(struct store *db, struct result_cache *cache, struct arena *a,
                                      const struct surface_request *q, struct surface_row *ret,
                                      struct as_err *err);

#endif
