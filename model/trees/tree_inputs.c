#include "model/trees/tree_inputs.h"

#include <math.h>
#include <string.h>

/* Without columns all features are numbers: tables of arrays, images. */
static bool is_plain(const struct dataset_info *info)
{
    return info->input != DATASET_TABLE || !info->columns;
}

size_t tree_inputs_count(const struct dataset_info *info)
{
    return info->n_features;
}

size_t tree_inputs_column(const struct dataset_info *info, size_t input)
{
    if (is_plain(info))
        return input;
    for (int categorical = 0; categorical < 2; categorical++)
        for (size_t c = 0; c < info->n_features; c++)
            if (info->columns[c].categorical == (categorical == 1) && input-- == 0)
                return c;
    return info->n_features; /* not an input */
}

bool tree_inputs_is_category(const struct dataset_info *info, size_t input)
{
    return !is_plain(info) && info->columns[tree_inputs_column(info, input)].categorical;
}

/* The numeric columns of a row; returns how many there are. */
static size_t numbers_of(const struct dataset_info *info, const float *x, float *ret)
{
    size_t n = 0;
    for (size_t c = 0; c < info->n_features; c++) {
        const struct dataset_column *column = &info->columns[c];
        if (column->categorical)
            continue;
        float value = *x++;
        bool missing = column->n_missing > 0 && *x++ > 0.5F;
        ret[n++] = missing ? NAN : value;
    }
    return n;
}

/* Codes of all columns share one numbering (dataset.h). */
static void categories_of(const struct dataset_info *info, const int32_t *codes, float *ret)
{
    int32_t first = 0;
    for (size_t c = 0; c < info->n_features; c++) {
        const struct dataset_column *column = &info->columns[c];
        if (!column->categorical)
            continue;
        int32_t value = *codes++ - first;
        *ret++ = (size_t)value > column->n_values ? NAN : (float)value;
        first += (int32_t)dataset_column_slots(column);
    }
}

void tree_inputs_of(const struct dataset_info *info, const float *x, const int32_t *codes,
                    const int32_t *pick, size_t rows, float *ret)
{
    size_t n = tree_inputs_count(info);
    size_t width = is_plain(info) ? n : dataset_numeric_inputs(info);
    size_t n_codes = is_plain(info) ? 0 : dataset_categorical_columns(info);
    for (size_t r = 0; r < rows; r++, ret += n) {
        size_t row = pick ? (size_t)pick[r] : r;
        if (is_plain(info)) {
            memcpy(ret, x + row * width, n * sizeof *ret);
            continue;
        }
        size_t numbers = numbers_of(info, x + row * width, ret);
        if (n_codes > 0)
            categories_of(info, codes + row * n_codes, ret + numbers);
    }
}

/* ---- trees and neighbours ---- */

size_t model_inputs_count(const struct train_spec *spec, const struct dataset_info *info)
{
    size_t bins = train_spec_bins(spec);
    if (train_model_sees_cells(&spec->model))
        return tree_inputs_count(info);
    return dataset_inputs(info) + (bins ? (bins - 1) * dataset_number_columns(info) : 0);
}

void model_inputs_of(const struct train_spec *spec, const struct dataset_info *info, const float *x,
                     const int32_t *codes, const int32_t *pick, size_t rows, float *ret)
{
    size_t n = model_inputs_count(spec, info);
    if (train_model_sees_cells(&spec->model)) {
        tree_inputs_of(info, x, codes, pick, rows, ret);
        return;
    }
    for (size_t r = 0; r < rows; r++)
        memcpy(ret + r * n, x + (pick ? (size_t)pick[r] : r) * n, n * sizeof *ret);
}
