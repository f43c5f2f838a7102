/* buckets.json and test_buckets.json: the values that a column (train.buckets) has in the held-out
 * rows and in the test rows, in their order, as {"column": NAME, "values": [TEXT, …]}. An ensemble
 * by bucketing chooses a model for each value, so equal numbers have equal texts
 * (dataset_value_text). */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_BUCKETS_FILE_H
#define ASSAY_TRIAL_RUNNER_TRAIN_BUCKETS_FILE_H

#include "data/dataset_read.h"

/* Read the column from a table and write the file at `path`.
 *   info  of the table, with its number of rows
 *   rows  [n] row numbers; NULL: all rows
 * AS_E_INVAL: a cell is no UTF-8; else as dataset_read_cells(). AS_E_IO. */
AS_MUST_CHECK as_status buckets_file_write(const char *path, const struct dataset_paths *paths,
                                           const struct dataset_info *info, const char *column,
                                           const int32_t *rows, size_t n, struct as_err *err);

#endif
