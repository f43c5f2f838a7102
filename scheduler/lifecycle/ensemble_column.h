/* The values that a column of a data set has in the rows that trials predicted. */
#ifndef ASSAY_SCHEDULER_LIFECYCLE_ENSEMBLE_COLUMN_H
#define ASSAY_SCHEDULER_LIFECYCLE_ENSEMBLE_COLUMN_H

#include <jansson.h>
#include <stdbool.h>

#include "scheduler/lifecycle/ensemble_data.h"
#include "scheduler/store/tx.h"

/* Read the table that a trial of the built-in trainer learnt from, and find the rows that it held
 * out by the rule of its document.
 *   trial    of a candidate
 *   is_test  the rows of the test set instead
 *   d        its targets: the rows that are found must have them
 *   ret      a list of texts, one for each row of `d` (dataset_value_text). New reference
 * AS_E_INVAL, AS_E_NOT_FOUND, AS_E_UNSUPPORTED, AS_E_CONFLICT: there are none, and the message says
 * why: another program trained, the column is no input or has missing cells, the data set was
 * replaced. AS_E_UNAVAILABLE, AS_E_NOMEM, AS_E_IO. Reads the whole table; memory for the cells
 * of three columns. */
AS_MUST_CHECK as_status ensemble_column_read(struct store *db,
                                             const struct ensemble_candidate *trial,
                                             const char *column, bool is_test,
                                             const struct ensemble_data *d, json_t **ret,
                                             struct as_err *err);

/* May an ensemble of this sweep be by this column? AS_E_INVAL at /by naming the sweep: the data set
 * of its trials has no such column, or cells of it are missing. AS_OK also where that is not known:
 * another program trains, or a parameter chooses the data set. */
AS_MUST_CHECK as_status ensemble_column_check(struct tx *t, const char *sweep, const char *column,
                                              struct as_err *err);

#endif
