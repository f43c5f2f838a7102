/* Sweeps that train the best configuration of another one again, in another way: bagging, snapshots. */
#ifndef ASSAY_CLI_COMMANDS_FOLLOW_UP_H
#define ASSAY_CLI_COMMANDS_FOLLOW_UP_H

#include <jansson.h>
#include <stddef.h>

#include "base/status.h"

/* The document of `sweep` (the API's Sweep) with its parameters fixed at the best trial's, a grid as
 * search, the limits of the search and the constraints gone, and the suffix at its name. `what` ends the
 * description: "The configuration of SWEEP/N, WHAT". *ret is owned by the caller; its trial.train is
 * an object. AS_E_INVAL: the sweep does not use the built-in trainer, or has no best trial.
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status follow_up_document(const json_t *sweep, const char *suffix,
                                           const char *what, json_t **ret, struct as_err *err);

/* The value of a field of trial.train in the best trial: a template is looked up among the trial's
 * parameters. A view of sweep; NULL when there is none. */
const json_t *follow_up_value(const json_t *sweep, const json_t *field);

/* Let the document search over a whole number, which `holder`, a part of it, has as `field`. The parameter has the
 * field's name, or `other` if the sweep has one of that name. Not 0: memory is out. */
int follow_up_search(json_t *doc, json_t *holder, const char *field, const char *other, size_t min,
                     size_t max);

/* The best configuration with `snapshots` cycles of the cosine schedule, all of which end in a snapshot.
 * AS_E_INVAL also: it is a model of trees. Else as follow_up_document(). */
AS_MUST_CHECK as_status follow_up_snapshots(const json_t *sweep, size_t snapshots, json_t **ret,
                                            struct as_err *err);

/* The best configuration as `stages` stages of boosting, one trial after another; its ensemble is the
 * number of stages that is best by cross-validation. As follow_up_document(). */
AS_MUST_CHECK as_status follow_up_boosting(const json_t *sweep, size_t stages, json_t **ret,
                                           struct as_err *err);

#endif
