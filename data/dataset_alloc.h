/* The arrays of a data set and the limits that all formats share. */
#ifndef ASSAY_DATA_DATASET_ALLOC_H
#define ASSAY_DATA_DATASET_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

#include "data/dataset.h"
#include "base/status.h"

/* Rows and features within the limits, and their product? AS_E_TOO_LARGE; AS_E_INVAL for no
 * feature. */
AS_MUST_CHECK as_status dataset_check_size(size_t rows, size_t features, struct as_err *err);

/* AS_E_INVAL when what a file holds is not what was registered. */
AS_MUST_CHECK as_status dataset_check_match(const struct dataset_info *info, size_t rows,
                                            size_t features, struct as_err *err);

/* Arrays for what `info` says, `bytes` in x's place when so asked. AS_E_NOMEM. */
AS_MUST_CHECK as_status dataset_alloc(const struct dataset_info *info, bool bytes,
                                      struct dataset *ret, struct as_err *err);

/* Is there an x, and is each of its values a whole number from 0 to 255? */
bool dataset_is_bytes(const struct dataset *d);

/* Replace x by bytes where that loses nothing; else leave d as it is. AS_E_NOMEM: d is as it was.
 */
AS_MUST_CHECK as_status dataset_to_bytes(struct dataset *d, struct as_err *err);

#endif
