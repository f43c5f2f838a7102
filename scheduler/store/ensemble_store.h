/* Table ensemble: the result, and the server that computes it. */
#ifndef ASSAY_SCHEDULER_STORE_ENSEMBLE_STORE_H
#define ASSAY_SCHEDULER_STORE_ENSEMBLE_STORE_H

#include "base/arena.h"
#include "scheduler/store/tx.h"
#include "scheduler/sweep/trial_state.h"

/* The result as JSON in the arena, NULL while it is pending, and the state of the sweep.
 * AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_ensemble_get(struct tx *t, struct arena *a, const char *sweep,
                                           const char **ret, sweep_state *ret_state,
                                           struct as_err *err);

/* Lease one ensemble that must be computed, for lease_ms. *ret_key is 0 if there is none. */
AS_MUST_CHECK as_status store_ensemble_take(struct tx *t, int64_t lease_ms, int64_t *ret_key,
                                            struct as_err *err);

/* A completed trial with predictions and targets. */
struct ensemble_candidate {
    int64_t number;
    double value;
    const char *params;                     /* JSON */
    const char *predictions, *targets;      /* digests */
    int64_t predictions_size, targets_size; /* bytes */
};

/* The best `limit` candidates, best first. Only trials with the most common targets are
 * candidates. */
AS_MUST_CHECK as_status store_ensemble_candidates(struct tx *t, struct arena *a, int64_t key,
                                                  bool maximize, int64_t limit,
                                                  struct ensemble_candidate **ret, size_t *ret_n,
                                                  struct as_err *err);

/* Store the result. AS_E_CONFLICT: there is one already. state: "ready" or "none". */
AS_MUST_CHECK as_status store_ensemble_put(struct tx *t, int64_t key, const char *state,
                                           const char *json, struct as_err *err);

/* The sweep runs on: its ensemble is computed anew at its next end. */
AS_MUST_CHECK as_status store_ensemble_reset(struct tx *t, int64_t key, struct as_err *err);

#endif
