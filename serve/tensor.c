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
    uint64_t least, most; /* integers: from -least to most; most 0: not an integer */
    const char *fault;    /* of another number */
} types[] = {
    [TENSOR_BOOL] = {"BOOL", 1, 0, 1, "true or false"},
    [TENSOR_UINT8] = {"UINT8", 1, 0, UINT8_MAX, "a whole number from 0 to 255"},
    [TENSOR_UINT16] = {"UINT16", 2, 0, UINT16_MAX, "a whole number from 0 to 65535"},
    [TENSOR_UINT32] = {"UINT32", 4, 0, UINT32_MAX, "a whole number from 0 to 2^32 - 1"},
    [TENSOR_UINT64] = {"UINT64", 8, 0, UINT64_MAX, "a whole number from 0 to 2^64 - 1"},
    [TENSOR_INT8] = {"INT8", 1, (uint64_t)1 << 7, INT8_MAX, "a whole number from -128 to 127"},
    [TENSOR_INT16] = {"INT16", 2, (uint64_t)1 << 15, INT16_MAX,
                      "a whole number from -32768 to 32767"},
    [TENSOR_INT32] = {"INT32", 4, (uint64_t)1 << 31, INT32_MAX,
                      "a whole number from -2^31 to 2^31 - 1"},
    [TENSOR_INT64] = {"INT64", 8, (uint64_t)1 << 63, INT64_MAX,
                      "a whole number from -2^63 to 2^63 - 1"},
    [TENSOR_FP16] = {"FP16", 2, 0, 0, "a number of at most 65504"},
    [TENSOR_FP32] = {"FP32", 4, 0, 0, "a number of at most 3.4028235e38"},
    [TENSOR_FP64] = {"FP64", 8, 0, 0, "a number that fits into float32"},
    [TENSOR_BYTES] = {"BYTES", 0, 0, 0, "a text"},
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

/* A number of JSON as significant digits and a power of ten: no digit is lost. */
struct decimal {
    bool is_negative, is_past; /* past: more digits than a uint64_t has */
    uint64_t digits;           /* without the zeros at both ends */
    int64_t power;
};

static struct decimal decimal_of(struct json_text t)
{
    struct decimal d = {0};
    const char *p = t.s, *end = t.s + t.len;
    int64_t zeros = 0, exponent = 0, behind = 0;
    bool has_point = false, is_down;
    d.is_negative = p < end && *p == '-';
    for (p += d.is_negative; p < end && *p != 'e' && *p != 'E'; p++) {
        if (*p == '.') {
            has_point = true;
            continue;
        }
        behind += has_point;
        zeros += *p == '0' && d.digits;
        if (*p == '0')
            continue;
        for (; zeros >= 0; zeros--)
            d.is_past |= __builtin_mul_overflow(d.digits, 10, &d.digits);
        zeros = 0;
        d.is_past |= __builtin_add_overflow(d.digits, (uint64_t)(*p - '0'), &d.digits);
    }
    is_down = p + 1 < end && p[1] == '-';
    for (; p < end; p++)
        if (*p >= '0' && *p <= '9' && exponent < INT32_MAX)
            exponent = exponent * 10 + (*p - '0');
    d.power = (is_down ? -exponent : exponent) + zeros - behind;
    return d;
}

/* Is it an integer from -least to most? Its digits end with another one than 0, so a power below 0
 * leaves a fraction. */
static bool is_within(struct json_text text, uint64_t least, uint64_t most)
{
    struct decimal d = decimal_of(text);
    if (d.is_past || (d.digits && d.power < 0))
        return false;
    for (int64_t i = 0; d.digits && i < d.power; i++)
        if (__builtin_mul_overflow(d.digits, 10, &d.digits))
            return false;
    return d.digits <= (d.is_negative ? least : most);
}

const char *tensor_number_fault(tensor_type type, struct json_text text, double v)
{
    bool fits = types[type].most > 0
                    ? is_within(text, types[type].least, types[type].most)
                    : isfinite((float)v) && (type != TENSOR_FP16 || fabs(v) < 65520);
    return fits ? NULL : types[type].fault;
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
