/* buckets.json: the values that a column (train.buckets) has in the held-out rows, in their order, as
 * {"column": NAME, "values": [TEXT, …]}. An ensemble by bucketing chooses a model for each value. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_BUCKETS_FILE_H
#define ASSAY_TRIAL_RUNNER_TRAIN_BUCKETS_FILE_H

#include "trial-runner/train/job.h"

/* Read the column from the job's table and write the file.
 *   rows  [n] row numbers; NULL: all rows
 * AS_E_INVAL: a cell is no UTF-8; else as dataset_read_cells(). AS_E_IO. */
AS_MUST_CHECK as_status buckets_file_write(const char *folder, const struct job *job,
                                           const char *column, const int32_t *rows, size_t n,
                                           struct as_err *err);

#endif
