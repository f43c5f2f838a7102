/* The decoded copy of a data set: a file with its arrays as they are in memory, so that the next
 * trial need not parse the original files. */
#ifndef ASSAY_DATA_DATASET_DECODED_H
#define ASSAY_DATA_DATASET_DECODED_H

#include "data/dataset.h"
#include "base/status.h"

/* Any status but AS_OK means that there is no whole copy of this data set; `ret` may then be
 * half-filled. `bytes`: as in dataset_load_bytes(). */
AS_MUST_CHECK as_status dataset_decoded_read(const char *path, const struct dataset_info *info,
                                             bool bytes, struct dataset *ret);

/* Write the copy; readers see the old file or the new one. `d` has x, not bytes. */
AS_MUST_CHECK as_status dataset_decoded_write(const char *path, const struct dataset_info *info,
                                              const struct dataset *d);

#endif
