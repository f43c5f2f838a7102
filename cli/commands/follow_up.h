/* Sweeps that train the best configuration of another one again, in another way: methods of
 * ensembles that need more than the predictions that trials left. */
#ifndef ASSAY_CLI_COMMANDS_FOLLOW_UP_H
#define ASSAY_CLI_COMMANDS_FOLLOW_UP_H

#include <jansson.h>
#include <stddef.h>

#include "base/status.h"

struct follow_up {
    const char *name;       /* of the method; with a minus before it the end of the sweep's name */
    const char *how, *unit; /* "on" 12 "bootstrap samples": the end of the description */
    size_t most, usual;     /* how many of them */
    /* Change the document for n of them. `train` is its trial.train. All borrowed. */
    as_status (*change)(const json_t *sweep, json_t *doc, json_t *train, size_t n,
                        struct as_err *err);
};

/* bagging, snapshot, boosting. NULL: a method that trains nothing. */
const struct follow_up *follow_up_find(const char *method);

/* The document of a sweep with n of them, 1 <= n <= f->most: the parameters of `sweep` (the API's
 * Sweep) are fixed at its best trial's, search, limits of the search and constraints are replaced.
 *   ret  owned by the caller
 * AS_E_INVAL: the sweep does not use the built-in trainer, or has no best trial; snapshots of
 * trees. AS_E_NOMEM. */
AS_MUST_CHECK as_status follow_up_document(const struct follow_up *f, const json_t *sweep, size_t n,
                                           json_t **ret, struct as_err *err);

#endif
