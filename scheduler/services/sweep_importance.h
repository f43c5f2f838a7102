/* Which parameters of a sweep matter. */
#ifndef ASSAY_SCHEDULER_SERVICES_SWEEP_IMPORTANCE_H
#define ASSAY_SCHEDULER_SERVICES_SWEEP_IMPORTANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/store/store.h"
#include "scheduler/suggester/result_cache.h"

/* Shares of the variance of an objective. NaN: not known. */
struct importance_param {
    const char *name;
    double first, first_low, first_high; /* alone */
    double total, total_low, total_high; /* with its interactions */
    double top;          /* share of what tells the best tenth of the trials from all */
    bool is_conditional; /* the shares are those where it is active */
};

struct importance_row {
    const char *metric; /* the objective's name */
    int64_t trials;     /* that it was computed from */
    bool is_stale;      /* a newer one is being computed */
    const char *method;
    double r2; /* of the model, left-out trials predicted; NaN: none was fitted */
    struct importance_param *params; /* most important first; none when there is a reason */
    size_t n;
    const char *reason; /* why there are none; NULL */
};

/* Which parameters matter for the objective of that name (NULL: the first). Computed here, which
 * takes up to seconds with many trials (call it where slow things may run), and kept in `cache`
 * (NULL: nowhere), for each objective, until another trial ends; while it is being computed for
 * another request, the answer before it (is_stale). What keeps it from being told (too few trials,
 * a model that predicts nothing) is its `reason`. AS_E_NOT_FOUND. AS_E_INVAL: no such objective. */
AS_MUST_CHECK as_status sweep_importance(struct store *db, struct result_cache *cache,
                                         struct arena *a, const char *id, const char *metric,
                                         struct importance_row *ret, struct as_err *err);

#endif
