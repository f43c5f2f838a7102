#include "scheduler/services/model_schema.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "data/names_json.h"

static json_t *column_json(const struct dataset_column *c)
{
    const char *kind = c->categorical              ? "category"
                       : c->part == DATASET_CELL   ? "number"
                       : c->part == DATASET_HASHED ? "text"
                                                   : "date";
    JSON_AUTO j = json_pack("{s:s, s:s, s:b}", "name", c->name, "kind", kind, "missing",
                            c->n_missing + c->n_empty > 0);
    if (j && c->categorical &&
        json_object_set_new(j, "values", names_json_new(c->values, c->n_values)) != 0)
        return NULL;
    return as_steal(j);
}

/* An input that has no columns. */
static json_t *whole_json(const struct dataset_info *info)
{
    switch (info->input) {
    case DATASET_IMAGE:
        return json_pack("[{s:s, s:s, s:[I, I, I], s:b}]", "name", "image", "kind", "image",
                         "shape", (json_int_t)info->height, (json_int_t)info->width,
                         (json_int_t)info->channels, "missing", 0);
    case DATASET_TOKEN_TEXT:
        return json_pack("[{s:s, s:s, s:I, s:b}]", "name", "tokens", "kind", "tokens", "size",
                         (json_int_t)info->n_outputs, "missing", 0);
    case DATASET_TABLE:
        break;
    }
    return json_pack("[{s:s, s:s, s:I, s:b}]", "name", "features", "kind", "numbers", "size",
                     (json_int_t)info->n_features, "missing", 0);
}

json_t *model_inputs_json(const struct dataset_info *info)
{
    if (info->input != DATASET_TABLE || !info->columns)
        return whole_json(info);
    JSON_AUTO list = json_array();
    for (size_t i = 0; i < info->n_features; i = dataset_next_column(info, i))
        if (json_array_append_new(list, column_json(&info->columns[i])) != 0)
            return NULL;
    return as_steal(list);
}

/* The next of the targets "a,b": its length. The last one takes the rest, and a single one may have
 * commas in its name. */
static size_t target_length(const char *s, size_t left)
{
    const char *comma = left > 1 ? strchr(s, ',') : NULL;
    return comma ? (size_t)(comma - s) : strlen(s);
}

/* The names of the targets. Arrays have none: their indices. */
static json_t *targets_json(const struct dataset_info *info)
{
    JSON_AUTO list = json_array();
    const char *s = info->target;
    for (size_t i = 0; i < info->n_outputs; i++) {
        char number[24];
        size_t len = s ? target_length(s, info->n_outputs - i) : 0;
        (void)snprintf(number, sizeof number, "%zu", i);
        if (json_array_append_new(list, len ? json_stringn(s, len) : json_string(number)) != 0)
            return NULL;
        s = s && s[len] ? s + len + 1 : NULL;
    }
    return as_steal(list);
}

json_t *model_outputs_json(const struct dataset_info *info)
{
    if (info->task == DATASET_LANGUAGE_MODELING)
        return json_pack("{s:I}", "size", (json_int_t)info->n_outputs);
    if (info->task == DATASET_CLASSIFICATION)
        return json_pack("{s:s*, s:o, s:s*}", "target", info->target, "classes",
                         names_json_new(info->classes, info->n_classes), "positive",
                         info->n_classes == 2 ? info->classes[1] : NULL);
    if (info->task == DATASET_CLUSTERING)
        return json_pack("{s:[s, s]}", "targets", "cluster", "distance");
    return json_pack("{s:o}", "targets", targets_json(info));
}
