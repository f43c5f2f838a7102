/* IDX and CIFAR: arrays that are read from a stream of bytes.
 *
 * IDX values are big-endian, in one of six types, behind a header with the shape. Where the size of
 * the file is known it must match the shape; a gzip stream is checked at its end instead.
 *
 * A CIFAR file interleaves labels and images. Two arrays are opened on the same file, one for each.
 * Both go through all records; `skip`, `take` and `after` describe which bytes of a record belong
 * to the array. A record is thus read twice, which costs less than holding one of the two in
 * memory. */
#include <stdbool.h>
#include <string.h>

#include "data/formats/array.h"
#include "data/formats/source.h"

#define PIECE ((size_t)4096) /* values converted at a time */
#define PIXELS ((size_t)3072)

struct bytes_state {
    struct source *source;
    unsigned type; /* IDX */
    size_t size;   /* bytes of a value */
    /* CIFAR: a record has `skip` bytes to ignore, `take` bytes of values, `after` to ignore */
    size_t skip, take, after, left; /* left: bytes of `take` still to read in this record */
    unsigned char buf[PIECE * 8];
};

static void free_bytes(void *state)
{
    struct bytes_state *b = state;
    source_free(b->source);
    free(b);
}

static as_status end_bytes(void *state, struct as_err *err)
{
    struct bytes_state *b = state;
    return source_expect_end(b->source, err);
}

/* `source` is taken. */
static as_status state_from_source(struct source *source, const char *path, struct array *a,
                                   struct bytes_state **ret, struct as_err *err)
{
    a->name = as_strdup(path);
    a->state = *ret = as_calloc(1, sizeof **ret);
    a->free = free_bytes;
    if (!a->name || !*ret) {
        source_free(source);
        return as_fail_nomem(err);
    }
    (*ret)->source = source;
    return AS_OK;
}

/* ---- IDX ---- */

static double read_big_endian(unsigned type, const unsigned char *p)
{
    uint32_t v;
    uint64_t w;
    float f;
    double d;
    switch (type) {
    case 0x08:
        return p[0];
    case 0x09:
        return (int8_t)p[0];
    case 0x0b:
        return (int16_t)((uint32_t)p[0] << 8 | p[1]);
    case 0x0c:
        memcpy(&v, p, sizeof v);
        return (int32_t)__builtin_bswap32(v);
    case 0x0d:
        memcpy(&v, p, sizeof v);
        v = __builtin_bswap32(v);
        memcpy(&f, &v, sizeof f);
        return (double)f;
    default:
        memcpy(&w, p, sizeof w);
        w = __builtin_bswap64(w);
        memcpy(&d, &w, sizeof d);
        return d;
    }
}

static size_t idx_type_size(unsigned type)
{
    return type == 0x08 || type == 0x09   ? 1
           : type == 0x0b                 ? 2
           : type == 0x0c || type == 0x0d ? 4
           : type == 0x0e                 ? 8
                                          : 0;
}

static as_status idx_values(void *state, size_t count, double *ret, struct as_err *err)
{
    struct bytes_state *b = state;
    while (count) {
        size_t n = count < PIECE ? count : PIECE;
        as_status st = source_read_exact(b->source, b->buf, n * b->size, "its values", err);
        if (st != AS_OK)
            return st;
        for (size_t i = 0; i < n; i++)
            ret[i] = read_big_endian(b->type, b->buf + i * b->size);
        ret += n;
        count -= n;
    }
    return AS_OK;
}

static as_status idx_shape(struct bytes_state *b, size_t n_dims, struct array *a,
                           struct as_err *err)
{
    a->n_dims = n_dims;
    a->n_values = 1;
    for (size_t i = 0; i < n_dims; i++) {
        unsigned char p[4];
        as_status st = source_read_exact(b->source, p, 4, "its header", err);
        if (st != AS_OK)
            return st;
        a->shape[i] = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | (size_t)p[3];
        if (__builtin_mul_overflow(a->n_values, a->shape[i], &a->n_values) ||
            a->n_values > ARRAY_MAX_VALUES)
            return as_fail(err, AS_E_TOO_LARGE,
                           "%.200s: the shape in its header has more than %zu "
                           "values",
                           a->name, ARRAY_MAX_VALUES);
    }
    return AS_OK;
}

static as_status idx_header(struct bytes_state *b, struct array *a, struct as_err *err)
{
    unsigned char magic[4];
    as_status st = source_read_exact(b->source, magic, 4, "its header", err);
    if (st != AS_OK)
        return st;
    b->type = magic[2];
    b->size = idx_type_size(b->type);
    if (magic[0] || magic[1] || !b->size || magic[3] == 0 || magic[3] > ARRAY_MAX_DIMS)
        return as_fail(
            err, AS_E_INVAL,
            "%.200s is not an IDX file: it starts with %02x %02x %02x %02x, expected 00 00, "
            "a type 08 to 0e and 1 to %d dimensions",
            a->name, magic[0], magic[1], magic[2], magic[3], ARRAY_MAX_DIMS);
    st = idx_shape(b, magic[3], a, err);
    if (st != AS_OK)
        return st;
    uint64_t size = source_size(b->source), want = 4 + 4 * magic[3] + a->n_values * b->size;
    if (size != SOURCE_SIZE_UNKNOWN && size != want)
        return as_fail(err, AS_E_INVAL, "%.200s has %llu bytes, its header says %llu", a->name,
                       (unsigned long long)size, (unsigned long long)want);
    return AS_OK;
}

as_status array_open_idx(const char *path, struct array *ret, struct as_err *err)
{
    struct source *source = NULL;
    struct bytes_state *b = NULL;
    AS_AUTO(array_done) struct array a = {.read = idx_values, .end = end_bytes};
    as_status st = source_open(path, true, &source, err);
    if (st != AS_OK)
        return st;
    st = state_from_source(source, path, &a, &b, err);
    if (st != AS_OK)
        return st;
    st = idx_header(b, &a, err);
    if (st != AS_OK)
        return st;
    *ret = a;
    a = (struct array){0};
    return AS_OK;
}

/* ---- CIFAR ---- */

static as_status skip_bytes(struct bytes_state *b, size_t n, struct as_err *err)
{
    return n ? source_read_exact(b->source, b->buf, n, "a record", err) : AS_OK;
}

static as_status cifar_values(void *state, size_t count, double *ret, struct as_err *err)
{
    struct bytes_state *b = state;
    while (count) {
        if (b->left == 0) {
            as_status skipped = skip_bytes(b, b->skip, err);
            if (skipped != AS_OK)
                return skipped;
            b->left = b->take;
        }
        size_t n = count < b->left ? count : b->left;
        as_status st = source_read_exact(b->source, b->buf, n, "a record", err);
        if (st != AS_OK)
            return st;
        for (size_t i = 0; i < n; i++)
            ret[i] = b->buf[i];
        ret += n;
        count -= n;
        b->left -= n;
        if (b->left == 0 && (st = skip_bytes(b, b->after, err)) != AS_OK)
            return st;
    }
    return AS_OK;
}

static as_status cifar_shape(struct bytes_state *b, bool labels, struct array *a,
                             struct as_err *err)
{
    uint64_t size = source_size(b->source);
    size_t head = size % (PIXELS + 1) == 0 ? 1 : 2;
    if (size == 0 || size % (PIXELS + head) != 0)
        return as_fail(
            err, AS_E_INVAL,
            "%.200s is not a CIFAR file: %llu bytes are neither records of %zu (CIFAR-10) "
            "nor of %zu (CIFAR-100)",
            a->name, (unsigned long long)size, PIXELS + 1, PIXELS + 2);
    size_t n = (size_t)(size / (PIXELS + head));
    b->skip = labels ? head - 1 : head;
    b->take = labels ? 1 : PIXELS;
    b->after = labels ? PIXELS : 0;
    a->n_dims = labels ? 1 : 4;
    a->shape[0] = n;
    a->shape[1] = 3;
    a->shape[2] = a->shape[3] = 32;
    a->n_values = n * b->take;
    return AS_OK;
}

as_status array_open_cifar(const char *path, bool labels, struct array *ret, struct as_err *err)
{
    struct source *source = NULL;
    struct bytes_state *b = NULL;
    AS_AUTO(array_done) struct array a = {.read = cifar_values, .end = end_bytes};
    as_status st = source_open(path, false, &source, err);
    if (st != AS_OK)
        return st;
    st = state_from_source(source, path, &a, &b, err);
    if (st != AS_OK)
        return st;
    st = cifar_shape(b, labels, &a, err);
    if (st != AS_OK)
        return st;
    *ret = a;
    a = (struct array){0};
    return AS_OK;
}
