/* The formats behind dataset.c. Contracts as of dataset_inspect and dataset_load. */
#ifndef ASSAY_BASE_FORMATS_DATASET_PRIV_H
#define ASSAY_BASE_FORMATS_DATASET_PRIV_H

#include "data/dataset.h"

/* These leave a half-filled `ret` behind on failure: the caller frees it. Format and options are in
 * `ret` before. */
AS_MUST_CHECK as_status dataset_csv_inspect(const struct dataset_paths *paths, const char *target,
                                            dataset_task task, struct dataset_info *ret,
                                            struct as_err *err);
AS_MUST_CHECK as_status dataset_csv_load(const struct dataset_paths *paths,
                                         const struct dataset_info *info, struct dataset *ret,
                                         struct as_err *err);
AS_MUST_CHECK as_status dataset_arrays_inspect(const struct dataset_paths *paths,
                                               const char *target, dataset_task task,
                                               struct dataset_info *ret, struct as_err *err);
AS_MUST_CHECK as_status dataset_arrays_load(const struct dataset_paths *paths,
                                            const struct dataset_info *info, struct dataset *ret,
                                            struct as_err *err);
AS_MUST_CHECK as_status dataset_tokens_inspect(const struct dataset_paths *paths,
                                               const char *target, dataset_task task,
                                               struct dataset_info *ret, struct as_err *err);
AS_MUST_CHECK as_status dataset_tokens_load(const struct dataset_paths *paths,
                                            const struct dataset_info *info, struct dataset *ret,
                                            struct as_err *err);

/* dataset_decoded.c. Reading: anything but AS_OK means that there is no whole copy of this data
 * set; `ret` may be half-filled then. Writing replaces the file in one step; what is to be written
 * has x, not bytes. `bytes`: as dataset_load_bytes(). */
AS_MUST_CHECK as_status dataset_decoded_read(const char *path, const struct dataset_info *info,
                                             bool bytes, struct dataset *ret);
AS_MUST_CHECK as_status dataset_decoded_write(const char *path, const struct dataset_info *info,
                                              const struct dataset *d);

/* Rows and features within the limits, and their product? AS_E_TOO_LARGE; AS_E_INVAL for no
 * feature. */
AS_MUST_CHECK as_status dataset_check_size(size_t rows, size_t features, struct as_err *err);

/* AS_E_INVAL when what a file holds is not what was registered. */
AS_MUST_CHECK as_status dataset_check_match(const struct dataset_info *info, size_t rows,
                                            size_t features, struct as_err *err);

/* Arrays for what `info` says, `bytes` in x's place when so asked. AS_E_NOMEM. */
AS_MUST_CHECK as_status dataset_alloc(const struct dataset_info *info, bool bytes,
                                      struct dataset *ret, struct as_err *err);

/* x into bytes, if it holds nothing else. */
bool dataset_is_bytes(const struct dataset *d);

#endif
