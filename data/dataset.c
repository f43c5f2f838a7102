/* Names of the enumerations, destruction, and how a model sees a row: widths, slots and inputs. All
 * of the latter is computed from the record alone, without the data, because the server plans with
 * it (decision 2001). A column of the file may be several features (a date, a text):
 * dataset_next_column() goes from one column to the next (decision 1003). */
#include "data/dataset.h"

#include <stdlib.h>

#include "base/str.h"

const char *const dataset_format_names[] = {"csv",         "npy",  "npz",    "idx", "cifar",
                                            "safetensors", "text", "tokens", NULL};
const char *const dataset_task_names[] = {
    "auto", "classification", "regression", "language_modeling", "clustering", NULL};
const char *const dataset_input_names[] = {"table", "image", "tokens", NULL};
const char *const target_transform_names[] = {"none", "log", "log1p", "quantile", NULL};
const char *const dataset_part_names[] = {"cell",      "days",      "week_sin", "week_cos",
                                          "month_sin", "month_cos", "hour_sin", "hour_cos",
                                          "hashed",    NULL};

const char *dataset_format_name(dataset_format format)
{
    return dataset_format_names[format];
}

const char *dataset_task_name(dataset_task task)
{
    return dataset_task_names[task];
}

const char *dataset_input_name(dataset_input input)
{
    return dataset_input_names[input];
}

as_status dataset_task_parse(const char *s, dataset_task *ret, struct as_err *err)
{
    for (int i = 0; dataset_task_names[i]; i++)
        if (as_streq(s, dataset_task_names[i])) {
            *ret = (dataset_task)i;
            return AS_OK;
        }
    return as_fail(err, AS_E_INVAL,
                   "task: found '%.60s', expected auto, classification, regression or "
                   "language_modeling",
                   s);
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
    dataset_options_done(&info->options);
    free_names(info->classes, info->n_classes);
    for (size_t i = 0; info->columns && i < info->n_features; i++) {
        free(info->columns[i].name);
        free_names(info->columns[i].values, info->columns[i].n_values);
    }
    free(info->columns);
    *info = (struct dataset_info){0};
}

void dataset_done(struct dataset *d)
{
    free(d->x);
    free(d->bytes);
    free(d->labels);
    free(d->targets);
    free(d->tokens);
    *d = (struct dataset){0};
}

/* ---- how a model sees a row ---- */

size_t dataset_column_width(const struct dataset_column *c)
{
    return c->n_parts ? c->n_parts : 1;
}

size_t dataset_next_column(const struct dataset_info *info, size_t feature)
{
    return feature + (info->columns ? dataset_column_width(&info->columns[feature]) : 1);
}

size_t dataset_file_columns(const struct dataset_info *info)
{
    size_t n = 0;
    for (size_t i = 0; i < info->n_features; i = dataset_next_column(info, i))
        n++;
    return n;
}

size_t dataset_column_slots(const struct dataset_column *column)
{
    return column->n_values + 1 + (column->n_missing > 0);
}

size_t dataset_numeric_inputs(const struct dataset_info *info)
{
    if (info->input == DATASET_TOKEN_TEXT)
        return 0;
    size_t n = info->columns ? 0 : info->n_features;
    for (size_t i = 0; info->columns && i < info->n_features; i++)
        if (!info->columns[i].categorical)
            n += 1 + (info->columns[i].n_missing > 0);
    return n;
}

bool dataset_column_is_number(const struct dataset_column *c)
{
    return !c || (!c->categorical && (c->part == DATASET_CELL || c->part == DATASET_DAYS));
}

size_t dataset_number_columns(const struct dataset_info *info)
{
    if (info->input != DATASET_TABLE)
        return 0;
    size_t n = info->columns ? 0 : info->n_features;
    for (size_t i = 0; info->columns && i < info->n_features; i++)
        n += dataset_column_is_number(&info->columns[i]);
    return n;
}

size_t dataset_categorical_columns(const struct dataset_info *info)
{
    size_t n = 0;
    for (size_t i = 0; info->columns && i < info->n_features; i++)
        n += info->columns[i].categorical;
    return n;
}

size_t dataset_category_slots(const struct dataset_info *info)
{
    size_t n = 0;
    for (size_t i = 0; info->columns && i < info->n_features; i++)
        if (info->columns[i].categorical)
            n += dataset_column_slots(&info->columns[i]);
    return n;
}

size_t dataset_inputs(const struct dataset_info *info)
{
    if (info->input == DATASET_TOKEN_TEXT)
        return 1;
    return dataset_numeric_inputs(info) + dataset_category_slots(info);
}

size_t dataset_epoch_windows(size_t n_tokens, size_t context)
{
    size_t n = n_tokens / context;
    return n > 1 ? n - 1 : 1;
}
