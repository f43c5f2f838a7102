/* The record of what preprocessing learnt, as JSON.
 *
 * Writing and reading go through the columns in the same order: numeric columns, then categorical
 * ones, each in the order of the file. `at` counts inputs (or slots), `seen` moves along the values
 * of all columns.
 *
 * The reader trusts nothing that follows from dataset_info: names, indices and sizes must have
 * exactly the expected value, so that the record of another data set is refused at the first field
 * that differs. It takes over only what was learnt: means, scales, fills, and which values were
 * seen. json.h writes numbers so that they read back as the same double, and each float32 is one;
 * this is why encoded rows have the same bits. */
#include "data/preprocess/record.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/preprocess/piecewise.h"
#include "data/preprocess/record_priv.h"
#include "data/preprocess/table.h"

/* ---- writing ---- */

static json_t *floats_to_json(const float *v, size_t n)
{
    JSON_AUTO list = json_array();
    for (size_t i = 0; i < n; i++)
        if (json_array_append_new(list, json_number_new((double)v[i])) != 0)
            return NULL;
    return as_steal(list);
}

/* What a numeric feature is: its column, kind and part. `c` is NULL if the columns have no names;
 * `index` is then the name. */
struct feature_name {
    const char *column, *kind;
    const char *part; /* dates: dataset_part_names, else NULL */
    char index[24];
};

static void name_feature(const struct dataset_column *c, size_t i, struct feature_name *ret)
{
    (void)snprintf(ret->index, sizeof ret->index, "%zu", i);
    bool date = c && c->part != DATASET_CELL;
    ret->column = c ? c->name : ret->index;
    ret->kind = date ? "date" : "numeric";
    ret->part = date ? dataset_part_names[c->part] : NULL;
}

/* Where a feature is: among the inputs of a model, and among means and scales. They differ behind a
 * number that became several values. */
struct place {
    size_t input, scale;
};

/* The inputs that the numeric input i becomes. */
static size_t values_of(const struct preprocess *p, size_t i)
{
    return p->bins && p->n_edges[i] ? p->bins : 1;
}

/* A numeric feature: its input, mean and scale; its fill and indicator if values are missing, else
 * its median if it is known. */
static json_t *numeric_column(const struct preprocess *p, const struct feature_name *name,
                              bool missing, size_t column, const struct place *at)
{
    size_t i = at->scale, n_edges = p->bins ? p->n_edges[i] : 0;
    JSON_AUTO obj =
        json_pack("{s:s, s:s, s:I, s:o, s:o}", "column", name->column, "kind", name->kind, "input",
                  (json_int_t)at->input, "mean", json_number_new((double)p->mean[i]), "scale",
                  json_number_new((double)p->scale[i]));
    if (n_edges > 0 &&
        (!obj || json_object_set_new(obj, "edges",
                                     floats_to_json(p->edges + i * (p->bins + 1), n_edges)) != 0))
        return NULL;
    if (name->part && (!obj || json_object_set_new(obj, "part", json_string(name->part)) != 0))
        return NULL;
    bool known = p->median && !isnan(p->median[column]);
    if (known && (!obj || json_object_set_new(obj, "median",
                                              json_number_new((double)p->median[column])) != 0))
        return NULL;
    if (missing &&
        (!obj ||
         json_object_set_new(obj, "missing", json_number_new((double)p->fill[column])) != 0 ||
         json_object_set_new(obj, "indicator",
                             json_integer((json_int_t)(at->input + values_of(p, i)))) != 0))
        return NULL;
    return as_steal(obj);
}

/* A categorical column: its values in the order of their slots, with null for a value that no
 * training row has (it counts as "other"); then the slots of "other" and of missing. */
static json_t *categorical_column(const struct preprocess *p, const struct dataset_column *c,
                                  const char *seen, size_t at)
{
    JSON_AUTO values = json_array();
    for (size_t i = 0; i < c->n_values; i++)
        if (json_array_append_new(values, seen[i] ? json_string(c->values[i]) : json_null()) != 0)
            return NULL;
    size_t other = at + c->n_values, missing = other + 1;
    JSON_AUTO obj = json_pack("{s:s, s:s, s:I, s:O, s:I}", "column", c->name, "kind", "categorical",
                              p->n_codes ? "code" : "input", (json_int_t)at, "values", values,
                              "other", (json_int_t)other);
    if (c->n_missing &&
        (!obj || json_object_set_new(obj, "missing", json_integer((json_int_t)missing)) != 0))
        return NULL;
    return as_steal(obj);
}

/* A column of hashed texts: nothing was learnt about it. */
static json_t *text_column(const struct dataset_column *c, size_t at)
{
    return json_pack("{s:s, s:s, s:I, s:I}", "column", c->name, "kind", "text", "input",
                     (json_int_t)at, "buckets", (json_int_t)c->n_parts);
}

static json_t *table_record(const struct preprocess *p, const struct dataset_info *info)
{
    JSON_AUTO list = json_array();
    struct place place = {0};
    for (size_t i = 0; i < info->n_features; i++) {
        struct feature_name name;
        const struct dataset_column *c = info->columns ? &info->columns[i] : NULL;
        if (c && c->categorical)
            continue;
        bool text = c && c->part == DATASET_HASHED, missing = c && c->n_missing;
        name_feature(c, i, &name);
        json_t *item =
            text ? text_column(c, place.input) : numeric_column(p, &name, missing, i, &place);
        if (json_array_append_new(list, item) != 0)
            return NULL;
        place.input += text ? c->n_parts : values_of(p, place.scale) + (size_t)missing;
        place.scale += text ? c->n_parts : 1 + (size_t)missing;
        i += text ? c->n_parts - 1 : 0;
    }
    size_t at = p->n_codes ? 0 : place.input;
    const char *seen = p->seen;
    for (size_t i = 0; info->columns && i < info->n_features; i++) {
        const struct dataset_column *c = &info->columns[i];
        if (!c->categorical)
            continue;
        if (json_array_append_new(list, categorical_column(p, c, seen, at)) != 0)
            return NULL;
        at += dataset_column_slots(c);
        seen += c->n_values;
    }
    return as_steal(list);
}

static json_t *image_record(const struct preprocess *p, const struct dataset_info *info)
{
    return json_pack("{s:I, s:I, s:I, s:o, s:o}", "height", (json_int_t)info->height, "width",
                     (json_int_t)info->width, "channels", (json_int_t)info->channels, "mean",
                     floats_to_json(p->mean, p->n_scales), "scale",
                     floats_to_json(p->scale, p->n_scales));
}

static json_t *text_record(const struct preprocess *p, const struct dataset_info *info)
{
    return json_pack("{s:I, s:I, s:I}", "context", (json_int_t)p->context, "vocab",
                     (json_int_t)info->n_outputs, "training_tokens", (json_int_t)p->n_tokens);
}

json_t *preprocess_to_json(const struct preprocess *p, const struct dataset_info *info)
{
    JSON_AUTO obj = json_pack("{s:s, s:b, s:I, s:I}", "input", dataset_input_name(p->input),
                              "standardize", (int)p->standardize, "training_rows",
                              (json_int_t)p->n_train, "validation_rows", (json_int_t)p->n_held);
    int bad = obj == NULL;
    if (!bad && p->bins > 0)
        bad |= json_object_set_new(obj, "bins", json_integer((json_int_t)p->bins));
    if (!bad && p->input == DATASET_TABLE)
        bad |= json_object_set_new(obj, "columns", table_record(p, info));
    if (!bad && p->input == DATASET_IMAGE)
        bad |= json_object_set_new(obj, "image", image_record(p, info));
    if (!bad && p->input == DATASET_TOKEN_TEXT)
        bad |= json_object_set_new(obj, "text", text_record(p, info));
    if (!bad && p->n_targets > 0)
        bad |= json_object_set_new(obj, "target", record_target_new(p));
    return bad ? NULL : as_steal(obj);
}

/* ---- reading ---- */

static as_status out_of_memory(struct as_err *err)
{
    return as_fail(err, AS_E_NOMEM, "out of memory for the record of preprocessing");
}

/* Read a field that must be this whole number. */
static as_status expect_size(struct json_fields *f, const char *name, size_t expected,
                             struct as_err *err)
{
    int64_t found = -1;
    as_status st = json_fields_i64(f, name, JSON_REQUIRED, 0, INT64_MAX, &found, err);
    if (st != AS_OK || (size_t)found == expected)
        return st;
    return as_fail_at(err, AS_E_INVAL, f->pointer, "%s/%s: found %" PRId64 ", expected %zu",
                      f->pointer, name, found, expected);
}

/* Read a field that must be this text. */
static as_status expect_text(struct json_fields *f, const char *name, const char *expected,
                             struct as_err *err)
{
    const char *found = NULL;
    as_status st = json_fields_str(f, name, JSON_REQUIRED, &found, err);
    if (st != AS_OK || as_streq(found, expected))
        return st;
    return as_fail_at(err, AS_E_INVAL, f->pointer, "%s/%s: found '%.60s', expected '%.60s'",
                      f->pointer, name, found, expected);
}

/* Read a float32; a scale must be above 0. */
static as_status read_float(struct json_fields *f, const char *name, bool scale, float *ret,
                            struct as_err *err)
{
    double v = 0;
    as_status st =
        json_fields_double(f, name, JSON_REQUIRED, -(double)FLT_MAX, (double)FLT_MAX, &v, err);
    if (st != AS_OK)
        return st;
    if (scale && !((float)v > 0))
        return as_fail_at(err, AS_E_INVAL, f->pointer, "%s/%s: found %g, expected more than 0",
                          f->pointer, name, v);
    *ret = (float)v;
    return AS_OK;
}

/* Read a list of n numbers, each from `min` to `max`. */
static as_status read_numbers(struct json_fields *f, const char *name, size_t n, double min,
                              double max, double *ret, struct as_err *err)
{
    json_t *list = NULL;
    as_status st = json_fields_array(f, name, JSON_REQUIRED, &list, err);
    if (st != AS_OK)
        return st;
    if (json_array_size(list) != n)
        return as_fail_at(err, AS_E_INVAL, f->pointer, "%s/%s: found %zu numbers, expected %zu",
                          f->pointer, name, json_array_size(list), n);
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(list, i);
        double v = json_number_value(item);
        if (!json_is_number(item))
            return as_fail_at(err, AS_E_INVAL, f->pointer, "%s/%s/%zu: found %s, expected a number",
                              f->pointer, name, i, json_type_name(item));
        if (!(v >= min && v <= max))
            return as_fail_at(err, AS_E_INVAL, f->pointer,
                              "%s/%s/%zu: found %g, expected a number from %g to %g", f->pointer,
                              name, i, v, min, max);
        ret[i] = v;
    }
    return AS_OK;
}

as_status record_read_moments(struct json_fields *f, size_t n, double least_scale, double max,
                              double *mean, double *scale, struct as_err *err)
{
    as_status st = read_numbers(f, "mean", n, -max, max, mean, err);
    if (st != AS_OK)
        return st;
    return read_numbers(f, "scale", n, least_scale, max, scale, err);
}

/* Begin to read the record of a column, whose name and kind are known. */
static as_status begin_column(struct json_fields *f, const json_t *obj, const char *pointer,
                              const char *column, const char *kind, struct as_err *err)
{
    as_status st = json_fields_init(f, obj, pointer, err);
    if (st != AS_OK)
        return st;
    st = expect_text(f, "column", column, err);
    return st != AS_OK ? st : expect_text(f, "kind", kind, err);
}

/* Where what was learnt of a numeric feature goes. */
struct learnt {
    float *mean, *scale;
    float *fill;   /* NULL: no value is missing */
    float *median; /* NULL: the column has none */
    float *edges;  /* [bins + 1]; NULL: the column is not cut */
    uint16_t *n_edges;
    size_t bins;
};

/* Edges rise by a width that piecewise_pieces() can divide by. A column that is cut is not
 * standardised. */
static as_status read_edges(struct json_fields *f, const struct learnt *ret, struct as_err *err)
{
    json_t *list = NULL;
    as_status st = json_fields_array(f, "edges", JSON_REQUIRED, &list, err);
    if (st != AS_OK)
        return st;
    size_t n = json_array_size(list);
    if (n < 1 || n > ret->bins + 1)
        return as_fail_at(err, AS_E_INVAL, f->pointer,
                          "%s/edges: found %zu numbers, expected 1 to %zu", f->pointer, n,
                          ret->bins + 1);
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(list, i);
        float v = (float)json_number_value(item);
        bool rises = i == 0 || v - ret->edges[i - 1] >= FLT_MIN;
        if (!json_is_number(item) || !(fabsf(v) <= PIECEWISE_LARGEST_EDGE) || !rises)
            return as_fail_at(err, AS_E_INVAL, f->pointer,
                              "%s/edges/%zu: expected a number above the one before it, and at "
                              "most %g from 0",
                              f->pointer, i, (double)PIECEWISE_LARGEST_EDGE);
        ret->edges[i] = v;
    }
    *ret->n_edges = (uint16_t)n;
    if (*ret->mean < 0 || *ret->mean > 0 || *ret->scale < 1 || *ret->scale > 1)
        return as_fail_at(err, AS_E_INVAL, f->pointer,
                          "%s: found mean %g and scale %g beside edges, expected 0 and 1",
                          f->pointer, (double)*ret->mean, (double)*ret->scale);
    return AS_OK;
}

static as_status read_numeric(const json_t *obj, const char *pointer,
                              const struct feature_name *name, bool missing, size_t at,
                              const struct learnt *ret, struct as_err *err)
{
    struct json_fields f;
    as_status st = begin_column(&f, obj, pointer, name->column, name->kind, err);
    if (st != AS_OK)
        return st;
    if (name->part)
        st = expect_text(&f, "part", name->part, err);
    if (st != AS_OK)
        return st;
    st = expect_size(&f, "input", at, err);
    if (st != AS_OK)
        return st;
    st = read_float(&f, "mean", false, ret->mean, err);
    if (st != AS_OK)
        return st;
    st = read_float(&f, "scale", true, ret->scale, err);
    if (st != AS_OK)
        return st;
    if (ret->median && json_object_get(obj, "median")) {
        st = read_float(&f, "median", false, ret->median, err);
        if (st != AS_OK)
            return st;
    }
    if (ret->edges && (st = read_edges(&f, ret, err)) != AS_OK)
        return st;
    if (missing) {
        st = read_float(&f, "missing", false, ret->fill, err);
        if (st != AS_OK)
            return st;
        st = expect_size(&f, "indicator", at + (ret->edges ? ret->bins : 1), err);
        if (st != AS_OK)
            return st;
    }
    return json_fields_end(&f, err);
}

static as_status read_text_column(const json_t *obj, const char *pointer,
                                  const struct dataset_column *c, size_t at, struct as_err *err)
{
    struct json_fields f;
    as_status st = begin_column(&f, obj, pointer, c->name, "text", err);
    if (st != AS_OK)
        return st;
    st = expect_size(&f, "input", at, err);
    if (st != AS_OK)
        return st;
    st = expect_size(&f, "buckets", c->n_parts, err);
    return st != AS_OK ? st : json_fields_end(&f, err);
}

/* Read the values of a column: each must be its name or null. */
static as_status read_values(struct json_fields *f, const struct dataset_column *c, char *seen,
                             struct as_err *err)
{
    json_t *list = NULL;
    as_status st = json_fields_array(f, "values", JSON_REQUIRED, &list, err);
    if (st != AS_OK)
        return st;
    if (json_array_size(list) != c->n_values)
        return as_fail_at(err, AS_E_INVAL, f->pointer, "%s/values: found %zu, expected %zu",
                          f->pointer, json_array_size(list), c->n_values);
    for (size_t i = 0; i < c->n_values; i++) {
        const json_t *item = json_array_get(list, i);
        seen[i] = !json_is_null(item);
        if (seen[i] && !as_streq(json_string_value(item), c->values[i]))
            return as_fail_at(err, AS_E_INVAL, f->pointer,
                              "%s/values/%zu: found another value, expected '%.60s' or null",
                              f->pointer, i, c->values[i]);
    }
    return AS_OK;
}

static as_status read_categorical(const json_t *obj, const char *pointer,
                                  const struct dataset_column *c, bool codes, size_t at, char *seen,
                                  struct as_err *err)
{
    struct json_fields f;
    as_status st = begin_column(&f, obj, pointer, c->name, "categorical", err);
    if (st != AS_OK)
        return st;
    st = expect_size(&f, codes ? "code" : "input", at, err);
    if (st != AS_OK)
        return st;
    st = read_values(&f, c, seen, err);
    if (st != AS_OK)
        return st;
    st = expect_size(&f, "other", at + c->n_values, err);
    if (st != AS_OK)
        return st;
    if (c->n_missing) {
        st = expect_size(&f, "missing", at + c->n_values + 1, err);
        if (st != AS_OK)
            return st;
    }
    return json_fields_end(&f, err);
}

/* Read the numeric columns, which come first; *ret_next is the index of the item after them. */
static as_status read_numeric_columns(const json_t *list, const char *pointer,
                                      const struct dataset_info *info, struct preprocess *p,
                                      size_t *ret_next, struct as_err *err)
{
    size_t next = 0;
    struct place at = {0};
    for (size_t i = 0; i < info->n_features; i++) {
        char item[AS_ERR_POINTER_MAX];
        struct feature_name name;
        const struct dataset_column *c = info->columns ? &info->columns[i] : NULL;
        if (c && c->categorical)
            continue;
        name_feature(c, i, &name);
        json_pointer_index(pointer, next, item);
        bool text = c && c->part == DATASET_HASHED, missing = c && c->n_missing;
        const json_t *obj = json_array_get(list, next);
        bool cut = p->bins && dataset_column_is_number(c);
        const struct learnt ret = {.mean = &p->mean[at.scale],
                                   .scale = &p->scale[at.scale],
                                   .fill = missing ? &p->fill[i] : NULL,
                                   .median =
                                       c && preprocess_column_is_complete(c) ? &p->median[i] : NULL,
                                   .edges = cut ? p->edges + at.scale * (p->bins + 1) : NULL,
                                   .n_edges = cut ? &p->n_edges[at.scale] : NULL,
                                   .bins = p->bins};
        as_status st = text ? read_text_column(obj, item, c, at.input, err)
                            : read_numeric(obj, item, &name, missing, at.input, &ret, err);
        if (st != AS_OK)
            return st;
        at.input += text ? c->n_parts : (cut ? p->bins : 1) + (size_t)missing;
        at.scale += text ? c->n_parts : 1 + (size_t)missing;
        i += text ? c->n_parts - 1 : 0;
        next++;
    }
    *ret_next = next;
    return AS_OK;
}

static as_status read_categorical_columns(const json_t *list, const char *pointer,
                                          const struct dataset_info *info, size_t next,
                                          struct preprocess *p, struct as_err *err)
{
    size_t at = p->n_codes ? 0 : preprocess_inputs(p, info) - dataset_category_slots(info);
    char *seen = p->seen;
    for (size_t i = 0; info->columns && i < info->n_features; i++) {
        const struct dataset_column *c = &info->columns[i];
        char item[AS_ERR_POINTER_MAX];
        if (!c->categorical)
            continue;
        json_pointer_index(pointer, next, item);
        as_status st =
            read_categorical(json_array_get(list, next), item, c, p->n_codes > 0, at, seen, err);
        if (st != AS_OK)
            return st;
        at += dataset_column_slots(c);
        seen += c->n_values;
        next++;
    }
    return AS_OK;
}

/* Allocate means 0 and scales 1; inputs that the record does not name keep them. */
static as_status alloc_scales(struct preprocess *p, size_t n, struct as_err *err)
{
    p->n_scales = n;
    p->mean = as_calloc(n, sizeof *p->mean);
    p->scale = as_calloc(n, sizeof *p->scale);
    if (!p->mean || !p->scale)
        return out_of_memory(err);
    for (size_t i = 0; i < n; i++)
        p->scale[i] = 1;
    return AS_OK;
}

/* The items of the record: one for each feature, but one for all features of a text. */
static size_t items_of(const struct dataset_info *info)
{
    size_t n = 0;
    for (size_t i = 0; i < info->n_features; i++)
        n += !info->columns || info->columns[i].part != DATASET_HASHED ||
             info->columns[i].index == 0;
    return n;
}

static as_status read_columns(struct json_fields *f, const struct dataset_info *info,
                              struct preprocess *p, struct as_err *err)
{
    json_t *list = NULL;
    char pointer[AS_ERR_POINTER_MAX];
    size_t next = 0, n_categorical = dataset_categorical_columns(info);
    int64_t bins = 0;
    as_status st = json_fields_array(f, "columns", JSON_REQUIRED, &list, err);
    if (st != AS_OK)
        return st;
    json_pointer_child(f->pointer, "columns", pointer);
    size_t n_items = items_of(info);
    if (json_array_size(list) != n_items)
        return as_fail_at(err, AS_E_INVAL, pointer, "%s: found %zu columns, expected %zu", pointer,
                          json_array_size(list), n_items);
    const json_t *last = json_array_get(list, n_items - 1);
    p->n_codes = json_object_get(last, "code") ? n_categorical : 0;
    st = alloc_scales(p, preprocess_inputs(p, info), err);
    if (st == AS_OK)
        st = json_fields_i64(f, "bins", JSON_OPTIONAL, 2, PREPROCESS_MAX_BINS, &bins, err);
    if (st == AS_OK && bins > 0)
        st = piecewise_alloc(info, (size_t)bins, p, err);
    if (st != AS_OK)
        return st;
    if (!preprocess_table_is_plain(info)) {
        st = preprocess_table_alloc(info, p, err);
        if (st != AS_OK)
            return st;
    }
    if (info->columns) {
        st = preprocess_table_alloc_medians(info, p, err);
        if (st != AS_OK)
            return st;
    }
    st = read_numeric_columns(list, pointer, info, p, &next, err);
    if (st != AS_OK)
        return st;
    return read_categorical_columns(list, pointer, info, next, p, err);
}

static as_status read_image(struct json_fields *parent, const struct dataset_info *info,
                            struct preprocess *p, struct as_err *err)
{
    json_t *obj = NULL;
    char pointer[AS_ERR_POINTER_MAX];
    struct json_fields f;
    size_t n = info->channels;
    AS_AUTO(as_freep) double *moments = as_calloc(2 * n, sizeof *moments);
    if (!moments)
        return out_of_memory(err);
    as_status st = json_fields_object(parent, "image", JSON_REQUIRED, &obj, err);
    if (st != AS_OK)
        return st;
    json_pointer_child(parent->pointer, "image", pointer);
    st = json_fields_init(&f, obj, pointer, err);
    if (st != AS_OK)
        return st;
    const struct {
        const char *name;
        size_t value;
    } sizes[] = {{"height", info->height}, {"width", info->width}, {"channels", n}};
    for (size_t i = 0; i < AS_ARRAY_LEN(sizes); i++) {
        st = expect_size(&f, sizes[i].name, sizes[i].value, err);
        if (st != AS_OK)
            return st;
    }
    st = record_read_moments(&f, n, (double)FLT_TRUE_MIN, (double)FLT_MAX, moments, moments + n,
                             err);
    if (st != AS_OK)
        return st;
    st = alloc_scales(p, n, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < n; i++) {
        p->mean[i] = (float)moments[i];
        p->scale[i] = (float)moments[n + i];
    }
    return json_fields_end(&f, err);
}

static as_status read_text(struct json_fields *parent, const struct dataset_info *info,
                           struct preprocess *p, struct as_err *err)
{
    json_t *obj = NULL;
    char pointer[AS_ERR_POINTER_MAX];
    struct json_fields f;
    int64_t context = 0, tokens = 0;
    as_status st = json_fields_object(parent, "text", JSON_REQUIRED, &obj, err);
    if (st != AS_OK)
        return st;
    json_pointer_child(parent->pointer, "text", pointer);
    st = json_fields_init(&f, obj, pointer, err);
    if (st != AS_OK)
        return st;
    st = json_fields_i64(&f, "context", JSON_REQUIRED, 1, (int64_t)DATASET_MAX_ROWS, &context, err);
    if (st != AS_OK)
        return st;
    st = expect_size(&f, "vocab", info->n_outputs, err);
    if (st != AS_OK)
        return st;
    st = json_fields_i64(&f, "training_tokens", JSON_REQUIRED, 1, (int64_t)DATASET_MAX_ROWS,
                         &tokens, err);
    if (st != AS_OK)
        return st;
    p->context = (size_t)context;
    p->n_tokens = (size_t)tokens;
    return json_fields_end(&f, err);
}

static as_status read_record(struct json_fields *f, const struct dataset_info *info,
                             struct preprocess *p, struct as_err *err)
{
    int64_t training = 0, held = 0, max = (int64_t)DATASET_MAX_ROWS;
    as_status st = expect_text(f, "input", dataset_input_name(info->input), err);
    if (st != AS_OK)
        return st;
    st = json_fields_bool(f, "standardize", JSON_REQUIRED, &p->standardize, err);
    if (st != AS_OK)
        return st;
    st = json_fields_i64(f, "training_rows", JSON_REQUIRED, 1, max, &training, err);
    if (st != AS_OK)
        return st;
    st = json_fields_i64(f, "validation_rows", JSON_REQUIRED, 0, max, &held, err);
    if (st != AS_OK)
        return st;
    p->input = info->input;
    p->n_train = (size_t)training;
    p->n_held = (size_t)held;
    st = info->input == DATASET_TABLE   ? read_columns(f, info, p, err)
         : info->input == DATASET_IMAGE ? read_image(f, info, p, err)
                                        : read_text(f, info, p, err);
    if (st != AS_OK)
        return st;
    if (info->task == DATASET_REGRESSION) {
        st = record_target_read(f, info, p, err);
        if (st != AS_OK)
            return st;
    }
    return json_fields_end(f, err);
}

as_status preprocess_from_json(const json_t *obj, const char *pointer,
                               const struct dataset_info *info, struct preprocess *ret,
                               struct as_err *err)
{
    struct json_fields f;
    AS_AUTO(preprocess_done) struct preprocess p = {0};
    as_status st = json_fields_init(&f, obj, pointer, err);
    if (st != AS_OK)
        return st;
    st = read_record(&f, info, &p, err);
    if (st != AS_OK)
        return st;
    *ret = p;
    p = (struct preprocess){0};
    return AS_OK;
}
