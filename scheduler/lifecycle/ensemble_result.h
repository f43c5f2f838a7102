/* From candidates to the API's Ensemble object. */
#ifndef ASSAY_SCHEDULER_LIFECYCLE_ENSEMBLE_RESULT_H
#define ASSAY_SCHEDULER_LIFECYCLE_ENSEMBLE_RESULT_H

#include <stdbool.h>

#include "base/status.h"
#include "scheduler/store/ensemble_store.h"
#include "scheduler/store/store.h"
#include "scheduler/sweep/ensemble_options.h"

#define ENSEMBLE_CANDIDATES_MAX 50
#define ENSEMBLE_SWEEPS_MAX 20
/* How long a server has for an ensemble before another one computes it too. */
#define ENSEMBLE_LEASE_MS 120000

/* What is combined. All borrowed. */
struct ensemble_job {
    const char *sweep;  /* for the log */
    const char *metric; /* of the sweeps, which have the same one */
    const char *asked;  /* the metric to choose by instead (ensemble_metric.h); NULL: none */
    bool is_trainers;   /* the built-in trainer reports it */
    bool maximize;
    uint64_t seed; /* of the first sweep */
    struct ensemble_options options;
    const char *by;    /* bucketing: the column; NULL: that which trials left */
    int64_t max_bytes; /* of the members' models together; 0: any */
    bool several;      /* the candidates are of several sweeps, so members name theirs */
    const struct ensemble_candidate *candidates; /* best first */
    size_t n;
};

/* Compute it. A fault of the predictions becomes a reason in the result, also that memory is out.
 *   ret_json   the result, owned by the caller; equal jobs have equal results
 *   ret_state  "ready" or "none"
 * May take seconds. AS_E_UNAVAILABLE, AS_E_NOMEM. */
AS_MUST_CHECK as_status ensemble_compute(struct store *db, const struct ensemble_job *job,
                                         char **ret_json, const char **ret_state,
                                         struct as_err *err);

/* A result without an ensemble; so many trials left predictions. NULL: out of memory. Owned by the
 * caller. */
char *ensemble_none(const char *reason, size_t candidates);

#endif
