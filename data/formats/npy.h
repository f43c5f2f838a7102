/* NPY arrays (numpy.lib.format, versions 1, 2 and 3): little-endian numbers in C order.
 *
 * Opening checks the header and the size of the file. Reading converts values to double in order,
 * so a caller holds only as many values as it requests. Values that are not finite are returned
 * unchanged. One thread per reader. */
#ifndef ASSAY_DATA_FORMATS_NPY_H
#define ASSAY_DATA_FORMATS_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/str.h"

#define NPY_MAX_DIMS 8
#define NPY_MAX_HEADER ((size_t)65536)

typedef enum npy_type {
    NPY_BOOL,
    NPY_I1,
    NPY_I2,
    NPY_I4,
    NPY_I8, /* exact as a double up to 2^53 */
    NPY_U1,
    NPY_U2,
    NPY_U4,
    NPY_F4,
    NPY_F8
} npy_type;

size_t npy_type_size(npy_type type); /* bytes of one value */

struct npy_header {
    npy_type type;
    size_t n_dims;
    size_t shape[NPY_MAX_DIMS];
    size_t n_values;    /* product of the shape; 1 without dimensions */
    size_t data_offset; /* bytes from the file's start */
};

/* Parse the first `len` bytes of a file. AS_E_INVAL: not NPY, cut short, or
 * malformed; AS_E_UNSUPPORTED: Fortran order, objects, big-endian, or a type not listed above;
 * AS_E_TOO_LARGE: too many dimensions, values or header bytes. */
AS_MUST_CHECK as_status npy_parse_header(const void *bytes, size_t len, struct npy_header *ret,
                                         struct as_err *err);

struct npy;

/* Open a file. Errors as in npy_parse_header(); also AS_E_INVAL if its size does not fit its shape;
 * AS_E_NOT_FOUND, AS_E_IO, AS_E_NOMEM. Messages name the file. */
AS_MUST_CHECK as_status npy_open(const char *path, struct npy **ret, struct as_err *err);

/* The array `name` of an .npz file: its member NAME.npy. Errors also as source_open_zip(). */
AS_MUST_CHECK as_status npy_open_zip(const char *path, const char *name, struct npy **ret,
                                     struct as_err *err);
void npy_free(struct npy *n);
AS_DEFINE_FREEP(struct npy, npy_free)
const struct npy_header *npy_header_of(const struct npy *n); /* a view of n */

/* The next `count` values; reading past the end is AS_E_INVAL. AS_E_IO. */
AS_MUST_CHECK as_status npy_read(struct npy *n, size_t count, double *ret, struct as_err *err);

/* Append the bytes that precede the values of an array, a multiple of 64. Headers of equal at_least
 * (such as NPY_HEADER_ROOM) have that size, so that one can be written again when the number of
 * rows is known. AS_E_TOO_LARGE, AS_E_NOMEM. */
#define NPY_HEADER_ROOM ((size_t)128) /* enough for two dimensions */
AS_MUST_CHECK as_status npy_format_header(npy_type type, const size_t *shape, size_t n_dims,
                                          size_t at_least, struct str *b, struct as_err *err);

/* Write an array; readers see the old file or the new one (file_publishv). `data` has as many
 * values of `type` as the shape, in the byte order of the machine, which is little-endian. AS_E_IO,
 * AS_E_NOMEM, AS_E_TOO_LARGE. */
AS_MUST_CHECK as_status npy_write(const char *path, npy_type type, const size_t *shape,
                                  size_t n_dims, const void *data, struct as_err *err);

#endif
