/* Data types of tensors in the Open Inference Protocol: their names, and their values in bytes. */
#ifndef ASSAY_SERVE_TENSOR_H
#define ASSAY_SERVE_TENSOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json_reader.h"

#define TENSOR_MAX_DIMS 8

typedef enum tensor_type {
    TENSOR_BOOL,
    TENSOR_UINT8,
    TENSOR_UINT16,
    TENSOR_UINT32,
    TENSOR_UINT64,
    TENSOR_INT8,
    TENSOR_INT16,
    TENSOR_INT32,
    TENSOR_INT64,
    TENSOR_FP16,
    TENSOR_FP32,
    TENSOR_FP64,
    TENSOR_BYTES
} tensor_type;

/* "BOOL", "UINT8", … */
const char *tensor_type_name(tensor_type type);
bool tensor_type_parse(struct json_text text, tensor_type *ret);
size_t tensor_type_size(tensor_type type); /* bytes of an element; 0 for BYTES */

/* May a tensor of this type hold a number of JSON? Not for BYTES. NULL: yes; else what is
 * expected: "a whole number from -128 to 127".
 *   text  the number as it was written. Integers are judged by their digits, since a double has
 *         neither 2^63 - 1 nor the fraction of 4503599627370497.25
 *   v     the double nearest to it, which must also fit into a float: models compute with these */
const char *tensor_number_fault(tensor_type type, struct json_text text, double v);

/* Elements [n] from little-endian bytes; not for BYTES. NaN stays NaN. */
void tensor_numbers_decode(tensor_type type, const void *bytes, size_t n, float *ret);

#endif
