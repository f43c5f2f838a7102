/* Arrays of numbers in files: NPY, a member of an NPZ archive, IDX (gzip too), a tensor of a
 * safetensors file, and the images and labels of a binary CIFAR file. All are read in C order, as
 * doubles, one piece at a time. Values that are not finite are returned unchanged. One thread per
 * reader. */
#ifndef ASSAY_DATA_FORMATS_ARRAY_H
#define ASSAY_DATA_FORMATS_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

#include "data/formats/npy.h"
#include "base/mem.h"
#include "base/status.h"

#define ARRAY_MAX_VALUES ((size_t)1 << 29) /* of one array: 2 GiB of float32 */

#define ARRAY_MAX_DIMS NPY_MAX_DIMS
#define ARRAY_MAX_TENSORS_BYTES ((size_t)2 << 30) /* of a safetensors file, which is read whole */

/* The function that opens an array sets the functions of its format; `state` is owned. */
struct array {
    size_t n_dims;
    size_t shape[ARRAY_MAX_DIMS];
    size_t n_values, at; /* number of all values; of those read so far */
    char *name;          /* the file, or the array in it, for messages; owned */
    void *state;
    as_status (*read)(void *state, size_t count, double *ret, struct as_err *err);
    as_status (*end)(void *state, struct as_err *err); /* NULL: nothing to check at the end */
    void (*free)(void *state);
};

/* Accepts a zeroed struct. */
void array_done(struct array *a);

/* Each: AS_E_INVAL for a file that is not of the format, cut short or longer than it says;
 * AS_E_UNSUPPORTED for a kind of number or file that is known and not read; AS_E_TOO_LARGE;
 * AS_E_NOT_FOUND, AS_E_IO, AS_E_NOMEM. *ret is untouched on failure. */
AS_MUST_CHECK as_status array_open_npy(const char *path, struct array *ret, struct as_err *err);
AS_MUST_CHECK as_status array_open_npz(const char *path, const char *name, struct array *ret,
                                       struct as_err *err);
AS_MUST_CHECK as_status array_open_safetensors(const char *path, const char *name,
                                               struct array *ret, struct as_err *err);
/* A value of the file's `__metadata__`, or NULL: also for arrays of other files. A view of a. */
const char *array_metadata(const struct array *a, const char *key);

/* yann.lecun.com/exdb/mnist: 0, 0, a type (08 unsigned byte, 09 byte, 0B short, 0C int, 0D float,
 * 0E double), the number of dimensions, their sizes as 32-bit integers, the values; all
 * big-endian. */
AS_MUST_CHECK as_status array_open_idx(const char *path, struct array *ret, struct as_err *err);

/* www.cs.toronto.edu/~kriz/cifar.html, binary version: records of a label and 3 x 32 x 32 bytes,
 * plane by plane. Records of CIFAR-100 have two labels; the second, the fine one, is used. The size
 * of the file decides between CIFAR-10 and CIFAR-100; a size that fits both is read as CIFAR-10.
 * The images have the shape (n, 3, 32, 32), the labels (n). */
AS_MUST_CHECK as_status array_open_cifar(const char *path, bool labels, struct array *ret,
                                         struct as_err *err);

/* The next `count` values. AS_E_INVAL past the end, and after the last value when the file goes on;
 * AS_E_IO. */
AS_MUST_CHECK as_status array_read(struct array *a, size_t count, double *ret, struct as_err *err);

#endif
