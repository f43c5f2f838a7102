/* The importance of a sweep's parameters. */
#ifndef ASSAY_SCHEDULER_SERVICES_SWEEP_IMPORTANCE_H
#define ASSAY_SCHEDULER_SERVICES_SWEEP_IMPORTANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/store/store.h"
#include "scheduler/suggester/result_cache.h"

/* Shares of the variance of an objective. NaN: unknown. */
struct importance_param {
    const char *name;
    double first, first_low, first_high; /* the parameter alone */
    double total, total_low, total_high; /* the parameter with its interactions */
    double top;          /* its share in separating the best tenth of the trials from all */
    bool is_conditional; /* the shares hold where the parameter is active */
};

struct importance_row {
    const char *metric; /* the objective's name */
    int64_t trials;     /* the number of trials that it was computed from */
    int64_t every;      /* of every so-many-th trial by number; 1: of all */
    bool is_stale;      /* more trials have ended since it was computed */
    const char *method;
    double r2; /* of the model, on trials that were left out of its fit; NaN: no model */
    struct importance_param *params; /* most important first; empty if there is a reason */
    size_t n;
    const char *reason; /* why there are none; NULL: there are */
};

/* The importance of the parameters for the objective of that name (NULL: the first). It is computed
 * in the calling thread, which takes up to seconds with many trials, so call it where slow
 * operations may run. The answer is kept in `cache` (NULL: nowhere), for each objective, until
 * another trial ends. While another request computes it, and while it will do (`max_age_ms`, struct
 * result_wanted), the older answer is returned (is_stale).
 * If it cannot be computed (too few trials, a model that predicts nothing), the answer has a
 * `reason`. AS_E_NOT_FOUND. AS_E_INVAL: no such objective. */
AS_MUST_CHECK as_status sweep_importance(struct store *db, struct result_cache *cache,
                                         struct arena *a, const char *id, const char *metric,
                                         int64_t max_age_ms, struct importance_row *ret,
                                         struct as_err *err);

#endif
