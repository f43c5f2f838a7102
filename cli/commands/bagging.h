/* Bagging: the document of a sweep that trains the best configuration of another one on bootstrap
 * samples. */
#ifndef ASSAY_CLI_COMMANDS_BAGGING_H
#define ASSAY_CLI_COMMANDS_BAGGING_H

#include <jansson.h>
#include <stddef.h>

#include "base/status.h"

#define BAGGING_MAX 64 /* samples; they share one process */

/* Make the document: the parameters of `sweep` (the API's Sweep) are fixed at its best trial's, and
 * train.resample runs from 1 to `samples`. Its ensemble is the mean of all. *ret is owned by the caller.
 * L. Breiman, "Bagging predictors", Machine Learning 24, 1996. AS_E_INVAL: the sweep does not use the
 * built-in trainer, or has no best trial. AS_E_NOMEM. */
AS_MUST_CHECK as_status bagging_document(const json_t *sweep, size_t samples, json_t **ret,
                                         struct as_err *err);

#endif
