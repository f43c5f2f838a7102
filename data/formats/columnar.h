/* A table as columns of numbers, for programs that hold all rows in typed arrays (a browser).
 *
 * Little-endian. 8 bytes "ASYCOLS1", u32 length of the header, u32 zero, then the header, padded
 * with blanks so that what follows begins at a multiple of 8:
 *   {"rows": 2, "version": "4711", "whole": true, "columns": [
 *     {"name": "number", "type": "u32", "at": 256},
 *     {"name": "state", "type": "dict", "width": 2, "words": ["queued", "running"], "at": 264}]}
 * `at` is the offset of a column's values from the beginning of the file, a multiple of 8. Values
 * are u8, u32, f32, f64, or of a dict the index of a word in `width` bytes (2 or 4): the largest
 * index there is, 65535 or 4294967295, means that there is no value. In columns of numbers NaN
 * means that. Each column is padded with zeros to a multiple of 8 bytes.
 *
 * A column of f64 with "planes": true has the first bytes of all values, then the second bytes, and
 * so on: signs and exponents of measured numbers are much alike, so that such a file compresses to
 * three quarters, and faster. In such a file columns of equal values share their place. */
#ifndef ASSAY_DATA_FORMATS_COLUMNAR_H
#define ASSAY_DATA_FORMATS_COLUMNAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"

#define COLUMNAR_MAX_COLUMNS 4096
#define COLUMNAR_NO_WORD UINT32_MAX

typedef enum columnar_type {
    COLUMNAR_U8,
    COLUMNAR_U32,
    COLUMNAR_F32,
    COLUMNAR_F64,
    COLUMNAR_DICT
} columnar_type;

size_t columnar_type_size(columnar_type type); /* bytes of one value in memory; 4 of a dict */

struct columnar_column {
    const char *name;
    columnar_type type;
    const void *values; /* one for each row: uint8_t, uint32_t, float, double; of a dict uint32_t,
                           an index of words or COLUMNAR_NO_WORD */
    const char *const *words; /* of a dict: UTF-8 */
    size_t n_words;
};

struct columnar {
    size_t n_rows;
    const char *version;
    bool is_whole;  /* false: only rows that changed */
    bool is_planar; /* written: columns of f64 as planes; read: never */
    const struct columnar_column *columns;
    size_t n_columns;
};

/* Append the file to `ret`. Everything is borrowed; indices must be of words.
 * AS_E_INVAL: a text is no UTF-8. AS_E_TOO_LARGE: the header does not fit 32 bits. AS_E_NOMEM. */
AS_MUST_CHECK as_status columnar_write(const struct columnar *f, struct str *ret,
                                       struct as_err *err);

/* Read and check a file. `bytes` is aligned to 8 and borrowed for as long as *ret is used: values
 * of numbers are views of it, the rest is in the arena.
 * AS_E_INVAL: cut short, not JSON, a field that is missing or of another type, arrays outside of
 * the file or not at a multiple of 8, an index without a word. AS_E_TOO_LARGE: more than
 * COLUMNAR_MAX_COLUMNS. AS_E_NOMEM. */
AS_MUST_CHECK as_status columnar_parse(const char *bytes, size_t len, struct arena *a,
                                       struct columnar *ret, struct as_err *err);

/* The column of that name, or NULL; a view of f. */
const struct columnar_column *columnar_find(const struct columnar *f, const char *name);

#endif
