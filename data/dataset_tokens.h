/* Data sets that are text or files of tokens. dataset_read.h has the contracts: dataset_inspect(),
 * dataset_load(). */
#ifndef ASSAY_DATA_DATASET_TOKENS_H
#define ASSAY_DATA_DATASET_TOKENS_H

#include "data/dataset.h"
#include "base/status.h"

/* The caller has set format and options of `ret`. On failure `ret` may be half-filled: the caller
 * frees it. */
AS_MUST_CHECK as_status dataset_tokens_inspect(const struct dataset_paths *paths,
                                               const char *target, dataset_task task,
                                               struct dataset_info *ret, struct as_err *err);

/* On failure `ret` may be half-filled: the caller frees it. */
AS_MUST_CHECK as_status dataset_tokens_load(const struct dataset_paths *paths,
                                            const struct dataset_info *info, struct dataset *ret,
                                            struct as_err *err);

/* Add how often each token occurs, of the first `max`, to counts[n_outputs]. *ret_n: how many were
 * looked at. Errors as in dataset_tokens_load(). */
AS_MUST_CHECK as_status dataset_tokens_count(const struct dataset_paths *paths,
                                             const struct dataset_info *info, size_t max,
                                             size_t *counts, size_t *ret_n, struct as_err *err);

#endif
