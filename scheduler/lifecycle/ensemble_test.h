/* What an ensemble and the best single trial are worth on test rows, which chose neither of
 * them. */
#ifndef ASSAY_SCHEDULER_LIFECYCLE_ENSEMBLE_TEST_H
#define ASSAY_SCHEDULER_LIFECYCLE_ENSEMBLE_TEST_H

#include <jansson.h>

#include "base/status.h"
#include "scheduler/lifecycle/ensemble_data.h"
#include "scheduler/store/store.h"
#include "search/ensemble/ensemble.h"

/* Measure what was chosen on the held-out rows: the members' test_predictions.npy, combined as the
 * ensemble combines, and those of the best single trial, against their test_targets.npy.
 *   chosen  the held-out rows; borrowed
 *   metric  the one that the ensemble was chosen by
 *   ret     an object for the result's field `test`, a new reference; NULL if none of the trials
 *           left test predictions. {"reason": text} if they cannot be measured: a member left none,
 *           their targets differ, or a file is wrong
 * AS_E_UNAVAILABLE, AS_E_NOMEM. */
AS_MUST_CHECK as_status ensemble_test(struct store *db, const struct ensemble_data *chosen,
                                      const struct ensemble *e, score_metric metric, json_t **ret,
                                      struct as_err *err);

#endif
