/* safetensors files: u64 length, a JSON header, then the raw bytes of named tensors.
 *
 * The format is that of the reference library (github.com/huggingface/safetensors): little-endian,
 * offsets that cover the data without holes or overlaps, a header of at most 100 MB, `__metadata__`
 * a map of strings. A file is read into memory as a whole, and checked before any value is
 * returned.
 *
 * safetensors_write() adds a checksum to `__metadata__`: SAFETENSORS_CHECKSUM, the CRC-32C of the
 * whole file with its eight hexadecimal digits as zeros. If a file has this field, it is checked;
 * files of other writers have none. */
#ifndef ASSAY_DATA_FORMATS_SAFETENSORS_H
#define ASSAY_DATA_FORMATS_SAFETENSORS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file_image.h"
#include "base/mem.h"
#include "base/status.h"

#define SAFETENSORS_MAX_HEADER ((size_t)100000000)
#define SAFETENSORS_MAX_DIMS 8
#define SAFETENSORS_CHECKSUM "assay_crc32c"

typedef enum safetensors_type {
    SAFETENSORS_F32,
    SAFETENSORS_F64,
    SAFETENSORS_I64,
    SAFETENSORS_I32,
    SAFETENSORS_U8
} safetensors_type;

struct safetensors_tensor {
    const char *name;
    safetensors_type type;
    size_t n_dims;
    size_t shape[SAFETENSORS_MAX_DIMS];
    const void *data; /* may be unaligned in a file of another writer */
    size_t size_bytes;
};

struct safetensors;

/* Check the bytes of a file. Takes `bytes` (from malloc), even on failure.
 * AS_E_INVAL: cut short, not JSON, unknown fields, a wrong checksum, or offsets that overlap, leave
 * holes, are out of range or do not fit type and shape; AS_E_UNSUPPORTED: another type;
 * AS_E_TOO_LARGE; AS_E_NOMEM. */
AS_MUST_CHECK as_status safetensors_parse(char *bytes, size_t len, struct safetensors **ret,
                                          struct as_err *err);
/* The same. Takes what *image holds, even on failure: it is zeroed. */
AS_MUST_CHECK as_status safetensors_parse_image(struct file_image *image, struct safetensors **ret,
                                                struct as_err *err);

/* Read and check a file of at most max_bytes. Errors as above, with the name of the file; also
 * AS_E_NOT_FOUND, AS_E_IO. */
AS_MUST_CHECK as_status safetensors_read(const char *path, size_t max_bytes,
                                         struct safetensors **ret, struct as_err *err);
void safetensors_free(struct safetensors *s);
AS_DEFINE_FREEP(struct safetensors, safetensors_free)

size_t safetensors_count(const struct safetensors *s);
/* In the order of their offsets; a view of s. */
const struct safetensors_tensor *safetensors_at(const struct safetensors *s, size_t i);
/* By name, or NULL; a view of s. */
const struct safetensors_tensor *safetensors_get(const struct safetensors *s, const char *name);
/* A value of `__metadata__`, or NULL; a view of s. */
const char *safetensors_metadata(const struct safetensors *s, const char *key);

/* Copy the n values of a tensor. AS_E_INVAL: there is no tensor of that name, or it has another
 * type or number of values. */
AS_MUST_CHECK as_status safetensors_copy(const struct safetensors *s, const char *name,
                                         safetensors_type type, size_t n, void *ret,
                                         struct as_err *err);

/* Write a file; readers see the old file or the new one, but it is not durable (file_publishv). The
 * size of each tensor follows from type and shape (size_bytes is not used); names must be distinct.
 * metadata is an object of strings or NULL, without SAFETENSORS_CHECKSUM, which is added. All
 * borrowed.
 * AS_E_INVAL, AS_E_TOO_LARGE, AS_E_NOMEM, AS_E_IO. */
AS_MUST_CHECK as_status safetensors_write(const char *path, const json_t *metadata,
                                          const struct safetensors_tensor *tensors, size_t n,
                                          struct as_err *err);

#endif
