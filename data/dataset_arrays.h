/* Data sets that are arrays: NPY, NPZ, IDX, CIFAR and safetensors files. dataset_read.h has the
 * contracts: dataset_inspect(), dataset_load(). */
#ifndef ASSAY_DATA_DATASET_ARRAYS_H
#define ASSAY_DATA_DATASET_ARRAYS_H

#include "data/dataset.h"
#include "base/status.h"

/* The caller has set format and options of `ret`. On failure `ret` may be half-filled: the caller
 * frees it. */
AS_MUST_CHECK as_status dataset_arrays_inspect(const struct dataset_paths *paths,
                                               const char *target, dataset_task task,
                                               struct dataset_info *ret, struct as_err *err);

/* On failure `ret` may be half-filled: the caller frees it. */
AS_MUST_CHECK as_status dataset_arrays_load(const struct dataset_paths *paths,
                                            const struct dataset_info *info, struct dataset *ret,
                                            struct as_err *err);

/* The rows of test files: dataset_test_inspect() if `ret` is NULL, else dataset_test_load() of
 * *ret_rows rows. On failure `ret` may be half-filled: the caller frees it. */
AS_MUST_CHECK as_status dataset_arrays_test(const struct dataset_paths *paths,
                                            const struct dataset_info *info, size_t *ret_rows,
                                            struct dataset *ret, struct as_err *err);

/* dataset_rows_read() */
AS_MUST_CHECK as_status dataset_arrays_rows(const struct dataset_paths *paths,
                                            const struct dataset_info *info, dataset_row_fn *visit,
                                            void *ctx, struct as_err *err);

#endif
