/* What was done to the data, as JSON. */
#include <stdio.h>

#include "base/json.h"
#include "base/mem.h"
#include "data/preprocess/preprocess_priv.h"

static json_t *floats(const float *v, size_t n)
{
    JSON_AUTO list = json_array();
    for (size_t i = 0; i < n; i++)
        if (json_array_append_new(list, json_number_new((double)v[i])) != 0)
            return NULL;
    return as_steal(list);
}

static json_t *doubles(const double *v, size_t n)
{
    JSON_AUTO list = json_array();
    for (size_t i = 0; i < n; i++)
        if (json_array_append_new(list, json_number_new(v[i])) != 0)
            return NULL;
    return as_steal(list);
}

/* A value, its mean and scale, and the filling. */
static json_t *numeric_column(const struct train_data *d, const char *name, bool missing,
                              size_t column, size_t at)
{
    JSON_AUTO obj = json_pack("{s:s, s:s, s:I, s:o, s:o}", "column", name, "kind", "numeric",
                              "input", (json_int_t)at, "mean", json_number_new((double)d->mean[at]),
                              "scale", json_number_new((double)d->scale[at]));
    if (missing &&
        (!obj ||
         json_object_set_new(obj, "missing", json_number_new((double)d->fill[column])) != 0 ||
         json_object_set_new(obj, "indicator", json_integer((json_int_t)at + 1)) != 0))
        return NULL;
    return as_steal(obj);
}

/* Values in the order of their slots, null for one that no training row has (it is among the
 * others); then the slot of the others, and of missing. */
static json_t *categorical_column(const struct train_data *d, const struct dataset_column *c,
                                  const char *seen, size_t at)
{
    JSON_AUTO values = json_array();
    for (size_t i = 0; i < c->n_values; i++)
        if (json_array_append_new(values, seen[i] ? json_string(c->values[i]) : json_null()) != 0)
            return NULL;
    size_t other = at + c->n_values, missing = other + 1;
    JSON_AUTO obj = json_pack("{s:s, s:s, s:I, s:O, s:I}", "column", c->name, "kind", "categorical",
                              d->n_codes ? "code" : "input", (json_int_t)at, "values", values,
                              "other", (json_int_t)other);
    if (c->n_missing &&
        (!obj || json_object_set_new(obj, "missing", json_integer((json_int_t)missing)) != 0))
        return NULL;
    return as_steal(obj);
}

static json_t *table_record(const struct train_data *d, const struct dataset_info *info)
{
    JSON_AUTO list = json_array();
    size_t at = 0;
    for (size_t i = 0; i < info->n_features; i++) {
        char index[24];
        const struct dataset_column *c = info->columns ? &info->columns[i] : NULL;
        if (c && c->categorical)
            continue;
        (void)snprintf(index, sizeof index, "%zu", i);
        bool missing = c && c->n_missing;
        if (json_array_append_new(list, numeric_column(d, c ? c->name : index, missing, i, at)) !=
            0)
            return NULL;
        at += 1 + missing;
    }
    at = d->n_codes ? 0 : at;
    const char *seen = d->seen;
    for (size_t i = 0; info->columns && i < info->n_features; i++) {
        const struct dataset_column *c = &info->columns[i];
        if (!c->categorical)
            continue;
        if (json_array_append_new(list, categorical_column(d, c, seen, at)) != 0)
            return NULL;
        at += dataset_column_slots(c);
        seen += c->n_values;
    }
    return as_steal(list);
}

json_t *train_data_record(const struct train_data *d, const struct dataset_info *info,
                          const struct train_spec *spec)
{
    JSON_AUTO obj = json_pack("{s:s, s:b, s:I, s:I}", "input", dataset_input_name(info->input),
                              "standardize", (int)spec->standardize, "training_rows",
                              (json_int_t)d->n_train, "validation_rows", (json_int_t)d->n_val);
    int bad = obj == NULL;
    if (!bad && info->input == DATASET_TABLE)
        bad |= json_object_set_new(obj, "columns", table_record(d, info));
    if (!bad && info->input == DATASET_IMAGE)
        bad |= json_object_set_new(
            obj, "image",
            json_pack("{s:I, s:I, s:I, s:o, s:o}", "height", (json_int_t)info->height, "width",
                      (json_int_t)info->width, "channels", (json_int_t)info->channels, "mean",
                      floats(d->mean, d->n_scales), "scale", floats(d->scale, d->n_scales)));
    if (!bad && d->context)
        bad |= json_object_set_new(obj, "text",
                                   json_pack("{s:I, s:I, s:I}", "context", (json_int_t)d->context,
                                             "vocab", (json_int_t)info->n_outputs,
                                             "training_tokens", (json_int_t)d->n_tokens));
    if (!bad && info->task == DATASET_REGRESSION)
        bad |= json_object_set_new(obj, "target",
                                   json_pack("{s:o, s:o}", "mean",
                                             doubles(d->target_mean, d->n_targets), "scale",
                                             doubles(d->target_scale, d->n_targets)));
    return bad ? NULL : as_steal(obj);
}
