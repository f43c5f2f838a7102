/* One table with name, size and range of each type. A number has to be whole and within the range
 * of an integer type, and finite as a float; it is refused and not wrapped. Binary values are read
 * by memcpy(), because a request may place them at any address. */
#include "serve/tensor.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"

static const struct {
    const char *name;
    size_t size;
    double min, max; /* of whole numbers; max 0: not whole */
} types[] = {
    [TENSOR_BOOL] = {"BOOL", 1, 0, 1},
    [TENSOR_UINT8] = {"UINT8", 1, 0, UINT8_MAX},
    [TENSOR_UINT16] = {"UINT16", 2, 0, UINT16_MAX},
    [TENSOR_UINT32] = {"UINT32", 4, 0, UINT32_MAX},
    [TENSOR_UINT64] = {"UINT64", 8, 0, 0x1p64},
    [TENSOR_INT8] = {"INT8", 1, INT8_MIN, INT8_MAX},
    [TENSOR_INT16] = {"INT16", 2, INT16_MIN, INT16_MAX},
    [TENSOR_INT32] = {"INT32", 4, INT32_MIN, INT32_MAX},
    [TENSOR_INT64] = {"INT64", 8, -0x1p63, 0x1p63},
    [TENSOR_FP16] = {"FP16", 2, 0, 0},
    [TENSOR_FP32] = {"FP32", 4, 0, 0},
    [TENSOR_FP64] = {"FP64", 8, 0, 0},
    [TENSOR_BYTES] = {"BYTES", 0, 0, 0},
};

const char *tensor_type_name(tensor_type type)
{
    return types[type].name;
}

bool tensor_type_parse(struct json_text text, tensor_type *ret)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(types); i++)
        if (strlen(types[i].name) == text.len && memcmp(types[i].name, text.s, text.len) == 0) {
            *ret = (tensor_type)i;
            return true;
        }
    return false;
}

size_t tensor_type_size(tensor_type type)
{
    return types[type].size;
}

bool tensor_number_fits(tensor_type type, double v)
{
    if (types[type].max > 0)
        return v >= types[type].min && v <= types[type].max && v == floor(v);
    return isfinite((float)v) && (type != TENSOR_FP16 || fabs(v) < 65520);
}

static float half_to_float(uint16_t h)
{
    unsigned exponent = h >> 10 & 31, fraction = h & 1023;
    float v = exponent == 31 ? (fraction ? NAN : INFINITY)
              : exponent     ? ldexpf((float)(fraction | 1024), (int)exponent - 25)
                             : ldexpf((float)fraction, -24);
    return h >> 15 ? -v : v;
}

#define DECODE(kind)                                                                               \
    for (size_t i = 0; i < n; i++) {                                                               \
        kind v;                                                                                    \
        memcpy(&v, p + i * sizeof v, sizeof v);                                                    \
        ret[i] = (float)v;                                                                         \
    }                                                                                              \
    break

void tensor_numbers_decode(tensor_type type, const void *bytes, size_t n, float *ret)
{
    const unsigned char *p = bytes;
    switch (type) {
    case TENSOR_BOOL:
        for (size_t i = 0; i < n; i++)
            ret[i] = p[i] != 0;
        break;
    case TENSOR_UINT8:
        DECODE(uint8_t);
    case TENSOR_UINT16:
        DECODE(uint16_t);
    case TENSOR_UINT32:
        DECODE(uint32_t);
    case TENSOR_UINT64:
        DECODE(uint64_t);
    case TENSOR_INT8:
        DECODE(int8_t);
    case TENSOR_INT16:
        DECODE(int16_t);
    case TENSOR_INT32:
        DECODE(int32_t);
    case TENSOR_INT64:
        DECODE(int64_t);
    case TENSOR_FP16:
        for (size_t i = 0; i < n; i++) {
            uint16_t h;
            memcpy(&h, p + i * sizeof h, sizeof h);
            ret[i] = half_to_float(h);
        }
        break;
    case TENSOR_FP32:
        memcpy(ret, p, n * sizeof *ret);
        break;
    case TENSOR_FP64:
        DECODE(double);
    case TENSOR_BYTES:
        break;
    }
}
