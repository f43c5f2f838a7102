/* The JSON form of dataset_info: the record of a data set in the database, in jobs and in the API.
 *
 * Writing omits what is the default or follows from other fields. Reading accepts records that an
 * older version wrote, and checks each relation between fields that the rest of the tree relies on:
 * as many classes as outputs, names in ascending order (they are found by bisection), one column
 * for each feature, the size of an image equal to its features. A record comes over the network, so
 * a wrong one must become an error here and not an index out of range later.
 *
 * `target` may be a string or a whole number, because people write an index without quotes. */
#include "data/dataset_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "data/target.h"
#include "base/json.h"

/* ---- writing ---- */

static json_t *names_to_json(char *const *names, size_t n)
{
    JSON_AUTO list = json_array();
    for (size_t i = 0; i < n; i++)
        if (json_array_append_new(list, json_string(names[i])) != 0)
            return NULL;
    return as_steal(list);
}

static json_t *column_to_json(const struct dataset_column *c)
{
    JSON_AUTO obj =
        json_pack("{s:s, s:s, s:I}", "name", c->name, "kind",
                  c->categorical ? "categorical" : "numeric", "missing", (json_int_t)c->n_missing);
    if (c->categorical &&
        (json_object_set_new(obj, "other", json_integer((json_int_t)c->n_other)) != 0 ||
         json_object_set_new(obj, "values", names_to_json(c->values, c->n_values)) != 0))
        return NULL;
    return as_steal(obj);
}

static json_t *columns_to_json(const struct dataset_info *info)
{
    JSON_AUTO list = json_array();
    for (size_t i = 0; i < info->n_features; i++)
        if (json_array_append_new(list, column_to_json(&info->columns[i])) != 0)
            return NULL;
    return as_steal(list);
}

/* Write only the options that differ from the default; NULL when memory is out. */
static json_t *options_to_json(const struct dataset_options *o)
{
    JSON_AUTO obj = json_object();
    int bad = obj == NULL;
    if (o->channels_first)
        bad |= json_object_set_new(obj, "channels_first", json_true());
    if (o->raw)
        bad |= json_object_set_new(obj, "raw", json_true());
    if (o->vocab)
        bad |= json_object_set_new(obj, "vocab", json_integer((json_int_t)o->vocab));
    if (o->x)
        bad |= json_object_set_new(obj, "x", json_string(o->x));
    if (o->y)
        bad |= json_object_set_new(obj, "y", json_string(o->y));
    return bad ? NULL : as_steal(obj);
}

json_t *dataset_info_to_json(const struct dataset_info *info)
{
    JSON_AUTO obj =
        json_pack("{s:s, s:s, s:I, s:I, s:I, s:s}", "format", dataset_format_names[info->format],
                  "task", dataset_task_names[info->task], "rows", (json_int_t)info->n_rows,
                  "features", (json_int_t)info->n_features, "outputs", (json_int_t)info->n_outputs,
                  "input", dataset_input_names[info->input]);
    JSON_AUTO options = options_to_json(&info->options);
    int bad = !obj || !options;
    if (!bad && json_object_size(options))
        bad |= json_object_set(obj, "options", options);
    if (info->target)
        bad |= json_object_set_new(obj, "target", json_string(info->target));
    if (info->task == DATASET_CLASSIFICATION)
        bad |= json_object_set_new(obj, "classes", names_to_json(info->classes, info->n_classes));
    if (info->input == DATASET_IMAGE)
        bad |= json_object_set_new(obj, "image",
                                   json_pack("{s:I, s:I, s:I}", "height", (json_int_t)info->height,
                                             "width", (json_int_t)info->width, "channels",
                                             (json_int_t)info->channels));
    if (info->columns)
        bad |= json_object_set_new(obj, "columns", columns_to_json(info));
    return bad ? NULL : as_steal(obj);
}

/* ---- reading ---- */

static as_status decode_target(const json_t *j, const char *pointer, struct dataset_info *info,
                               struct as_err *err)
{
    char text[24];
    const char *s = json_string_value(j);
    if (json_is_integer(j)) {
        (void)snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(j));
        s = text;
    } else if (j && !s) {
        return as_fail_at(err, AS_E_INVAL, pointer,
                          "%s/target: found %s, expected a column's name or index", pointer,
                          json_type_name(j));
    }
    info->target = as_strdup(s);
    return s && !info->target ? as_fail_nomem(err) : AS_OK;
}

/* Are the classes in the order that dataset_inspect() gives them? target_class_of() relies on
 * it. */
static bool in_order(const struct dataset_info *info)
{
    bool whole = target_classes_whole(info);
    for (size_t i = 1; i < info->n_classes; i++) {
        const char *a = info->classes[i - 1], *b = info->classes[i];
        if (whole ? strtoll(a, NULL, 10) >= strtoll(b, NULL, 10) : strcmp(a, b) >= 0)
            return false;
    }
    return true;
}

/* Copy a list of strings. On failure *ret_n counts the copies that were made. */
static as_status decode_names(const json_t *list, const char *pointer, char ***ret, size_t *ret_n,
                              struct as_err *err)
{
    size_t n = json_array_size(list);
    *ret = as_calloc(n, sizeof **ret);
    if (!*ret)
        return as_fail_nomem(err);
    for (; *ret_n < n; (*ret_n)++) {
        const json_t *j = json_array_get(list, *ret_n);
        if (!json_is_string(j))
            return as_fail_at(err, AS_E_INVAL, pointer, "%s/%zu: found %s, expected a string",
                              pointer, *ret_n, json_type_name(j));
        (*ret)[*ret_n] = as_strdup(json_string_value(j));
        if (!(*ret)[*ret_n])
            return as_fail_nomem(err);
    }
    return AS_OK;
}

static as_status decode_classes(const json_t *list, const char *parent, struct dataset_info *info,
                                struct as_err *err)
{
    char pointer[AS_ERR_POINTER_MAX];
    size_t n = json_array_size(list);
    json_pointer_child(parent, "classes", pointer);
    if (n < 2 || n > DATASET_MAX_CLASSES || n != info->n_outputs)
        return as_fail_at(err, AS_E_INVAL, parent,
                          "%s: found %zu, expected as many as outputs, 2 to %zu", pointer, n,
                          DATASET_MAX_CLASSES);
    as_status st = decode_names(list, pointer, &info->classes, &info->n_classes, err);
    if (st != AS_OK)
        return st;
    if (!in_order(info))
        return as_fail_at(err, AS_E_INVAL, parent, "%s: expected distinct names in ascending order",
                          pointer);
    return AS_OK;
}

static as_status decode_values(struct json_fields *f, size_t rows, struct dataset_column *c,
                               struct as_err *err)
{
    json_t *values = NULL;
    int64_t other = 0;
    char pointer[AS_ERR_POINTER_MAX];
    json_pointer_child(f->pointer, "values", pointer);
    as_status st = json_fields_i64(f, "other", JSON_OPTIONAL, 0, (int64_t)rows, &other, err);
    if (st != AS_OK)
        return st;
    st = json_fields_array(f, "values", JSON_OPTIONAL, &values, err);
    if (st != AS_OK)
        return st;
    c->n_other = (size_t)other;
    if (!c->categorical)
        return values
                   ? as_fail_at(err, AS_E_INVAL, pointer, "%s: a numeric column has none", pointer)
                   : AS_OK;
    if (json_array_size(values) > DATASET_MAX_CATEGORIES)
        return as_fail_at(err, AS_E_INVAL, pointer, "%s: found %zu, expected at most %zu", pointer,
                          json_array_size(values), DATASET_MAX_CATEGORIES);
    st = decode_names(values, pointer, &c->values, &c->n_values, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 1; i < c->n_values; i++)
        if (strcmp(c->values[i - 1], c->values[i]) >= 0)
            return as_fail_at(err, AS_E_INVAL, pointer,
                              "%s: expected distinct names in ascending order", pointer);
    return AS_OK;
}

static as_status decode_column(const json_t *j, const char *pointer, size_t rows,
                               struct dataset_column *c, struct as_err *err)
{
    static const char *const kinds[] = {"numeric", "categorical", NULL};
    struct json_fields f;
    const char *name = NULL;
    int kind = 0;
    int64_t missing = 0;
    as_status st = json_fields_init(&f, j, pointer, err);
    if (st != AS_OK)
        return st;
    st = json_fields_str(&f, "name", JSON_REQUIRED, &name, err);
    if (st != AS_OK)
        return st;
    st = json_fields_word(&f, "kind", JSON_REQUIRED, kinds, &kind, err);
    if (st != AS_OK)
        return st;
    st = json_fields_i64(&f, "missing", JSON_OPTIONAL, 0, (int64_t)rows, &missing, err);
    if (st != AS_OK)
        return st;
    c->name = as_strdup(name);
    if (!c->name)
        return as_fail_nomem(err);
    c->categorical = kind == 1;
    c->n_missing = (size_t)missing;
    st = decode_values(&f, rows, c, err);
    if (st != AS_OK)
        return st;
    return json_fields_end(&f, err);
}

static as_status decode_columns(const json_t *list, const char *parent, struct dataset_info *info,
                                struct as_err *err)
{
    char pointer[AS_ERR_POINTER_MAX], child[AS_ERR_POINTER_MAX];
    if (!list)
        return AS_OK;
    json_pointer_child(parent, "columns", pointer);
    if (info->input != DATASET_TABLE || json_array_size(list) != info->n_features ||
        info->n_features > DATASET_MAX_COLUMNS)
        return as_fail_at(err, AS_E_INVAL, pointer,
                          "%s: found %zu, expected one for each of a table's features, at most %zu",
                          pointer, json_array_size(list), DATASET_MAX_COLUMNS);
    info->columns = as_calloc(info->n_features, sizeof *info->columns);
    if (!info->columns)
        return as_fail_nomem(err);
    for (size_t i = 0; i < info->n_features; i++) {
        json_pointer_index(pointer, i, child);
        as_status st =
            decode_column(json_array_get(list, i), child, info->n_rows, &info->columns[i], err);
        if (st != AS_OK)
            return st;
    }
    if (dataset_category_slots(info) > DATASET_MAX_FEATURES)
        return as_fail_at(err, AS_E_INVAL, pointer, "%s: more than %zu categories in all", pointer,
                          DATASET_MAX_ALL_CATEGORIES);
    return AS_OK;
}

static as_status decode_image(json_t *obj, const char *parent, struct dataset_info *info,
                              struct as_err *err)
{
    char pointer[AS_ERR_POINTER_MAX];
    json_pointer_child(parent, "image", pointer);
    if ((obj != NULL) != (info->input == DATASET_IMAGE))
        return as_fail_at(err, AS_E_INVAL, pointer, "%s: expected with the input image, only there",
                          pointer);
    if (!obj)
        return AS_OK;
    struct json_fields f;
    int64_t h = 0, w = 0, c = 0, max = (int64_t)DATASET_MAX_FEATURES;
    as_status st = json_fields_init(&f, obj, pointer, err);
    if (st != AS_OK)
        return st;
    st = json_fields_i64(&f, "height", JSON_REQUIRED, 1, max, &h, err);
    if (st != AS_OK)
        return st;
    st = json_fields_i64(&f, "width", JSON_REQUIRED, 1, max, &w, err);
    if (st != AS_OK)
        return st;
    st = json_fields_i64(&f, "channels", JSON_REQUIRED, 1, max, &c, err);
    if (st != AS_OK)
        return st;
    st = json_fields_end(&f, err);
    if (st != AS_OK)
        return st;
    if (h * w * c != (int64_t)info->n_features) /* below 2^48 */
        return as_fail_at(err, AS_E_INVAL, pointer,
                          "%s: found %" PRId64 " x %" PRId64 " x %" PRId64
                          ", expected the product %zu, the features",
                          pointer, h, w, c, info->n_features);
    info->height = (size_t)h;
    info->width = (size_t)w;
    info->channels = (size_t)c;
    return AS_OK;
}

as_status dataset_options_from_json(const json_t *obj, const char *pointer,
                                    struct dataset_options *ret, struct as_err *err)
{
    struct json_fields f;
    const char *x = NULL, *y = NULL;
    int64_t vocab = 0;
    as_status st = json_fields_init(&f, obj, pointer, err);
    if (st != AS_OK)
        return st;
    st = json_fields_bool(&f, "channels_first", JSON_OPTIONAL, &ret->channels_first, err);
    if (st != AS_OK)
        return st;
    st = json_fields_bool(&f, "raw", JSON_OPTIONAL, &ret->raw, err);
    if (st != AS_OK)
        return st;
    st = json_fields_i64(&f, "vocab", JSON_OPTIONAL, 2, (int64_t)DATASET_MAX_VOCAB, &vocab, err);
    if (st != AS_OK)
        return st;
    st = json_fields_text(&f, "x", JSON_OPTIONAL, 1, DATASET_MAX_ARRAY_NAME, &x, err);
    if (st != AS_OK)
        return st;
    st = json_fields_text(&f, "y", JSON_OPTIONAL, 1, DATASET_MAX_ARRAY_NAME, &y, err);
    if (st != AS_OK)
        return st;
    st = json_fields_end(&f, err);
    if (st != AS_OK)
        return st;
    ret->vocab = (size_t)vocab;
    ret->x = as_strdup(x);
    ret->y = as_strdup(y);
    return (x && !ret->x) || (y && !ret->y) ? as_fail_nomem(err) : AS_OK;
}

/* Check the number of outputs and the kind of input against the task. */
static as_status check_outputs(const struct dataset_info *info, const char *pointer,
                               struct as_err *err)
{
    bool lm = info->task == DATASET_LANGUAGE_MODELING;
    size_t max = lm                                     ? DATASET_MAX_VOCAB
                 : info->task == DATASET_CLASSIFICATION ? DATASET_MAX_CLASSES
                                                        : DATASET_MAX_TARGETS;
    if (info->n_outputs > max)
        return as_fail_at(err, AS_E_INVAL, pointer,
                          "%s/outputs: found %zu, expected at most %zu for %s", pointer,
                          info->n_outputs, max, dataset_task_names[info->task]);
    if (lm != (info->input == DATASET_TOKEN_TEXT))
        return as_fail_at(err, AS_E_INVAL, pointer, "%s/input: found %s, which does not go with %s",
                          pointer, dataset_input_names[info->input],
                          dataset_task_names[info->task]);
    return AS_OK;
}

static as_status decode_numbers(struct json_fields *f, struct dataset_info *info,
                                struct as_err *err)
{
    int format = 0, task = 0, input = DATASET_TABLE;
    int64_t rows = 0, features = 0, outputs = 0;
    as_status st = json_fields_word(f, "format", JSON_REQUIRED, dataset_format_names, &format, err);
    if (st != AS_OK)
        return st;
    st = json_fields_word(f, "task", JSON_REQUIRED, dataset_task_names + 1, &task, err);
    if (st != AS_OK)
        return st;
    st = json_fields_word(f, "input", JSON_OPTIONAL, dataset_input_names, &input, err);
    if (st != AS_OK)
        return st;
    st = json_fields_i64(f, "rows", JSON_REQUIRED, 2, (int64_t)DATASET_MAX_ROWS, &rows, err);
    if (st != AS_OK)
        return st;
    st = json_fields_i64(f, "features", JSON_REQUIRED, 1, (int64_t)DATASET_MAX_FEATURES, &features,
                         err);
    if (st != AS_OK)
        return st;
    st = json_fields_i64(f, "outputs", JSON_REQUIRED, 1, (int64_t)DATASET_MAX_VOCAB, &outputs, err);
    if (st != AS_OK)
        return st;
    info->format = (dataset_format)format;
    info->task = (dataset_task)(task + 1);
    info->input = (dataset_input)input;
    info->n_rows = (size_t)rows;
    info->n_features = (size_t)features;
    info->n_outputs = (size_t)outputs;
    return check_outputs(info, f->pointer, err);
}

static as_status decode_info(struct json_fields *f, struct dataset_info *info, struct as_err *err)
{
    json_t *target = NULL, *classes = NULL, *columns = NULL, *image = NULL, *options = NULL;
    char pointer[AS_ERR_POINTER_MAX];
    as_status st = decode_numbers(f, info, err);
    if (st != AS_OK)
        return st;
    st = json_fields_any(f, "target", JSON_OPTIONAL, &target, err);
    if (st != AS_OK)
        return st;
    st = json_fields_array(f, "classes", JSON_OPTIONAL, &classes, err);
    if (st != AS_OK)
        return st;
    st = json_fields_array(f, "columns", JSON_OPTIONAL, &columns, err);
    if (st != AS_OK)
        return st;
    st = json_fields_object(f, "image", JSON_OPTIONAL, &image, err);
    if (st != AS_OK)
        return st;
    st = json_fields_object(f, "options", JSON_OPTIONAL, &options, err);
    if (st != AS_OK)
        return st;
    json_pointer_child(f->pointer, "options", pointer);
    if (options)
        st = dataset_options_from_json(options, pointer, &info->options, err);
    if (st != AS_OK)
        return st;
    st = decode_target(target, f->pointer, info, err);
    if (st != AS_OK)
        return st;
    if (info->task == DATASET_CLASSIFICATION)
        st = decode_classes(classes, f->pointer, info, err);
    if (st != AS_OK)
        return st;
    st = decode_columns(columns, f->pointer, info, err);
    if (st != AS_OK)
        return st;
    return decode_image(image, f->pointer, info, err);
}

/* The server adds `expected` to a data set whose content changed since the sweep was created. */
static as_status check_expected(const json_t *obj, const char *pointer, struct as_err *err)
{
    const json_t *e = json_object_get(obj, "expected");
    const char *is = json_string_value(json_object_get(obj, "sha256"));
    const char *was = json_string_value(json_object_get(e, "sha256"));
    if (!e || (is && was && strcmp(is, was) == 0))
        return AS_OK;
    return as_fail_at(
        err, AS_E_INVAL, pointer,
        "the data set changed under its name: the sweep was made with %" JSON_INTEGER_FORMAT
        " rows of %" JSON_INTEGER_FORMAT
        " features (digest %.12s), it now has %" JSON_INTEGER_FORMAT
        " rows of %" JSON_INTEGER_FORMAT " features (digest %.12s)",
        json_integer_value(json_object_get(e, "rows")),
        json_integer_value(json_object_get(e, "features")), was ? was : "unknown",
        json_integer_value(json_object_get(obj, "rows")),
        json_integer_value(json_object_get(obj, "features")), is ? is : "unknown");
}

as_status dataset_info_from_json(const json_t *obj, const char *pointer, struct dataset_info *ret,
                                 struct as_err *err)
{
    struct json_fields f;
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    as_status st = json_fields_init(&f, obj, pointer, err);
    if (st != AS_OK)
        return st;
    st = decode_info(&f, &info, err);
    if (st != AS_OK)
        return st;
    st = check_expected(obj, pointer, err);
    if (st != AS_OK)
        return st;
    *ret = info;
    info = (struct dataset_info){0};
    return AS_OK;
}
