/* The rows of a data set one after another, for who must not hold all of them. */
#ifndef ASSAY_DATA_DATASET_ROWS_H
#define ASSAY_DATA_DATASET_ROWS_H

#include "data/dataset.h"
#include "base/status.h"

/* Give the rows that `info` describes to `visit`, in the order of the files, until it returns
 * something else than AS_OK, which is returned. The decoded copy is not used. Needs memory for one
 * row. AS_E_UNSUPPORTED: text and tokens, which have no rows; else errors as in dataset_load(). */
AS_MUST_CHECK as_status dataset_rows_read(const struct dataset_paths *paths,
                                          const struct dataset_info *info, dataset_row_fn *visit,
                                          void *ctx, struct as_err *err);

#endif
