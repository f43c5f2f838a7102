/* Tables ensemble and ensemble_asked: results, and the servers that compute them. An ensemble is
 * made when its sweep ends; further ones are asked for afterwards, over one or several sweeps. */
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
    const char *sweep; /* its id */
    int64_t number;
    double value;
    const char *params;                          /* JSON */
    const char *predictions, *targets;           /* digests */
    const char *weights;                         /* likewise; "": all rows count alike */
    const char *buckets;                         /* likewise; "": all rows are in one */
    int64_t predictions_size, targets_size;      /* bytes */
    const char *test_predictions, *test_targets; /* digests; NULL: it left none */
    const char *test_weights, *test_buckets;     /* as `weights` and `buckets` */
    int64_t model_size;                          /* bytes of its model; 0: it left none */
    const char *stack; /* JSON: [["sweep/7", bytes], …], the trials that one of a further layer sees
                          and the sizes of their models; NULL: none */
};

/* The best `limit` candidates of the sweeps, best first. Only trials with the most common targets
 * and weights are candidates. Trials with equal values are in the order of `sweeps` and of their
 * numbers. */
AS_MUST_CHECK as_status store_ensemble_candidates(struct tx *t, struct arena *a,
                                                  const char *const *sweeps, size_t n_sweeps,
                                                  bool maximize, int64_t limit,
                                                  struct ensemble_candidate **ret, size_t *ret_n,
                                                  struct as_err *err);

/* Store the result. AS_E_CONFLICT: there is one already. state: "ready" or "none". */
AS_MUST_CHECK as_status store_ensemble_put(struct tx *t, int64_t key, const char *state,
                                           const char *json, struct as_err *err);

/* The sweep runs on: its ensemble is computed anew at its next end. */
AS_MUST_CHECK as_status store_ensemble_reset(struct tx *t, int64_t key, struct as_err *err);

/* ---- asked for after the end ---- */

/* A sweep of a request. */
struct ensemble_source {
    bool found;
    int64_t key;
    const char *id;
    sweep_state state;
    const char *metric;
    bool maximize;
    bool is_trainers; /* the built-in trainer reports its metrics */
    int64_t seed, finish_seq;
    bool same_rows; /* it has candidates with the targets that are most common in all sweeps */
};

/* The sweeps in the order of the ids, found or not. */
AS_MUST_CHECK as_status store_ensemble_sources(struct tx *t, struct arena *a,
                                               const char *const *sweeps, size_t n,
                                               struct ensemble_source **ret, struct as_err *err);

/* One that was asked for. */
struct ensemble_asked {
    int64_t key, number;
    const char *sweep; /* the id of the sweep that it belongs to */
    const char *
        request; /* JSON: method, size, non_negative?, calibrate?, by?, metric?, max_bytes?, sweeps */
    const char *ends;  /* "KEY:END KEY:END": of each sweep its key and the number of its last end */
    const char *state; /* pending, ready, none */
    const char *result; /* JSON; NULL while it is pending */
    int64_t created_ms;
};

/* Add one, or find the one with the same request and ends. The row of the sweep is held.
 *   request, ends  texts that are equal if the result must be
 * *ret_created: it is new. AS_E_CONFLICT: the sweep has `limit` already. */
AS_MUST_CHECK as_status store_ensemble_ask(struct tx *t, int64_t sweep_key, const char *request,
                                           const char *ends, int64_t limit, int64_t *ret_number,
                                           bool *ret_created, struct as_err *err);

/* AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_ensemble_asked_get(struct tx *t, struct arena *a, const char *sweep,
                                                 int64_t number, struct ensemble_asked *ret,
                                                 struct as_err *err);

/* Those of a sweep, newest first; results without their members. */
AS_MUST_CHECK as_status store_ensemble_asked_list(struct tx *t, struct arena *a, const char *sweep,
                                                  struct ensemble_asked **ret, size_t *ret_n,
                                                  struct as_err *err);

/* Lease one that must be computed. ret->key is 0 if there is none. */
AS_MUST_CHECK as_status store_ensemble_asked_take(struct tx *t, struct arena *a, int64_t lease_ms,
                                                  struct ensemble_asked *ret, struct as_err *err);

/* Store the result. *ret_done: it was still pending. */
AS_MUST_CHECK as_status store_ensemble_asked_put(struct tx *t, int64_t key, const char *state,
                                                 const char *json, bool *ret_done,
                                                 struct as_err *err);

#endif
