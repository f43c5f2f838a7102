/* NPY arrays: the header, reading, writing.
 *
 * The header is a Python dict literal with the keys descr, fortran_order and shape in any order:
 *   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
 * The parser understands this form only, and no other Python.
 *
 * The values follow at once. open_checked() reads the first bytes of the file, which hold the
 * header and some of the values; the rest of that buffer is the first piece of the values, so that
 * a member of an archive, which cannot be read twice, needs no seek. */
#include "data/formats/npy.h"

#include <stdbool.h>
#include <string.h>
#include <sys/uio.h>

#include "base/file.h"
#include "data/formats/source.h"
#include "base/str.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "values are copied without a change of byte order");

static const struct {
    const char *descr;
    size_t size;
} types[] = {
    [NPY_BOOL] = {"|b1", 1}, [NPY_I1] = {"|i1", 1}, [NPY_I2] = {"<i2", 2}, [NPY_I4] = {"<i4", 4},
    [NPY_I8] = {"<i8", 8},   [NPY_U1] = {"|u1", 1}, [NPY_U2] = {"<u2", 2}, [NPY_U4] = {"<u4", 4},
    [NPY_F4] = {"<f4", 4},   [NPY_F8] = {"<f8", 8},
};

size_t npy_type_size(npy_type type)
{
    return types[type].size;
}

/* ---- header ---- */

struct cursor {
    const char *p, *end;
};

static void skip_space(struct cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\n'))
        c->p++;
}

static bool take_char(struct cursor *c, char ch)
{
    skip_space(c);
    if (c->p == c->end || *c->p != ch)
        return false;
    c->p++;
    return true;
}

static bool take_word(struct cursor *c, const char *word)
{
    size_t n = strlen(word);
    skip_space(c);
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n) != 0)
        return false;
    c->p += n;
    return true;
}

/* 'text' or "text" without escapes, into a buffer. */
static bool take_string(struct cursor *c, char *ret, size_t size)
{
    skip_space(c);
    if (c->p == c->end || (*c->p != '\'' && *c->p != '"'))
        return false;
    char quote = *c->p++;
    size_t n = 0;
    for (; c->p < c->end && *c->p != quote; c->p++) {
        if (n + 1 >= size || (unsigned char)*c->p < 0x20 || (unsigned char)*c->p > 0x7e)
            return false;
        ret[n++] = *c->p;
    }
    ret[n] = 0;
    return take_char(c, quote);
}

static as_status fail_header(struct as_err *err, const char *what)
{
    return as_fail(err, AS_E_INVAL, "the NPY header is malformed: expected %s", what);
}

static as_status parse_descr(struct cursor *c, npy_type *ret, struct as_err *err)
{
    char descr[16];
    if (!take_string(c, descr, sizeof descr)) {
        skip_space(c);
        if (c->p < c->end && *c->p == '[')
            return as_fail(err, AS_E_UNSUPPORTED,
                           "the array has named fields (a record type); expected plain numbers");
        return fail_header(err, "a short text for 'descr'");
    }
    for (size_t i = 0; i < AS_ARRAY_LEN(types); i++) {
        /* for types of one byte, "|" and "<" mean the same */
        bool order_fits = descr[0] == types[i].descr[0] || descr[0] == '<';
        if (order_fits && strcmp(descr + 1, types[i].descr + 1) == 0) {
            *ret = (npy_type)i;
            return AS_OK;
        }
    }
    if (descr[0] && descr[1] == 'O')
        return as_fail(err, AS_E_UNSUPPORTED,
                       "the array holds Python objects ('%s'); expected numbers", descr);
    if (descr[0] == '>')
        return as_fail(err, AS_E_UNSUPPORTED, "the array is big-endian ('%s'); expected '<'",
                       descr);
    return as_fail(err, AS_E_UNSUPPORTED,
                   "the array's type is '%s'; expected bool, i1, i2, i4, i8, u1, u2, u4, f4 or f8",
                   descr);
}

static bool take_size(struct cursor *c, size_t *ret)
{
    skip_space(c);
    const char *start = c->p;
    size_t v = 0;
    for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *c->p - '0', &v))
            return false;
    *ret = v;
    return c->p > start;
}

static as_status parse_shape(struct cursor *c, struct npy_header *h, struct as_err *err)
{
    if (!take_char(c, '('))
        return fail_header(err, "a tuple for 'shape'");
    h->n_dims = 0;
    while (!take_char(c, ')')) {
        if (h->n_dims == NPY_MAX_DIMS)
            return as_fail(err, AS_E_TOO_LARGE, "the array has more than %d dimensions",
                           NPY_MAX_DIMS);
        if (!take_size(c, &h->shape[h->n_dims]))
            return fail_header(err, "whole numbers in 'shape'");
        h->n_dims++;
        if (!take_char(c, ',')) {
            if (!take_char(c, ')'))
                return fail_header(err, "')' at the end of 'shape'");
            break;
        }
    }
    return AS_OK;
}

static as_status parse_order(struct cursor *c, struct as_err *err)
{
    if (take_word(c, "False"))
        return AS_OK;
    if (take_word(c, "True"))
        return as_fail(err, AS_E_UNSUPPORTED,
                       "the array is in Fortran order; save it with numpy.ascontiguousarray");
    return fail_header(err, "True or False for 'fortran_order'");
}

static as_status parse_dict(struct cursor *c, struct npy_header *h, struct as_err *err)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    unsigned seen = 0;
    if (!take_char(c, '{'))
        return fail_header(err, "'{'");
    while (!take_char(c, '}')) {
        char key[24];
        unsigned k = 0;
        if (!take_string(c, key, sizeof key) || !take_char(c, ':'))
            return fail_header(err, "a key");
        while (k < AS_ARRAY_LEN(keys) && strcmp(key, keys[k]) != 0)
            k++;
        if (k == AS_ARRAY_LEN(keys) || (seen & 1u << k))
            return fail_header(err, "each of 'descr', 'fortran_order' and 'shape' once");
        seen |= 1u << k;
        as_status st = k == 0   ? parse_descr(c, &h->type, err)
                       : k == 1 ? parse_order(c, err)
                                : parse_shape(c, h, err);
        if (st < 0)
            return st;
        if (!take_char(c, ',')) {
            if (!take_char(c, '}'))
                return fail_header(err, "'}'");
            break;
        }
    }
    skip_space(c);
    if (c->p != c->end || seen != 7)
        return fail_header(err, seen != 7 ? "the keys 'descr', 'fortran_order' and 'shape'"
                                          : "nothing after '}'");
    return AS_OK;
}

/* Set n_values to the product of the shape; its bytes must also fit into a file offset. */
static as_status count_values(struct npy_header *h, struct as_err *err)
{
    h->n_values = 1;
    size_t bytes, total;
    for (size_t i = 0; i < h->n_dims; i++)
        if (__builtin_mul_overflow(h->n_values, h->shape[i], &h->n_values))
            return as_fail(err, AS_E_TOO_LARGE, "the array's shape is too large");
    if (__builtin_mul_overflow(h->n_values, types[h->type].size, &bytes) ||
        __builtin_add_overflow(bytes, h->data_offset, &total) || total > INT64_MAX)
        return as_fail(err, AS_E_TOO_LARGE, "the array's shape is too large");
    return AS_OK;
}

as_status npy_parse_header(const void *bytes, size_t len, struct npy_header *ret,
                           struct as_err *err)
{
    const unsigned char *b = bytes;
    if (len < 10 || memcmp(b, "\x93NUMPY", 6) != 0)
        return as_fail(err, AS_E_INVAL, "not an NPY file: it does not start with \\x93NUMPY");
    unsigned major = b[6];
    if (major < 1 || major > 3)
        return as_fail(err, AS_E_UNSUPPORTED, "NPY version %u; expected 1, 2 or 3", major);
    size_t prefix = major == 1 ? 10 : 12;
    if (len < prefix)
        return as_fail(err, AS_E_INVAL, "the NPY file is cut short in its header");
    size_t n = b[8] | (size_t)b[9] << 8;
    if (major > 1)
        n |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
    if (n > NPY_MAX_HEADER)
        return as_fail(err, AS_E_TOO_LARGE, "the NPY header has %zu bytes, at most %zu are read", n,
                       NPY_MAX_HEADER);
    if (n > len - prefix)
        return as_fail(err, AS_E_INVAL, "the NPY file is cut short in its header");
    struct npy_header h = {.data_offset = prefix + n};
    const char *text = (const char *)b + prefix;
    as_status st = parse_dict(&(struct cursor){text, text + n}, &h, err);
    if (st != AS_OK)
        return st;
    st = count_values(&h, err);
    if (st != AS_OK)
        return st;
    *ret = h;
    return AS_OK;
}

/* ---- reading ---- */

#define CHUNK_BYTES ((size_t)65536)

struct npy {
    struct source *source;
    struct npy_header header;
    size_t at;            /* number of values read */
    char *buf;            /* NPY_MAX_HEADER + 12 bytes; after opening, CHUNK_BYTES of it are used */
    size_t buf_at, buf_n; /* the bytes [buf_at, buf_n) of buf are to be converted */
};

void npy_free(struct npy *n)
{
    if (!n)
        return;
    source_free(n->source);
    free(n->buf);
    free(n);
}

static as_status open_checked(struct npy *n, struct as_err *err)
{
    const char *path = source_path(n->source);
    size_t have = 0;
    as_status st = source_read(n->source, n->buf, NPY_MAX_HEADER + 12, &have, err);
    if (st < 0)
        return st;
    st = npy_parse_header(n->buf, have, &n->header, err);
    if (st < 0)
        return as_err_prefix(err, st, "%.200s", path);
    n->buf_at = n->header.data_offset;
    n->buf_n = have;
    size_t want = n->header.n_values * types[n->header.type].size;
    size_t there = (size_t)source_size(n->source) - n->header.data_offset;
    if (there < want)
        return as_fail(err, AS_E_INVAL,
                       "%.200s is cut short: %zu bytes of data, its shape needs %zu", path, there,
                       want);
    if (there > want)
        return as_fail(err, AS_E_INVAL, "%.200s has %zu bytes after its data", path, there - want);
    return AS_OK;
}

static as_status open_source(struct source *source, struct npy **ret, struct as_err *err)
{
    AS_AUTO(npy_freep) struct npy *n = as_calloc(1, sizeof *n);
    if (!n) {
        source_free(source);
        return as_fail_nomem(err);
    }
    n->source = source;
    n->buf = as_calloc(NPY_MAX_HEADER + 12, 1);
    if (!n->buf)
        return as_fail_nomem(err);
    as_status st = open_checked(n, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(n);
    return AS_OK;
}

as_status npy_open(const char *path, struct npy **ret, struct as_err *err)
{
    struct source *source = NULL;
    as_status st = source_open(path, false, &source, err);
    if (st != AS_OK)
        return st;
    return open_source(source, ret, err);
}

as_status npy_open_zip(const char *path, const char *name, struct npy **ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str member = {0};
    struct source *source = NULL;
    str_printf(&member, "%s.npy", name);
    as_status st = str_check(&member, err);
    if (st == AS_OK)
        st = source_open_zip(path, str_cstr(&member), &source, err);
    if (st == AS_OK)
        st = open_source(source, ret, err);
    return st == AS_OK ? st : as_err_prefix(err, st, "array '%.60s'", name);
}

const struct npy_header *npy_header_of(const struct npy *n)
{
    return &n->header;
}

#define CONVERT(T)                                                                                 \
    for (size_t i = 0; i < count; i++) {                                                           \
        T v;                                                                                       \
        memcpy(&v, in + i * sizeof v, sizeof v);                                                   \
        out[i] = (double)v;                                                                        \
    }                                                                                              \
    break

static void convert_values(npy_type type, const char *in, size_t count, double *out)
{
    switch (type) {
    case NPY_BOOL:
        for (size_t i = 0; i < count; i++)
            out[i] = in[i] != 0;
        break;
    case NPY_I1:
        CONVERT(int8_t);
    case NPY_I2:
        CONVERT(int16_t);
    case NPY_I4:
        CONVERT(int32_t);
    case NPY_I8:
        CONVERT(int64_t);
    case NPY_U1:
        CONVERT(uint8_t);
    case NPY_U2:
        CONVERT(uint16_t);
    case NPY_U4:
        CONVERT(uint32_t);
    case NPY_F4:
        CONVERT(float);
    case NPY_F8:
        CONVERT(double);
    }
}

/* Move the rest of the last piece to the start of buf, and read more behind it. */
static as_status refill_buffer(struct npy *n, struct as_err *err)
{
    size_t size = types[n->header.type].size, kept = n->buf_n - n->buf_at, have = 0;
    size_t want = (n->header.n_values - n->at) * size - kept;
    want = want < CHUNK_BYTES - kept ? want : CHUNK_BYTES - kept;
    memmove(n->buf, n->buf + n->buf_at, kept);
    as_status st = source_read(n->source, n->buf + kept, want, &have, err);
    if (st < 0)
        return st;
    n->buf_at = 0;
    n->buf_n = kept + have;
    if (n->buf_n < size)
        return as_fail(err, AS_E_IO, "%.200s became shorter while it was read",
                       source_path(n->source));
    return AS_OK;
}

as_status npy_read(struct npy *n, size_t count, double *ret, struct as_err *err)
{
    size_t size = types[n->header.type].size;
    if (count > n->header.n_values - n->at)
        return as_fail(err, AS_E_INVAL, "%.200s holds %zu values, asked for more",
                       source_path(n->source), n->header.n_values);
    while (count) {
        if (n->buf_n - n->buf_at < size) {
            as_status st = refill_buffer(n, err);
            if (st < 0)
                return st;
        }
        size_t take_n = (n->buf_n - n->buf_at) / size;
        take_n = take_n < count ? take_n : count;
        convert_values(n->header.type, n->buf + n->buf_at, take_n, ret);
        n->buf_at += take_n * size;
        n->at += take_n;
        ret += take_n;
        count -= take_n;
    }
    return AS_OK;
}

/* ---- writing ---- */

as_status npy_format_header(npy_type type, const size_t *shape, size_t n_dims, size_t at_least,
                            struct str *b, struct as_err *err)
{
    struct npy_header h = {.type = type, .n_dims = n_dims};
    size_t start = b->len;
    if (n_dims > NPY_MAX_DIMS)
        return as_fail(err, AS_E_TOO_LARGE, "an array of %zu dimensions, at most %d", n_dims,
                       NPY_MAX_DIMS);
    memcpy(h.shape, shape, n_dims * sizeof *shape);
    as_status st = count_values(&h, err);
    if (st < 0)
        return st;
    str_add(b, "\x93NUMPY\x01\x00\x00\x00", 10);
    str_printf(b, "{'descr': '%s', 'fortran_order': False, 'shape': (", types[type].descr);
    for (size_t i = 0; i < n_dims; i++)
        str_printf(b, n_dims == 1 ? "%zu," : i ? ", %zu" : "%zu", shape[i]);
    str_puts(b, "), }");
    while (((b->len - start + 1) % 64 || b->len - start + 1 < at_least) && !b->failed)
        str_putc(b, ' '); /* numpy aligns the data to 64 bytes */
    str_putc(b, '\n');
    st = str_check(b, err);
    if (st < 0)
        return st;
    b->s[start + 8] = (char)((b->len - start - 10) & 0xff);
    b->s[start + 9] = (char)((b->len - start - 10) >> 8);
    return AS_OK;
}

as_status npy_write(const char *path, npy_type type, const size_t *shape, size_t n_dims,
                    const void *data, struct as_err *err)
{
    AS_AUTO(str_done) struct str b = {0};
    size_t n = 1;
    as_status st = npy_format_header(type, shape, n_dims, 0, &b, err);
    if (st < 0)
        return st;
    for (size_t i = 0; i < n_dims; i++)
        n *= shape[i]; /* npy_format_header() checked the product */
    struct iovec parts[2] = {{b.s, b.len}, {(void *)data, n * types[type].size}};
    return file_publishv(path, parts, 2, 0644, err);
}
