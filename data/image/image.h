/* PNG and JPEG images as rows of bytes.
 *
 * A file is hostile until it is decoded: its size, its pixels and the memory for its chunks are
 * bounded, and a damaged file or one that is cut short is an error that names the file. The content
 * decides the format, not the name. Transparency is dropped, 16-bit samples lose their low byte,
 * and the orientation of EXIF is not applied. */
#ifndef ASSAY_DATA_IMAGE_IMAGE_H
#define ASSAY_DATA_IMAGE_IMAGE_H

#include <stddef.h>

#include "base/mem.h"
#include "base/status.h"

#define IMAGE_MAX_BYTES ((size_t)256 << 20) /* of a file */
#define IMAGE_MAX_SIDE ((size_t)32768)
#define IMAGE_MAX_PIXELS ((size_t)1 << 26)

struct image {
    size_t height, width;
    size_t channels;       /* 1: grey; 3: red, green, blue */
    unsigned char *pixels; /* [height, width, channels]; owned. NULL after image_parse_size() */
};

void image_done(struct image *image);

/* Decode the bytes of a file. ret is owned by the caller, untouched on failure. AS_E_INVAL: neither
 * PNG nor JPEG, or damaged, or cut short; AS_E_UNSUPPORTED: a JPEG in CMYK; AS_E_TOO_LARGE;
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status image_parse(const void *bytes, size_t len, struct image *ret,
                                    struct as_err *err);

/* The same without the pixels: reads the header only. */
AS_MUST_CHECK as_status image_parse_size(const void *bytes, size_t len, struct image *ret,
                                         struct as_err *err);

/* Read a file. Messages begin with its name. Also AS_E_NOT_FOUND, AS_E_IO. */
AS_MUST_CHECK as_status image_read(const char *path, struct image *ret, struct as_err *err);
AS_MUST_CHECK as_status image_read_size(const char *path, struct image *ret, struct as_err *err);

/* Write the image with another size and other channels to ret [height, width, channels].
 * Each side is resampled with a triangle filter that is as wide as two pixels of the coarser side:
 * linear interpolation when it grows, a weighted mean of all pixels when it shrinks (Pillow's
 * BILINEAR). The picture fills the new size; its proportions are not kept. Grey is 0.299 red +
 * 0.587 green + 0.114 blue, rounded; grey to colour repeats the value. AS_E_NOMEM. */
AS_MUST_CHECK as_status image_resize(const struct image *image, size_t height, size_t width,
                                     size_t channels, unsigned char *ret, struct as_err *err);

#endif
