/* Tables dataset and dataset_file. */
#ifndef ASSAY_SCHEDULER_STORE_DATASET_STORE_H
#define ASSAY_SCHEDULER_STORE_DATASET_STORE_H

#include "base/arena.h"
#include "scheduler/rows/dataset_row.h"
#include "scheduler/store/tx.h"

/* *ret_created is false if the name is taken. AS_E_NOT_FOUND: content is no longer stored. */
AS_MUST_CHECK as_status store_dataset_add(struct tx *t, const struct dataset_row *d,
                                          bool *ret_created, struct as_err *err);
/* Read a data set. `keep`: lock the row, so that it cannot be removed before the transaction ends.
 * AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_dataset_get(struct tx *t, struct arena *a, const char *name,
                                          bool keep, struct dataset_row *ret, struct as_err *err);
/* The data sets that the trials of a sweep may name, by name. */
AS_MUST_CHECK as_status store_dataset_of_sweep(struct tx *t, struct arena *a, int64_t sweep_key,
                                               struct dataset_row **ret, size_t *ret_n,
                                               struct as_err *err);
/* Names above `after` ("" for all); *ret_more: there are more. */
AS_MUST_CHECK as_status store_dataset_list(struct tx *t, struct arena *a, const char *after,
                                           int64_t size, struct dataset_row **ret, size_t *ret_n,
                                           bool *ret_more, struct as_err *err);
/* Set the expected_… fields of *d if the sweep was created with other content; else leave them. */
AS_MUST_CHECK as_status store_dataset_expected(struct tx *t, struct arena *a, int64_t sweep_key,
                                               struct dataset_row *d, struct as_err *err);
/* Lock the row. AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_dataset_lock(struct tx *t, const char *name, struct as_err *err);
/* The id of a sweep that has not ended and may use it, in the arena; NULL: none. */
AS_MUST_CHECK as_status store_dataset_user(struct tx *t, struct arena *a, const char *name,
                                           const char **ret, struct as_err *err);
AS_MUST_CHECK as_status store_dataset_delete(struct tx *t, const char *name, struct as_err *err);

/* The preview that was kept, as JSON in the arena; NULL: none yet. AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_dataset_preview(struct tx *t, struct arena *a, const char *name,
                                              const char **ret, struct as_err *err);
/* Keep one, if the data set still has this digest. */
AS_MUST_CHECK as_status store_dataset_keep_preview(struct tx *t, const char *name,
                                                   const char *sha256, const char *preview,
                                                   struct as_err *err);

#endif
