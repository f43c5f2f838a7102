/* Data sets that are CSV tables. dataset_read.h has the contracts: dataset_inspect(),
 * dataset_load(). */
#ifndef ASSAY_DATA_DATASET_CSV_H
#define ASSAY_DATA_DATASET_CSV_H

#include "data/dataset.h"
#include "data/dataset_cells.h"
#include "base/status.h"

/* The caller has set format and options of `ret`. On failure `ret` may be half-filled: the caller
 * frees it. */
AS_MUST_CHECK as_status dataset_csv_inspect(const struct dataset_paths *paths, const char *target,
                                            dataset_task task, struct dataset_info *ret,
                                            struct as_err *err);

/* On failure `ret` may be half-filled: the caller frees it. */
AS_MUST_CHECK as_status dataset_csv_load(const struct dataset_paths *paths,
                                         const struct dataset_info *info, struct dataset *ret,
                                         struct as_err *err);

/* Have the columns or the target names that are no indices, as in a table with a header? The names
 * of the columns alone may be numbers, such as years. False for arrays. Other tables of such a data
 * set have a header. */
bool dataset_csv_named(const struct dataset_info *info);

/* The rows of a test file: dataset_test_inspect() if `ret` is NULL, else dataset_test_load() of
 * *ret_rows rows. On failure `ret` may be half-filled: the caller frees it. */
AS_MUST_CHECK as_status dataset_csv_test(const struct dataset_paths *paths,
                                         const struct dataset_info *info, size_t *ret_rows,
                                         struct dataset *ret, struct as_err *err);

/* dataset_rows_read() */
AS_MUST_CHECK as_status dataset_csv_rows(const struct dataset_paths *paths,
                                         const struct dataset_info *info, dataset_row_fn *visit,
                                         void *ctx, struct as_err *err);

/* Append the cells of the column `name` to *ret, in the order of the rows. AS_E_INVAL: there is no
 * such column; else as dataset_csv_load(). On failure *ret has the rows before. */
AS_MUST_CHECK as_status dataset_csv_cells(const struct dataset_paths *paths,
                                          const struct dataset_info *info, const char *name,
                                          struct dataset_cells *ret, struct as_err *err);

#endif
