/* The decoded copy of a data set: its arrays as they are in memory, so that the next trial does not
 * parse the files. */
#ifndef ASSAY_DATA_DATASET_DECODED_H
#define ASSAY_DATA_DATASET_DECODED_H

#include "data/dataset.h"
#include "base/status.h"

/* Anything but AS_OK means that there is no whole copy of this data set; `ret` may be half-filled
 * then. `bytes`: as dataset_load_bytes(). */
AS_MUST_CHECK as_status dataset_decoded_read(const char *path, const struct dataset_info *info,
                                             bool bytes, struct dataset *ret);

/* Replaces the file in one step. `d` has x, not bytes. */
AS_MUST_CHECK as_status dataset_decoded_write(const char *path, const struct dataset_info *info,
                                              const struct dataset *d);

#endif
