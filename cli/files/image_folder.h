/* A folder of images, one sub-folder for each class, as one safetensors file: x [images, height,
 * width, channels] in bytes, y [images] the index of the class, and the names of the classes in the
 * metadata (`classes`, a list in JSON; data/dataset_read.h reads it). */
#ifndef ASSAY_CLI_FILES_IMAGE_FOLDER_H
#define ASSAY_CLI_FILES_IMAGE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct image_folder_opts {
    size_t height, width; /* 0: all images must have one size, which is kept */
    bool grey;            /* one channel; else as many as the image with the most */
    /* Called before each file is read, twice for all of them; NULL: never. Not AS_OK ends the
     * work. */
    as_status (*on_file)(void *arg, size_t done, size_t total, struct as_err *err);
    void *arg;
};

/* What was packed. */
struct image_folder {
    size_t n_images, n_classes, n_skipped; /* files that are no images by their names */
    size_t height, width, channels;
};

/* Read the folder and write the file at `path`, which is replaced.
 * Classes and files are in the order of their bytes, so equal folders give equal files. Names that
 * begin with '.' are left out. Images are files whose names end with .png, .jpg or .jpeg (any
 * case); other files are counted as skipped.
 * AS_E_INVAL: fewer than two classes, a class without an image, images of several sizes, a file
 * that is no image or damaged (named); AS_E_TOO_LARGE; AS_E_NOT_FOUND, AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status image_folder_pack(const char *folder, const char *path,
                                          const struct image_folder_opts *opts,
                                          struct image_folder *ret, struct as_err *err);

#endif
