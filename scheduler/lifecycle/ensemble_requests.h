/* Ensembles that users ask for after the end of a sweep: by another method, of another size, or
 * over several sweeps on the same rows. They are kept with the first sweep, and numbered from 1.
 *
 * Every function: AS_E_NOT_FOUND if there is no such sweep or ensemble. AS_E_UNAVAILABLE,
 * AS_E_NOMEM. Rows live in `a`. */
#ifndef ASSAY_SCHEDULER_LIFECYCLE_ENSEMBLE_REQUESTS_H
#define ASSAY_SCHEDULER_LIFECYCLE_ENSEMBLE_REQUESTS_H

#include <jansson.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/store/ensemble_store.h"
#include "scheduler/store/store.h"

#define ENSEMBLES_OF_SWEEP_MAX 1000

/* Ask for an ensemble.
 *   body  {method?, size?, non_negative?, calibrate?, by?, metric?, max_bytes?,
 *         sweeps?: [further sweeps]};
 *         borrowed
 *   ret   pending, until a round of ensemble_requests_tick() has computed it
 * The same request again returns the same ensemble, unless one of the sweeps ran on in between;
 * *ret_created is false then. AS_E_INVAL with the pointer of the field, also where the data set has
 * no column `by`. AS_E_CONFLICT: a sweep has not ended; or the sweeps have different metrics, or no
 * rows in common. */
AS_MUST_CHECK as_status ensemble_ask(struct store *db, struct arena *a, const char *sweep,
                                     const json_t *body, struct ensemble_asked *ret,
                                     bool *ret_created, struct as_err *err);

AS_MUST_CHECK as_status ensemble_asked_get(struct store *db, struct arena *a, const char *sweep,
                                           int64_t number, struct ensemble_asked *ret,
                                           struct as_err *err);

struct ensemble_asked_list {
    struct ensemble_asked *rows; /* newest first; results without members and biases */
    size_t n;
};
AS_MUST_CHECK as_status ensemble_asked_list(struct store *db, struct arena *a, const char *sweep,
                                            struct ensemble_asked_list *ret, struct as_err *err);

/* A sweep that an ensemble was asked of. */
struct ensemble_asked_sweep {
    const char *id;
    int64_t key;
};

/* The sweeps of an ensemble, in the order of its request. AS_E_CONFLICT: one was deleted since it
 * was asked for, so its members may be gone. */
AS_MUST_CHECK as_status ensemble_asked_sweeps(struct tx *t, struct arena *a,
                                              const struct ensemble_asked *e,
                                              struct ensemble_asked_sweep **ret, size_t *ret_n,
                                              struct as_err *err);

/* Compute one that is pending. *ret_worked is false if there is none. One server at a time computes
 * it, by a lease, and an event says that it is there. May take seconds. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status ensemble_requests_tick(struct store *db, bool *ret_worked,
                                               struct as_err *err);

#endif
