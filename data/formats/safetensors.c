/* safetensors files: checked reading, and writing with a checksum.
 *
 * Reading: json_parse() bounds the header, the size of each tensor must follow from its type and
 * shape, and the tensors in the order of their offsets must cover the data without overlaps or
 * holes. After these checks the tensors are views of the bytes of the file.
 *
 * The checksum is in the header, and it also covers the header. It is therefore computed as if its
 * eight digits were zeros. The writer formats the header with zeros, computes the checksum of all
 * pieces and replaces the zeros: the length does not change. The pieces are written from where they
 * are, so a model is not copied in order to be stored. */
#include "data/formats/safetensors.h"

#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "tensors are copied without a change of byte order");

#define METADATA "__metadata__"
#define DIGITS 8 /* of a checksum */
#define NO_DIGITS "00000000"

static const char *const type_names[] = {"F32", "F64", "I64", "I32", "U8", NULL};
static const size_t type_sizes[] = {4, 8, 8, 4, 1};

struct safetensors {
    struct file_image image;
    json_t *header;
    size_t n;
    struct safetensors_tensor *tensors;        /* names are views of header, data of bytes */
    const struct safetensors_tensor **by_name; /* [n] views of tensors, in byte order of names */
};

void safetensors_free(struct safetensors *s)
{
    if (!s)
        return;
    json_decref(s->header);
    free(s->tensors);
    free(s->by_name);
    file_image_done(&s->image);
    free(s);
}

/* The bytes of a tensor, from type and shape; false if the product overflows. */
static bool tensor_size(const struct safetensors_tensor *t, size_t *ret)
{
    size_t n = type_sizes[t->type];
    for (size_t i = 0; i < t->n_dims; i++)
        if (__builtin_mul_overflow(n, t->shape[i], &n))
            return false;
    *ret = n;
    return true;
}

static as_status read_shape(const json_t *list, struct safetensors_tensor *t, struct as_err *err)
{
    t->n_dims = json_array_size(list);
    if (t->n_dims > SAFETENSORS_MAX_DIMS)
        return as_fail(err, AS_E_TOO_LARGE, "tensor '%.80s' has %zu dimensions, at most %d",
                       t->name, t->n_dims, SAFETENSORS_MAX_DIMS);
    for (size_t i = 0; i < t->n_dims; i++) {
        const json_t *d = json_array_get(list, i);
        if (!json_is_integer(d) || json_integer_value(d) < 0)
            return as_fail(err, AS_E_INVAL,
                           "tensor '%.80s': found %s in its shape, expected whole numbers >= 0",
                           t->name, json_type_name(d));
        t->shape[i] = (size_t)json_integer_value(d);
    }
    return AS_OK;
}

static as_status read_offsets(const json_t *list, const char *data, size_t data_len,
                              struct safetensors_tensor *t, struct as_err *err)
{
    const json_t *b = json_array_get(list, 0), *e = json_array_get(list, 1);
    if (json_array_size(list) != 2 || !json_is_integer(b) || !json_is_integer(e))
        return as_fail(err, AS_E_INVAL, "tensor '%.80s': data_offsets must be two whole numbers",
                       t->name);
    json_int_t begin = json_integer_value(b), end = json_integer_value(e);
    if (begin < 0 || end < begin || (uint64_t)end > data_len)
        return as_fail(err, AS_E_INVAL,
                       "tensor '%.80s' is at %lld to %lld, but the file has %zu bytes of data",
                       t->name, (long long)begin, (long long)end, data_len);
    t->data = data + begin;
    t->size_bytes = (size_t)(end - begin);
    size_t want;
    if (!tensor_size(t, &want) || want != t->size_bytes)
        return as_fail(err, AS_E_INVAL,
                       "tensor '%.80s': its %zu bytes do not fit its type and shape", t->name,
                       t->size_bytes);
    return AS_OK;
}

static as_status read_tensor(const char *name, const json_t *obj, const char *data, size_t data_len,
                             struct safetensors_tensor *ret, struct as_err *err)
{
    struct json_fields f;
    struct safetensors_tensor t = {.name = name};
    json_t *shape = NULL, *offsets = NULL;
    const char *type = NULL;
    char pointer[AS_ERR_POINTER_MAX];
    json_pointer_child("", name, pointer);
    as_status st = json_fields_init(&f, obj, pointer, err);
    if (st != AS_OK)
        return st;
    st = json_fields_str(&f, "dtype", JSON_REQUIRED, &type, err);
    if (st != AS_OK)
        return st;
    st = json_fields_array(&f, "shape", JSON_REQUIRED, &shape, err);
    if (st != AS_OK)
        return st;
    st = json_fields_array(&f, "data_offsets", JSON_REQUIRED, &offsets, err);
    if (st != AS_OK)
        return st;
    st = json_fields_end(&f, err);
    if (st != AS_OK)
        return st;
    int kind = 0;
    while (type_names[kind] && strcmp(type_names[kind], type) != 0)
        kind++;
    if (!type_names[kind])
        return as_fail(err, AS_E_UNSUPPORTED,
                       "tensor '%.80s' has type '%.20s', expected F32, F64, I64, I32 or U8", name,
                       type);
    t.type = (safetensors_type)kind;
    st = read_shape(shape, &t, err);
    if (st != AS_OK)
        return st;
    st = read_offsets(offsets, data, data_len, &t, err);
    if (st != AS_OK)
        return st;
    *ret = t;
    return AS_OK;
}

static as_status check_metadata(const json_t *m, struct as_err *err)
{
    if (!json_is_object(m))
        return as_fail(err, AS_E_INVAL, METADATA ": found %s, expected an object of strings",
                       json_type_name(m));
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)m, key, v)
    {
        if (!json_is_string(v))
            return as_fail(err, AS_E_INVAL, METADATA ": '%.80s' is %s, expected a string", key,
                           json_type_name(v));
    }
    return AS_OK;
}

static int by_offset(const void *a, const void *b)
{
    const struct safetensors_tensor *x = a, *y = b;
    if (x->data != y->data)
        return (const char *)x->data < (const char *)y->data ? -1 : 1;
    return (x->size_bytes > y->size_bytes) - (x->size_bytes < y->size_bytes);
}

static int by_name(const void *a, const void *b)
{
    const struct safetensors_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* For safetensors_get(): a model of many members has thousands of tensors. */
static as_status sort_names(struct safetensors *s, struct as_err *err)
{
    s->by_name = as_calloc(s->n, sizeof *s->by_name);
    if (!s->by_name)
        return as_fail_nomem(err);
    for (size_t i = 0; i < s->n; i++)
        s->by_name[i] = &s->tensors[i];
    qsort(s->by_name, s->n, sizeof *s->by_name, by_name);
    return AS_OK;
}

static as_status check_cover(const struct safetensors *s, const char *data, size_t data_len,
                             struct as_err *err)
{
    const char *at = data;
    for (size_t i = 0; i < s->n; i++) {
        const struct safetensors_tensor *t = &s->tensors[i];
        if ((const char *)t->data < at)
            return as_fail(err, AS_E_INVAL, "tensors '%.80s' and '%.80s' overlap",
                           s->tensors[i - 1].name, t->name);
        if ((const char *)t->data > at)
            return as_fail(err, AS_E_INVAL, "a hole of %zu bytes before tensor '%.80s'",
                           (size_t)((const char *)t->data - at), t->name);
        at += t->size_bytes;
    }
    if (at != data + data_len)
        return as_fail(err, AS_E_INVAL, "%zu bytes follow the last tensor",
                       (size_t)(data + data_len - at));
    return AS_OK;
}

static as_status read_tensors(struct safetensors *s, const char *data, size_t data_len,
                              struct as_err *err)
{
    s->tensors = as_calloc(json_object_size(s->header), sizeof *s->tensors);
    if (!s->tensors)
        return as_fail_nomem(err);
    const char *name;
    json_t *obj;
    json_object_foreach(s->header, name, obj)
    {
        as_status st = strcmp(name, METADATA) == 0
                           ? check_metadata(obj, err)
                           : read_tensor(name, obj, data, data_len, &s->tensors[s->n++], err);
        if (st < 0)
            return st;
    }
    qsort(s->tensors, s->n, sizeof *s->tensors, by_offset);
    as_status st = check_cover(s, data, data_len, err);
    return st == AS_OK ? sort_names(s, err) : st;
}

/* The place of the checksum's digits in the first `len` bytes, or NULL. The search cannot match
 * inside a JSON string, because quotes in a string have a backslash. */
static char *find_digits(char *bytes, size_t len, const char *digits)
{
    char field[sizeof SAFETENSORS_CHECKSUM + DIGITS + 8];
    int n = snprintf(field, sizeof field, "\"" SAFETENSORS_CHECKSUM "\":\"%.*s\"", DIGITS, digits);
    char *at = memmem(bytes, len, field, (size_t)n);
    return at ? at + n - DIGITS - 1 : NULL;
}

/* The checksum of a file whose own digits are at `digits`. */
static uint32_t checksum_around(const char *bytes, size_t len, const char *digits)
{
    size_t at = (size_t)(digits - bytes);
    uint32_t c = crc32c(0, bytes, at);
    c = crc32c(c, NO_DIGITS, DIGITS);
    return crc32c(c, digits + DIGITS, len - at - DIGITS);
}

static as_status check_sum(const struct safetensors *s, size_t header_end, size_t len,
                           struct as_err *err)
{
    const char *expected = safetensors_metadata(s, SAFETENSORS_CHECKSUM);
    char found[DIGITS + 1];
    if (!expected)
        return AS_OK;
    const char *digits =
        strlen(expected) == DIGITS ? find_digits(s->image.at, header_end, expected) : NULL;
    if (!digits)
        return as_fail(err, AS_E_INVAL,
                       "the file is damaged: its " SAFETENSORS_CHECKSUM
                       " is '%.20s', expected %d hexadecimal digits",
                       expected, DIGITS);
    (void)snprintf(found, sizeof found, "%08x", checksum_around(s->image.at, len, digits));
    if (memcmp(found, digits, DIGITS) != 0)
        return as_fail(err, AS_E_INVAL,
                       "the file is damaged: its content has the CRC-32C %s, expected %s", found,
                       expected);
    return AS_OK;
}

as_status safetensors_parse(char *bytes, size_t len, struct safetensors **ret, struct as_err *err)
{
    return safetensors_parse_image(&(struct file_image){.at = bytes, .len = len}, ret, err);
}

as_status safetensors_parse_image(struct file_image *image, struct safetensors **ret,
                                  struct as_err *err)
{
    AS_AUTO(safetensors_freep) struct safetensors *s = as_calloc(1, sizeof *s);
    if (!s) {
        file_image_done(image);
        return as_fail_nomem(err);
    }
    char *bytes = image->at;
    size_t len = image->len;
    s->image = *image;
    *image = (struct file_image){0};
    uint64_t n;
    if (len < sizeof n)
        return as_fail(err, AS_E_INVAL, "not a safetensors file: %zu bytes", len);
    memcpy(&n, bytes, sizeof n);
    if (n > SAFETENSORS_MAX_HEADER)
        return as_fail(err, AS_E_TOO_LARGE,
                       "not a safetensors file, or its header is larger than %zu bytes",
                       SAFETENSORS_MAX_HEADER);
    if (n > len - sizeof n)
        return as_fail(err, AS_E_INVAL, "the file is cut short in its header");
    as_status st = json_parse(bytes + sizeof n, (size_t)n, &s->header, err);
    if (st != AS_OK)
        return st;
    if (!json_is_object(s->header))
        return as_fail(err, AS_E_INVAL, "the header is %s, expected an object",
                       json_type_name(s->header));
    st = read_tensors(s, bytes + sizeof n + n, len - sizeof n - (size_t)n, err);
    if (st != AS_OK)
        return st;
    st = check_sum(s, sizeof n + (size_t)n, len, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(s);
    return AS_OK;
}

as_status safetensors_read(const char *path, size_t max_bytes, struct safetensors **ret,
                           struct as_err *err)
{
    struct file_image image = {0};
    as_status st = file_image_read(path, max_bytes, &image, err);
    if (st < 0)
        return st;
    st = safetensors_parse_image(&image, ret, err);
    return st < 0 ? as_err_prefix(err, st, "%.200s", path) : AS_OK;
}

size_t safetensors_count(const struct safetensors *s)
{
    return s->n;
}

const struct safetensors_tensor *safetensors_at(const struct safetensors *s, size_t i)
{
    return &s->tensors[i];
}

const struct safetensors_tensor *safetensors_get(const struct safetensors *s, const char *name)
{
    const struct safetensors_tensor key = {.name = name}, *wanted = &key;
    const struct safetensors_tensor **found =
        s->n ? bsearch(&wanted, s->by_name, s->n, sizeof wanted, by_name) : NULL;
    return found ? *found : NULL;
}

const char *safetensors_metadata(const struct safetensors *s, const char *key)
{
    return json_string_value(json_object_get(json_object_get(s->header, METADATA), key));
}

as_status safetensors_copy(const struct safetensors *s, const char *name, safetensors_type type,
                           size_t n, void *ret, struct as_err *err)
{
    const struct safetensors_tensor *t = safetensors_get(s, name);
    if (!t)
        return as_fail(err, AS_E_INVAL, "there is no tensor '%.80s'", name);
    if (t->type != type || t->size_bytes / type_sizes[type] != n)
        return as_fail(err, AS_E_INVAL, "tensor '%.80s' holds %zu of %s, expected %zu of %s", name,
                       t->size_bytes / type_sizes[t->type], type_names[t->type], n,
                       type_names[type]);
    if (n)
        memcpy(ret, t->data, t->size_bytes);
    return AS_OK;
}

/* ---- writing ---- */

static json_t *tensor_entry(const struct safetensors_tensor *t, size_t begin, size_t size)
{
    JSON_AUTO shape = json_array();
    for (size_t i = 0; i < t->n_dims; i++)
        if (json_array_append_new(shape, json_integer((json_int_t)t->shape[i])) != 0)
            return NULL;
    return json_pack("{s:s, s:O, s:[I, I]}", "dtype", type_names[t->type], "shape", shape,
                     "data_offsets", (json_int_t)begin, (json_int_t)begin + (json_int_t)size);
}

/* The JSON header for `tensors`; parts[i] is set to the bytes of tensor i. */
static as_status build_header(const json_t *metadata, const struct safetensors_tensor *tensors,
                              size_t n, struct iovec *parts, json_t **ret, struct as_err *err)
{
    JSON_AUTO header = json_object();
    JSON_AUTO meta = metadata ? json_copy((json_t *)metadata) : json_object();
    size_t at = 0;
    as_status st = meta ? check_metadata(meta, err) : as_fail_nomem(err);
    if (st != AS_OK)
        return st;
    if (json_object_get(meta, SAFETENSORS_CHECKSUM))
        return as_fail(err, AS_E_INVAL, METADATA ": '" SAFETENSORS_CHECKSUM "' is reserved");
    if (json_object_set_new(meta, SAFETENSORS_CHECKSUM, json_string(NO_DIGITS)) != 0 ||
        json_object_set(header, METADATA, meta) != 0)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        const struct safetensors_tensor *t = &tensors[i];
        size_t size, end;
        if (!tensor_size(t, &size) || __builtin_add_overflow(at, size, &end) || end > INT64_MAX)
            return as_fail(err, AS_E_TOO_LARGE, "tensor '%.80s' is too large", t->name);
        if (json_object_get(header, t->name))
            return as_fail(err, AS_E_INVAL, "two tensors are named '%.80s'", t->name);
        if (json_object_set_new(header, t->name, tensor_entry(t, at, size)) != 0)
            return as_fail(err, AS_E_NOMEM, "out of memory, or '%.80s' is not UTF-8", t->name);
        parts[i] = (struct iovec){(void *)t->data, size};
        at = end;
    }
    if (!header)
        return as_fail_nomem(err);
    *ret = as_steal(header);
    return AS_OK;
}

/* Put the checksum of all parts into the first part, the header. */
static void put_checksum(const struct iovec *parts, size_t n)
{
    char found[DIGITS + 1];
    uint32_t c = 0;
    for (size_t i = 0; i < n; i++)
        c = crc32c(c, parts[i].iov_base, parts[i].iov_len);
    (void)snprintf(found, sizeof found, "%08x", c);
    char *digits = find_digits(parts[0].iov_base, parts[0].iov_len, NO_DIGITS);
    if (digits) /* always: build_header() put it there */
        memcpy(digits, found, DIGITS);
}

as_status safetensors_write(const char *path, const json_t *metadata,
                            const struct safetensors_tensor *tensors, size_t n, struct as_err *err)
{
    AS_AUTO(as_freep) struct iovec *parts = as_calloc(n + 1, sizeof *parts);
    JSON_AUTO header = NULL;
    if (!parts)
        return as_fail_nomem(err);
    as_status st = build_header(metadata, tensors, n, parts + 1, &header, err);
    if (st < 0)
        return st;
    AS_AUTO(str_done) struct str b = {0};
    uint64_t len = 0;
    str_add(&b, (const char *)&len, sizeof len);
    json_format_to(&b, header);
    while (b.len % 8 && !b.failed)
        str_putc(&b, ' '); /* so that the tensors are aligned */
    st = str_check(&b, err);
    if (st < 0)
        return st;
    len = b.len - sizeof len;
    if (len > SAFETENSORS_MAX_HEADER)
        return as_fail(err, AS_E_TOO_LARGE, "a header of %zu bytes, at most %zu", (size_t)len,
                       SAFETENSORS_MAX_HEADER);
    memcpy(b.s, &len, sizeof len);
    parts[0] = (struct iovec){b.s, b.len};
    put_checksum(parts, n + 1);
    return file_publishv(path, parts, n + 1, 0644, err);
}
