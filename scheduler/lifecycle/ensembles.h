/* The ensemble that a sweep gets at its end, from the predictions of its best trials. */
#ifndef ASSAY_SCHEDULER_LIFECYCLE_ENSEMBLES_H
#define ASSAY_SCHEDULER_LIFECYCLE_ENSEMBLES_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/store/store.h"

/* The API's Ensemble object as JSON text in `a`: {"state": "pending"} while the sweep runs.
 * AS_E_NOT_FOUND, AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status ensemble_get(struct store *db, struct arena *a, const char *sweep,
                                     const char **ret_json, struct as_err *err);

/* Compute the ensemble of one sweep that is finishing, and end the sweep. *ret_worked is false if
 * there was no such sweep. One server at a time computes the ensemble of a sweep (a lease of two
 * minutes). A fault of the predictions becomes a reason in the result and never stops the sweep.
 * May take seconds. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status ensembles_tick(struct store *db, bool *ret_worked, struct as_err *err);

#endif
