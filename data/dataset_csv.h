/* CSV tables. Contracts as of dataset_inspect() and dataset_load() (dataset_read.h). */
#ifndef ASSAY_DATA_DATASET_CSV_H
#define ASSAY_DATA_DATASET_CSV_H

#include "data/dataset.h"
#include "base/status.h"

/* A half-filled `ret` is left behind on failure: the caller frees it. Format and options are in
 * `ret` before. */
AS_MUST_CHECK as_status dataset_csv_inspect(const struct dataset_paths *paths, const char *target,
                                            dataset_task task, struct dataset_info *ret,
                                            struct as_err *err);

/* As above: the caller frees `ret`. */
AS_MUST_CHECK as_status dataset_csv_load(const struct dataset_paths *paths,
                                         const struct dataset_info *info, struct dataset *ret,
                                         struct as_err *err);

#endif
