/* Images in files as rows of a model. */
#ifndef ASSAY_CLI_PREDICT_IMAGES_H
#define ASSAY_CLI_PREDICT_IMAGES_H

#include "cli/files/image_list.h"
#include "data/dataset.h"

/* Is `path` a folder, or a file with the name of an image? */
bool predict_images_at(const char *path);

/* List the images: those of a folder and of its sub-folders, or the one file.
 * ret is owned by the caller, on failure too. AS_E_INVAL: the model does not take images, or no
 * grey or coloured ones; the folder has none. Else as image_list_read(). */
AS_MUST_CHECK as_status predict_images_list(const struct dataset_info *info, const char *path,
                                            struct image_list *ret, struct as_err *err);

/* Read an image, in the size and the channels of the model.
 *   bytes  [info->n_features] scratch
 *   ret    [info->n_features] height, width, channels
 * AS_E_INVAL: damaged; messages begin with the path. Else as image_read(). */
AS_MUST_CHECK as_status predict_images_read(const struct dataset_info *info, const char *path,
                                            unsigned char *bytes, float *ret, struct as_err *err);

#endif
