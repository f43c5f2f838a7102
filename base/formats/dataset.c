#include "base/formats/dataset.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/formats/dataset_priv.h"
#include "base/formats/target.h"
#include "base/json.h"
#include "base/str.h"

static const char *const format_names[] = {"csv", "npy", NULL};
static const char *const task_names[] = {"auto", "classification", "regression", NULL};

const char *dataset_format_name(dataset_format format)
{
    return format_names[format];
}

const char *dataset_task_name(dataset_task task)
{
    return task_names[task];
}

as_status dataset_format_parse(const char *s, dataset_format *ret, struct as_err *err)
{
    for (int i = 0; format_names[i]; i++)
        if (as_streq(s, format_names[i])) {
            *ret = (dataset_format)i;
            return AS_OK;
        }
    return as_fail(err, AS_E_INVAL, "format: found '%.60s', expected csv or npy", s);
}

as_status dataset_task_parse(const char *s, dataset_task *ret, struct as_err *err)
{
    for (int i = 0; task_names[i]; i++)
        if (as_streq(s, task_names[i])) {
            *ret = (dataset_task)i;
            return AS_OK;
        }
    return as_fail(err, AS_E_INVAL,
                   "task: found '%.60s', expected auto, classification or regression", s);
}

static void free_names(char **names, size_t n)
{
    for (size_t i = 0; names && i < n; i++)
        free(names[i]);
    free(names);
}

void dataset_info_done(struct dataset_info *info)
{
    free(info->target);
    free_names(info->classes, info->n_classes);
    free_names(info->features, info->n_features);
    *info = (struct dataset_info){0};
}

void dataset_done(struct dataset *d)
{
    free(d->x);
    free(d->labels);
    free(d->targets);
    *d = (struct dataset){0};
}

as_status dataset_check_size(size_t rows, size_t features, struct as_err *err)
{
    size_t values;
    if (features == 0)
        return as_fail(err, AS_E_INVAL,
                       "the table has no feature: it needs a column besides the target");
    if (rows > DATASET_MAX_ROWS || features > DATASET_MAX_FEATURES ||
        __builtin_mul_overflow(rows, features, &values) || values > DATASET_MAX_VALUES)
        return as_fail(err, AS_E_TOO_LARGE,
                       "%zu rows of %zu features: at most %zu rows, %zu features and %zu values",
                       rows, features, DATASET_MAX_ROWS, DATASET_MAX_FEATURES, DATASET_MAX_VALUES);
    return AS_OK;
}

as_status dataset_check_match(const struct dataset_info *info, size_t rows, size_t features,
                              struct as_err *err)
{
    if (features != info->n_features)
        return as_fail(err, AS_E_INVAL, "the file has %zu features, the data set says %zu",
                       features, info->n_features);
    if (rows > info->n_rows)
        return as_fail(err, AS_E_INVAL, "the file has more than the %zu rows of the data set",
                       info->n_rows);
    if (rows < info->n_rows)
        return as_fail(err, AS_E_INVAL, "the file has %zu rows, the data set says %zu", rows,
                       info->n_rows);
    return AS_OK;
}

as_status dataset_alloc(const struct dataset_info *info, struct dataset *ret, struct as_err *err)
{
    as_status st = dataset_check_size(info->n_rows, info->n_features, err);
    if (st < 0)
        return st;
    ret->n_rows = info->n_rows;
    ret->n_features = info->n_features;
    ret->n_outputs = info->n_outputs;
    ret->x = as_calloc(info->n_rows * info->n_features, sizeof *ret->x);
    if (info->task == DATASET_CLASSIFICATION)
        ret->labels = as_calloc(info->n_rows, sizeof *ret->labels);
    else
        ret->targets = as_calloc(info->n_rows, sizeof *ret->targets);
    if (!ret->x || (!ret->labels && !ret->targets))
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu rows of %zu features", info->n_rows,
                       info->n_features);
    return AS_OK;
}

static as_status check_paths(const struct dataset_paths *p, dataset_format format,
                             struct as_err *err)
{
    bool pair = p->features && p->targets && !p->table;
    bool table = p->table && !p->features && !p->targets;
    if (!table && !(pair && format == DATASET_NPY))
        return as_fail(err, AS_E_INVAL, "the files of a %s data set: expected %s",
                       format_names[format],
                       format == DATASET_CSV ? "a table" : "a table, or features and targets");
    return AS_OK;
}

as_status dataset_inspect(const struct dataset_paths *paths, dataset_format format,
                          const char *target, dataset_task task, struct dataset_info *ret,
                          struct as_err *err)
{
    as_status st = check_paths(paths, format, err);
    if (st < 0)
        return st;
    struct dataset_info info = {.format = format};
    if (format == DATASET_CSV)
        st = dataset_csv_inspect(paths->table, target, task, &info, err);
    else
        st = dataset_npy_inspect(paths, target, task, &info, err);
    if (st < 0)
        dataset_info_done(&info);
    else
        *ret = info;
    return st;
}

as_status dataset_load(const struct dataset_paths *paths, const struct dataset_info *info,
                       struct dataset *ret, struct as_err *err)
{
    as_status st = check_paths(paths, info->format, err);
    if (st < 0)
        return st;
    struct dataset d = {0};
    if (info->format == DATASET_CSV)
        st = dataset_csv_load(paths->table, info, &d, err);
    else
        st = dataset_npy_load(paths, info, &d, err);
    if (st < 0)
        dataset_done(&d);
    else
        *ret = d;
    return st;
}

/* ---- JSON ---- */

json_t *dataset_info_to_json(const struct dataset_info *info)
{
    JSON_AUTO obj =
        json_pack("{s:s, s:s, s:I, s:I, s:I}", "format", format_names[info->format], "task",
                  task_names[info->task], "rows", (json_int_t)info->n_rows, "features",
                  (json_int_t)info->n_features, "outputs", (json_int_t)info->n_outputs);
    if (info->target && json_object_set_new(obj, "target", json_string(info->target)) != 0)
        return NULL;
    if (info->task == DATASET_CLASSIFICATION) {
        JSON_AUTO classes = json_array();
        for (size_t i = 0; i < info->n_classes; i++)
            if (json_array_append_new(classes, json_string(info->classes[i])) != 0)
                return NULL;
        if (json_object_set(obj, "classes", classes) != 0)
            return NULL;
    }
    return as_steal(obj);
}

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
    return s && !info->target ? as_fail(err, AS_E_NOMEM, "out of memory") : AS_OK;
}

/* In the order that dataset_inspect gives, so that looking a class up may rely on it. */
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

static as_status decode_classes(const json_t *list, const char *pointer, struct dataset_info *info,
                                struct as_err *err)
{
    size_t n = json_array_size(list);
    if (n < 2 || n > DATASET_MAX_CLASSES || n != info->n_outputs)
        return as_fail_at(err, AS_E_INVAL, pointer,
                          "%s/classes: found %zu, expected as many as outputs, 2 to %zu", pointer,
                          n, DATASET_MAX_CLASSES);
    info->classes = as_calloc(n, sizeof *info->classes);
    if (!info->classes)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    for (; info->n_classes < n; info->n_classes++) {
        const json_t *j = json_array_get(list, info->n_classes);
        if (!json_is_string(j))
            return as_fail_at(err, AS_E_INVAL, pointer,
                              "%s/classes/%zu: found %s, expected a string", pointer,
                              info->n_classes, json_type_name(j));
        info->classes[info->n_classes] = as_strdup(json_string_value(j));
        if (!info->classes[info->n_classes])
            return as_fail(err, AS_E_NOMEM, "out of memory");
    }
    if (!in_order(info))
        return as_fail_at(err, AS_E_INVAL, pointer,
                          "%s/classes: expected distinct names in ascending order", pointer);
    return AS_OK;
}

static as_status decode(struct json_fields *f, struct dataset_info *info, struct as_err *err)
{
    int format = 0, task = 0;
    int64_t rows = 0, features = 0, outputs = 0;
    json_t *target = NULL, *classes = NULL;
    as_status st = json_fields_word(f, "format", JSON_REQUIRED, format_names, &format, err);
    if (st == AS_OK)
        st = json_fields_word(f, "task", JSON_REQUIRED, task_names + 1, &task, err);
    if (st == AS_OK)
        st = json_fields_i64(f, "rows", JSON_REQUIRED, 2, (int64_t)DATASET_MAX_ROWS, &rows, err);
    if (st == AS_OK)
        st = json_fields_i64(f, "features", JSON_REQUIRED, 1, (int64_t)DATASET_MAX_FEATURES,
                             &features, err);
    if (st == AS_OK)
        st = json_fields_i64(f, "outputs", JSON_REQUIRED, 1, (int64_t)DATASET_MAX_CLASSES, &outputs,
                             err);
    if (st == AS_OK)
        st = json_fields_any(f, "target", JSON_OPTIONAL, &target, err);
    if (st == AS_OK)
        st = json_fields_array(f, "classes", JSON_OPTIONAL, &classes, err);
    if (st < 0)
        return st;
    info->format = (dataset_format)format;
    info->task = (dataset_task)(task + 1);
    info->n_rows = (size_t)rows;
    info->n_features = (size_t)features;
    info->n_outputs = (size_t)outputs;
    info->target_index = -1;
    st = decode_target(target, f->pointer, info, err);
    if (st == AS_OK && info->task == DATASET_CLASSIFICATION)
        st = decode_classes(classes, f->pointer, info, err);
    else if (st == AS_OK && outputs != 1)
        st = as_fail_at(err, AS_E_INVAL, f->pointer,
                        "%s/outputs: found %" PRId64 ", expected 1 for regression", f->pointer,
                        outputs);
    return st;
}

as_status dataset_info_from_json(const json_t *obj, const char *pointer, struct dataset_info *ret,
                                 struct as_err *err)
{
    struct json_fields f;
    as_status st = json_fields_init(&f, obj, pointer, err);
    if (st < 0)
        return st;
    struct dataset_info info = {0};
    st = decode(&f, &info, err);
    if (st < 0)
        dataset_info_done(&info);
    else
        *ret = info;
    return st;
}
