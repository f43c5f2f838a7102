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

#include "data/columns_json.h"
#include "data/names_json.h"
#include "data/target.h"
#include "base/json.h"

/* ---- writing ---- */

json_t *dataset_info_to_json(const struct dataset_info *info)
{
    JSON_AUTO obj =
        json_pack("{s:s, s:s, s:I, s:I, s:I, s:s}", "format", dataset_format_names[info->format],
                  "task", dataset_task_names[info->task], "rows", (json_int_t)info->n_rows,
                  "features", (json_int_t)info->n_features, "outputs", (json_int_t)info->n_outputs,
                  "input", dataset_input_names[info->input]);
    JSON_AUTO options = dataset_options_to_json(&info->options);
    int bad = !obj || !options;
    if (!bad && json_object_size(options))
        bad |= json_object_set(obj, "options", options);
    if (info->target)
        bad |= json_object_set_new(obj, "target", json_string(info->target));
    if (info->task == DATASET_CLASSIFICATION)
        bad |= json_object_set_new(obj, "classes", names_json_new(info->classes, info->n_classes));
    if (info->input == DATASET_IMAGE)
        bad |= json_object_set_new(obj, "image",
                                   json_pack("{s:I, s:I, s:I}", "height", (json_int_t)info->height,
                                             "width", (json_int_t)info->width, "channels",
                                             (json_int_t)info->channels));
    if (info->columns)
        bad |= json_object_set_new(obj, "columns", dataset_columns_to_json(info));
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
    as_status st = names_json_read(list, pointer, &info->classes, &info->n_classes, err);
    if (st != AS_OK)
        return st;
    if (!target_classes_in_order(info))
        return as_fail_at(err, AS_E_INVAL, parent,
                          "%s: expected distinct names in ascending order, or the positive one "
                          "of two last",
                          pointer);
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
    if (info->task == DATASET_CLUSTERING && info->n_outputs != DATASET_CLUSTER_OUTPUTS)
        return as_fail_at(err, AS_E_INVAL, pointer, "%s/outputs: found %zu, expected %zu for %s",
                          pointer, info->n_outputs, DATASET_CLUSTER_OUTPUTS,
                          dataset_task_names[info->task]);
    if (lm != (info->input == DATASET_TOKEN_TEXT))
        return as_fail_at(err, AS_E_INVAL, pointer, "%s/input: found %s, which does not go with %s",
                          pointer, dataset_input_names[info->input],
                          dataset_task_names[info->task]);
    bool of_tokens = info->format == DATASET_TEXT || info->format == DATASET_TOKENS;
    if (lm != of_tokens)
        return as_fail_at(err, AS_E_INVAL, pointer,
                          "%s/format: found %s, which does not go with the input %s", pointer,
                          dataset_format_names[info->format], dataset_input_names[info->input]);
    if (lm && info->n_features != 1)
        return as_fail_at(err, AS_E_INVAL, pointer, "%s/features: found %zu, expected 1 for a text",
                          pointer, info->n_features);
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
    if (columns)
        st = dataset_columns_from_json(columns, f->pointer, info, err);
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
