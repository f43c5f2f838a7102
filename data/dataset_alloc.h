/* The arrays of a data set and the limits that all formats share. */
#ifndef ASSAY_DATA_DATASET_ALLOC_H
#define ASSAY_DATA_DATASET_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

#include "data/dataset.h"
#include "base/status.h"

/* Are rows, features and their product within the limits? AS_E_TOO_LARGE; AS_E_INVAL without a
 * feature. */
AS_MUST_CHECK as_status dataset_check_size(size_t rows, size_t features, struct as_err *err);

/* AS_E_INVAL if the rows or features of a file differ from those that were registered. */
AS_MUST_CHECK as_status dataset_check_match(const struct dataset_info *info, size_t rows,
                                            size_t features, struct as_err *err);

/* Allocate the arrays that `info` describes; with `bytes`, ret->bytes instead of ret->x.
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status dataset_alloc(const struct dataset_info *info, bool bytes,
                                      struct dataset *ret, struct as_err *err);

/* Is there an x, and is each of its values a whole number from 0 to 255? */
bool dataset_is_bytes(const struct dataset *d);

/* Replace x by bytes if dataset_is_bytes(), else leave d unchanged. AS_E_NOMEM: d is unchanged. */
AS_MUST_CHECK as_status dataset_to_bytes(struct dataset *d, struct as_err *err);

#endif
