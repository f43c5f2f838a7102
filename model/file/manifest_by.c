/* The `combine` of kind by: a column, and the input that predicts the rows with each of its values.
 *
 * A value is written as a text, because people read and write manifests. Rows have numbers: the
 * index of a category, a number, the parts of a date. So each value is read here as the column's
 * cells are (data/column.h), and compared with the features of a row, bit by bit. Then 1 and 1.0
 * are one value, and so are two ways to write a date. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "data/column.h"
#include "data/dataset_view.h"
#include "model/file/model_file_priv.h"

#define AT "/combine/buckets"
#define VALUE_MAX ((size_t)1024)           /* bytes */
#define WIDTH_MAX ((size_t)DATASET_HASHED) /* a date has at most a feature for each part */

/* -0 and 0 are one number. */
static void normalize(float *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i] += 0.0F;
}

static int compare_buckets(const void *a, const void *b)
{
    const struct model_bucket *x = a, *y = b;
    return memcmp(x->features, y->features, x->width * sizeof *x->features);
}

size_t model_combine_input(const struct model_combine *c, const float *row)
{
    float features[WIDTH_MAX];
    if (c->n_buckets == 0)
        return c->other;
    struct model_bucket key = {.width = c->buckets[0].width, .features = features};
    memcpy(features, row + c->column, key.width * sizeof *features);
    normalize(features, key.width);
    const struct model_bucket *found =
        bsearch(&key, c->buckets, c->n_buckets, sizeof key, compare_buckets);
    return found ? found->input : c->other;
}

/* ---- reading ---- */

/* An input; the members say how many there are. */
static as_status read_input(struct json_fields *f, const char *name, const struct model_file *file,
                            size_t *ret, struct as_err *err)
{
    int64_t input = 0, last = (int64_t)file->combine.n_inputs - 1;
    as_status st = json_fields_i64(f, name, JSON_REQUIRED, 0, last, &input, err);
    *ret = (size_t)input;
    return st == AS_OK ? AS_OK : model_manifest_against(st, "the inputs of /members", err);
}

/* The first feature of the column. */
static as_status find_column(const struct dataset_info *info, const char *name, size_t *ret,
                             struct as_err *err)
{
    size_t column = info->columns ? dataset_find_column(info, name) : SIZE_MAX;
    if (column == SIZE_MAX)
        return as_fail_at(err, AS_E_INVAL, "/combine/column",
                          "/combine/column: found '%.80s', expected a column that the model takes: "
                          "one of /dataset/columns, which neither hold rows out nor weigh them",
                          name);
    if (info->columns[column].part == DATASET_HASHED)
        return as_fail_at(err, AS_E_INVAL, "/combine/column",
                          "/combine/column: '%.80s' is a column of texts, expected one of "
                          "categories, numbers or dates",
                          name);
    *ret = column;
    return AS_OK;
}

/* The features of a row with this text in the column. */
static as_status read_value(const struct dataset_column *c, const char *text, float *ret,
                            struct as_err *err)
{
    struct column_cell cell = column_cell_of_text(text, strlen(text));
    if (cell.missing)
        return as_fail(err, AS_E_INVAL,
                       "found '%.60s', a missing value: rows without one have that of 'other'",
                       text);
    as_status st = column_values_of(c, &cell, ret, err);
    if (st != AS_OK)
        return st;
    if (c->categorical && (size_t)ret[0] == c->n_values)
        return as_fail(err, AS_E_INVAL,
                       "found '%.60s', expected a category of '%.60s' in "
                       "/dataset/columns",
                       text, c->name);
    normalize(ret, dataset_column_width(c));
    return AS_OK;
}

static as_status read_bucket(const json_t *obj, size_t i, struct model_file *file,
                             struct as_err *err)
{
    struct json_fields f;
    struct model_combine *c = &file->combine;
    struct model_bucket *b = &file->combine_buckets[i];
    const struct dataset_column *column = &file->info.columns[c->column];
    float *features = file->bucket_features + i * dataset_column_width(column);
    char at[AS_ERR_POINTER_MAX], value_at[AS_ERR_POINTER_MAX];
    json_pointer_index(AT, i, at);
    json_pointer_child(at, "value", value_at);
    as_status st = json_fields_init(&f, obj, at, err);
    if (st == AS_OK)
        st = json_fields_text(&f, "value", JSON_REQUIRED, 1, VALUE_MAX, &b->value, err);
    if (st == AS_OK)
        st = read_input(&f, "input", file, &b->input, err);
    if (st == AS_OK)
        st = json_fields_end(&f, err);
    if (st != AS_OK)
        return st;
    struct as_err why = {0};
    st = read_value(column, b->value, features, &why);
    b->width = dataset_column_width(column);
    b->features = features;
    return st == AS_OK ? AS_OK : as_fail_at(err, st, value_at, "%s: %s", value_at, why.msg);
}

/* Sort the buckets, and refuse two that are one value to a model. */
static as_status sort_buckets(struct model_file *file, struct as_err *err)
{
    struct model_bucket *b = file->combine_buckets;
    size_t n = file->combine.n_buckets;
    qsort(b, n, sizeof *b, compare_buckets);
    for (size_t i = 1; i < n; i++)
        if (compare_buckets(&b[i - 1], &b[i]) == 0)
            return as_fail_at(err, AS_E_INVAL, AT,
                              AT ": '%.60s' and '%.60s' are one value, expected each value once",
                              b[i - 1].value, b[i].value);
    return AS_OK;
}

static as_status read_buckets(const json_t *list, struct model_file *file, struct as_err *err)
{
    size_t n = json_array_size(list);
    size_t width = dataset_column_width(&file->info.columns[file->combine.column]);
    if (n > MODEL_FILE_MAX_BUCKETS)
        return as_fail_at(err, AS_E_TOO_LARGE, AT, AT ": found %zu, at most %zu", n,
                          MODEL_FILE_MAX_BUCKETS);
    file->combine_buckets = as_calloc(n, sizeof *file->combine_buckets);
    file->bucket_features = as_calloc(n * width, sizeof *file->bucket_features);
    if (!file->combine_buckets || !file->bucket_features)
        return as_fail_nomem(err);
    file->combine.buckets = file->combine_buckets;
    file->combine.n_buckets = n;
    for (size_t i = 0; i < n; i++) {
        as_status st = read_bucket(json_array_get(list, i), i, file, err);
        if (st != AS_OK)
            return st;
    }
    return sort_buckets(file, err);
}

as_status model_manifest_by(struct json_fields *f, struct model_file *file, struct as_err *err)
{
    const char *column = NULL;
    json_t *list = NULL;
    as_status st = json_fields_str(f, "column", JSON_REQUIRED, &column, err);
    if (st == AS_OK)
        st = json_fields_array(f, "buckets", JSON_REQUIRED, &list, err);
    if (st == AS_OK)
        st = read_input(f, "other", file, &file->combine.other, err);
    if (st == AS_OK)
        st = find_column(&file->info, column, &file->combine.column, err);
    return st == AS_OK ? read_buckets(list, file, err) : st;
}

/* ---- writing ---- */

/* Is the bucket of no use: its value is none that a row can have, and it has the input of the
 * others; or it is that of a bucket before it, with the same input? */
static bool is_idle(const struct dataset_column *c, const json_t *buckets, size_t i,
                    const json_t *other)
{
    float own[WIDTH_MAX], before[WIDTH_MAX];
    const json_t *bucket = json_array_get(buckets, i), *input = json_object_get(bucket, "input");
    const char *value = json_string_value(json_object_get(bucket, "value"));
    size_t size = dataset_column_width(c) * sizeof *own;
    if (!value || read_value(c, value, own, NULL) != AS_OK)
        return value && json_equal(input, other);
    for (size_t j = 0; j < i; j++) {
        const json_t *b = json_array_get(buckets, j);
        const char *text = json_string_value(json_object_get(b, "value"));
        if (text && json_equal(json_object_get(b, "input"), input) &&
            read_value(c, text, before, NULL) == AS_OK && memcmp(own, before, size) == 0)
            return true;
    }
    return false;
}

as_status model_by_tidy(const struct dataset_info *info, const json_t *combine, json_t **ret,
                        struct as_err *err)
{
    const char *name = json_string_value(json_object_get(combine, "column"));
    const json_t *buckets = json_object_get(combine, "buckets");
    const json_t *other = json_object_get(combine, "other");
    size_t column = 0;
    JSON_AUTO copy = json_copy((json_t *)combine);
    JSON_AUTO list = json_array();
    if (!copy || !list)
        return as_fail_nomem(err);
    /* a reader says what is wrong */
    bool readable = name && find_column(info, name, &column, NULL) == AS_OK;
    for (size_t i = 0; i < json_array_size(buckets); i++)
        if ((!readable || !is_idle(&info->columns[column], buckets, i, other)) &&
            json_array_append(list, json_array_get(buckets, i)) != 0)
            return as_fail_nomem(err);
    if (json_is_array(buckets) && json_object_set(copy, "buckets", list) != 0)
        return as_fail_nomem(err);
    *ret = as_steal(copy);
    return AS_OK;
}
