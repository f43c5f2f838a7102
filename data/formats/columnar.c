/* Columns as a file. The header holds offsets, and its own length depends on their digits: the
 * writer sizes it with the longest offset there can be, and pads the rest with blanks. The machine
 * is little-endian (base/ and kernels/ assume it too), so arrays are copied as they are; only the
 * indices of a short dict are narrowed. */
#include "data/formats/columnar.h"

#include <string.h>

#include "base/json.h"
#include "base/mem.h"

static const char magic[8] = {'A', 'S', 'Y', 'C', 'O', 'L', 'S', '1'};
#define HEAD_SIZE (sizeof magic + 2 * sizeof(uint32_t))
#define LONGEST_AT INT64_C(999999999999999)
#define NARROW_MAX UINT16_MAX /* words of a dict with 2 bytes: the last index is no word */

static const char *const type_words[] = {"u8", "u32", "f32", "f64", "dict", NULL};

size_t columnar_type_size(columnar_type type)
{
    static const size_t sizes[] = {1, 4, 4, 8, 4};
    return sizes[type];
}

static size_t padded(size_t n)
{
    return (n + 7) & ~(size_t)7;
}

static size_t width_of(const struct columnar_column *c)
{
    return c->type == COLUMNAR_DICT && c->n_words < NARROW_MAX ? 2 : columnar_type_size(c->type);
}

/* ---- write ---- */

static json_t *words_json(const struct columnar_column *c)
{
    JSON_AUTO list = json_array();
    for (size_t i = 0; list && i < c->n_words; i++)
        if (json_array_append_new(list, json_string(c->words[i])) != 0)
            return NULL;
    return as_steal(list);
}

static bool is_planar(const struct columnar *f, const struct columnar_column *c)
{
    return f->is_planar && c->type == COLUMNAR_F64;
}

static json_t *column_json(const struct columnar *f, const struct columnar_column *c)
{
    JSON_AUTO o = json_pack("{s:s, s:s}", "name", c->name, "type", type_words[c->type]);
    if (!o)
        return NULL;
    if (c->type == COLUMNAR_DICT &&
        (json_object_set_new(o, "width", json_integer((json_int_t)width_of(c))) != 0 ||
         json_object_set_new(o, "words", words_json(c)) != 0))
        return NULL;
    if (is_planar(f, c) && json_object_set_new(o, "planes", json_true()) != 0)
        return NULL;
    return json_object_set_new(o, "at", json_integer(LONGEST_AT)) == 0 ? as_steal(o) : NULL;
}

static json_t *header_json(const struct columnar *f)
{
    JSON_AUTO list = json_array();
    for (size_t i = 0; list && i < f->n_columns; i++)
        if (json_array_append_new(list, column_json(f, &f->columns[i])) != 0)
            return NULL;
    return list ? json_pack("{s:I, s:s, s:b, s:O}", "rows", (json_int_t)f->n_rows, "version",
                            f->version, "whole", (int)f->is_whole, "columns", list)
                : NULL;
}

/* The first column with the same values, which has the place for both; often the column itself. */
static size_t placed_at(const struct columnar *f, size_t i)
{
    const struct columnar_column *c = &f->columns[i];
    for (size_t k = 0; f->n_rows > 0 && is_planar(f, c) && k < i; k++)
        if (is_planar(f, &f->columns[k]) &&
            memcmp(f->columns[k].values, c->values, f->n_rows * sizeof(double)) == 0)
            return k;
    return i;
}

static as_status set_offsets(json_t *header, const struct columnar *f, size_t at,
                             struct as_err *err)
{
    json_t *list = json_object_get(header, "columns");
    for (size_t i = 0; i < f->n_columns; i++) {
        json_t *o = json_array_get(list, i);
        size_t first = placed_at(f, i);
        json_t *place = first < i ? json_incref(json_object_get(json_array_get(list, first), "at"))
                                  : json_integer((json_int_t)at);
        if (json_object_set_new(o, "at", place) != 0)
            return as_fail_nomem(err);
        if (first < i)
            continue;
        at += padded(f->n_rows * width_of(&f->columns[i]));
    }
    return AS_OK;
}

static void put_pad(struct str *b, size_t n, char c)
{
    while (n-- > 0)
        str_putc(b, c);
}

/* The bytes of the values, the first ones of all before the second ones. */
static void put_planes(struct str *b, const struct columnar_column *c, size_t n)
{
    const char *bytes = c->values;
    char part[4096];
    for (size_t plane = 0; plane < sizeof(double); plane++)
        for (size_t i = 0; i < n; i += sizeof part) {
            size_t m = n - i < sizeof part ? n - i : sizeof part;
            for (size_t k = 0; k < m; k++)
                part[k] = bytes[(i + k) * sizeof(double) + plane];
            str_add(b, part, m);
        }
}

static void put_column(struct str *b, const struct columnar_column *c, size_t n)
{
    size_t size = n * width_of(c);
    if (width_of(c) == columnar_type_size(c->type)) {
        str_add(b, c->values, size);
    } else {
        const uint32_t *wide = c->values;
        uint16_t part[4096];
        for (size_t i = 0; i < n; i += AS_ARRAY_LEN(part)) {
            size_t m = n - i < AS_ARRAY_LEN(part) ? n - i : AS_ARRAY_LEN(part);
            for (size_t k = 0; k < m; k++)
                part[k] = (uint16_t)wide[i + k]; /* COLUMNAR_NO_WORD becomes 65535 */
            str_add(b, (const char *)part, m * sizeof *part);
        }
    }
    put_pad(b, padded(size) - size, '\0');
}

as_status columnar_write(const struct columnar *f, struct str *ret, struct as_err *err)
{
    JSON_AUTO header = header_json(f);
    if (!header)
        return as_fail(err, AS_E_INVAL, "a name or a word is not UTF-8, or memory is out");
    size_t room = padded(json_dumpb(header, NULL, 0, JSON_COMPACT));
    if (room > UINT32_MAX)
        return as_fail(err, AS_E_TOO_LARGE, "the words of all columns need %zu bytes", room);
    as_status st = set_offsets(header, f, HEAD_SIZE + room, err);
    if (st != AS_OK)
        return st;
    AS_AUTO(as_freep) char *text = json_dumps(header, JSON_COMPACT);
    if (!text)
        return as_fail_nomem(err);
    const uint32_t lengths[2] = {(uint32_t)room, 0};
    size_t n = strlen(text);
    str_add(ret, magic, sizeof magic);
    str_add(ret, (const char *)lengths, sizeof lengths);
    str_add(ret, text, n);
    put_pad(ret, room - n, ' ');
    for (size_t i = 0; i < f->n_columns; i++) {
        if (placed_at(f, i) < i)
            continue;
        if (is_planar(f, &f->columns[i])) /* of 8 bytes each: no padding */
            put_planes(ret, &f->columns[i], f->n_rows);
        else
            put_column(ret, &f->columns[i], f->n_rows);
    }
    return str_check(ret, err);
}

/* ---- read ---- */

struct reading {
    const char *bytes;
    size_t len;
    struct arena *a;
};

static as_status read_words(struct reading *r, const json_t *list, struct columnar_column *ret,
                            struct as_err *err)
{
    size_t n = json_array_size(list);
    const char **words = arena_alloc(r->a, n + 1, sizeof *words);
    if (!words)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        const json_t *word = json_array_get(list, i);
        if (!json_is_string(word))
            return as_fail(err, AS_E_INVAL, "column '%s': word %zu is %s, expected a string",
                           ret->name, i, json_type_name(word));
        if (!(words[i] = arena_strdup(r->a, json_string_value(word))))
            return as_fail_nomem(err);
    }
    ret->words = words;
    ret->n_words = n;
    return AS_OK;
}

static as_status read_indices(struct reading *r, const char *at, size_t width, size_t n,
                              struct columnar_column *ret, struct as_err *err)
{
    uint32_t *wide = arena_alloc(r->a, n + 1, sizeof *wide);
    if (!wide)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        uint16_t narrow = 0;
        if (width == 4) {
            memcpy(&wide[i], at + 4 * i, 4);
        } else {
            memcpy(&narrow, at + 2 * i, 2);
            wide[i] = narrow == UINT16_MAX ? COLUMNAR_NO_WORD : narrow;
        }
        if (wide[i] != COLUMNAR_NO_WORD && wide[i] >= ret->n_words)
            return as_fail(err, AS_E_INVAL, "column '%s': row %zu has word %u of %zu", ret->name, i,
                           (unsigned)wide[i], ret->n_words);
    }
    ret->values = wide;
    return AS_OK;
}

static as_status read_planes(struct reading *r, const char *at, size_t n,
                             struct columnar_column *ret, struct as_err *err)
{
    char *values = arena_alloc(r->a, n + 1, sizeof(double));
    if (!values)
        return as_fail_nomem(err);
    for (size_t plane = 0; plane < sizeof(double); plane++)
        for (size_t i = 0; i < n; i++)
            values[i * sizeof(double) + plane] = at[plane * n + i];
    ret->values = values;
    return AS_OK;
}

static as_status read_column(struct reading *r, const json_t *o, size_t n_rows,
                             struct columnar_column *ret, struct as_err *err)
{
    struct json_fields f;
    const char *name = NULL;
    int type = 0;
    int64_t at = 0, width = 0;
    bool has_planes = false;
    json_t *words = NULL;
    as_status st = json_fields_init(&f, o, "/columns", err);
    if (st == AS_OK)
        st = json_fields_str(&f, "name", JSON_REQUIRED, &name, err);
    if (st == AS_OK)
        st = json_fields_word(&f, "type", JSON_REQUIRED, type_words, &type, err);
    if (st == AS_OK)
        st = json_fields_i64(&f, "at", JSON_REQUIRED, 0, (int64_t)r->len, &at, err);
    bool is_dict = type == COLUMNAR_DICT;
    if (st == AS_OK)
        st = json_fields_i64(&f, "width", is_dict ? JSON_REQUIRED : JSON_OPTIONAL, 2, 4, &width,
                             err);
    if (st == AS_OK)
        st = json_fields_array(&f, "words", is_dict ? JSON_REQUIRED : JSON_OPTIONAL, &words, err);
    if (st == AS_OK)
        st = json_fields_bool(&f, "planes", JSON_OPTIONAL, &has_planes, err);
    if (st != AS_OK)
        return st;
    ret->type = (columnar_type)type;
    if (!(ret->name = arena_strdup(r->a, name)))
        return as_fail_nomem(err);
    size_t size = is_dict ? (size_t)width : columnar_type_size(ret->type);
    if (size == 3 || at % 8 != 0 || n_rows > (r->len - (size_t)at) / size)
        return as_fail(err, AS_E_INVAL,
                       "column '%s': %zu values of %zu bytes at %lld do not fit a file of %zu",
                       name, n_rows, size, (long long)at, r->len);
    if (has_planes && ret->type != COLUMNAR_F64)
        return as_fail(err, AS_E_INVAL, "column '%s' has planes, and is no f64", name);
    if (has_planes)
        return read_planes(r, r->bytes + at, n_rows, ret, err);
    if (!is_dict) {
        ret->values = r->bytes + at;
        return AS_OK;
    }
    st = read_words(r, words, ret, err);
    return st == AS_OK ? read_indices(r, r->bytes + at, size, n_rows, ret, err) : st;
}

static as_status read_columns(struct reading *r, const json_t *list, struct columnar *ret,
                              struct as_err *err)
{
    size_t n = json_array_size(list);
    if (n > COLUMNAR_MAX_COLUMNS)
        return as_fail(err, AS_E_TOO_LARGE, "%zu columns, expected at most %d", n,
                       COLUMNAR_MAX_COLUMNS);
    struct columnar_column *columns = arena_alloc(r->a, n + 1, sizeof *columns);
    if (!columns)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        as_status st = read_column(r, json_array_get(list, i), ret->n_rows, &columns[i], err);
        if (st != AS_OK)
            return st;
    }
    ret->columns = columns;
    ret->n_columns = n;
    return AS_OK;
}

as_status columnar_parse(const char *bytes, size_t len, struct arena *a, struct columnar *ret,
                         struct as_err *err)
{
    struct reading r = {bytes, len, a};
    struct columnar table = {0};
    struct json_fields f;
    uint32_t room = 0;
    JSON_AUTO header = NULL;
    json_t *columns = NULL;
    const char *version = NULL;
    int64_t rows = 0;
    if (len < HEAD_SIZE || memcmp(bytes, magic, sizeof magic) != 0)
        return as_fail(err, AS_E_INVAL, "the file does not begin with ASYCOLS1");
    memcpy(&room, bytes + sizeof magic, sizeof room);
    if (room > len - HEAD_SIZE)
        return as_fail(err, AS_E_INVAL, "the header has %u bytes, the file has %zu", (unsigned)room,
                       len);
    as_status st = json_parse_file(bytes + HEAD_SIZE, room, &header, err);
    if (st == AS_OK)
        st = json_fields_init(&f, header, "", err);
    if (st == AS_OK)
        st = json_fields_i64(&f, "rows", JSON_REQUIRED, 0, UINT32_MAX, &rows, err);
    if (st == AS_OK)
        st = json_fields_str(&f, "version", JSON_REQUIRED, &version, err);
    if (st == AS_OK)
        st = json_fields_bool(&f, "whole", JSON_REQUIRED, &table.is_whole, err);
    if (st == AS_OK)
        st = json_fields_array(&f, "columns", JSON_REQUIRED, &columns, err);
    if (st != AS_OK)
        return st;
    table.n_rows = (size_t)rows;
    if (!(table.version = arena_strdup(a, version)))
        return as_fail_nomem(err);
    if ((st = read_columns(&r, columns, &table, err)) == AS_OK)
        *ret = table;
    return st;
}

const struct columnar_column *columnar_find(const struct columnar *f, const char *name)
{
    for (size_t i = 0; i < f->n_columns; i++)
        if (as_streq(f->columns[i].name, name))
            return &f->columns[i];
    return NULL;
}
