/* The file importance.json of trials of trees: what each column is worth to the model
 * (tree_model_importance()). */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_IMPORTANCE_FILE_H
#define ASSAY_TRIAL_RUNNER_TRAIN_IMPORTANCE_FILE_H

#include <jansson.h>
#include <stddef.h>

#include "base/status.h"

/* Write importance.json into a folder. AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status importance_file_write(const char *folder, const json_t *importance,
                                              struct as_err *err);

/* Read it. AS_E_NOT_FOUND: there is none: the model is not of trees. AS_E_INVAL, AS_E_IO,
 * AS_E_NOMEM. *ret is a new reference. */
AS_MUST_CHECK as_status importance_file_read(const char *folder, json_t **ret, struct as_err *err);

/* The importance for the mean of n models: splits are added up, `gain` and `cover` are means over
 * all of them, and `share` is the column's part of the gain of all. The largest comes first;
 * columns of equal gain are in the order in which the models name them.
 *   each  [n], each as tree_model_importance() returns it; borrowed
 * A new reference. AS_E_INVAL: one of them is something else. AS_E_NOMEM. */
AS_MUST_CHECK as_status importance_of_mean(json_t *const *each, size_t n, json_t **ret,
                                           struct as_err *err);

#endif
