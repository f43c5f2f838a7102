/* Columns that hold rows out or weigh them leave record and rows by the same list (decision 1006).
 * The record goes by way of its JSON, so a field that is added to it later is copied and checked
 * without a change here. Values of a column are read as text from the file, because float32 mixes
 * up identifiers and times; a number has one spelling, so that 1, 1.0 and 01 are one value. */
#include "data/dataset_view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "data/column.h"
#include "data/dataset_csv.h"
#include "data/dataset_json.h"

size_t dataset_find_column(const struct dataset_info *info, const char *name)
{
    for (size_t i = 0; info->columns && i < info->n_features; i++)
        if (as_streq(info->columns[i].name, name))
            return i;
    return SIZE_MAX;
}

static bool is_among(size_t column, const size_t *columns, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (columns[i] == column)
            return true;
    return false;
}

/* By way of the JSON form: whatever a record has is copied and checked there. */
as_status dataset_info_without(const struct dataset_info *info, const size_t *columns, size_t n,
                               struct dataset_info *ret, struct as_err *err)
{
    JSON_AUTO doc = dataset_info_to_json(info);
    json_t *list = json_object_get(doc, "columns");
    size_t kept = 0, features = 0; /* columns of the file, as the list has them */
    for (size_t i = 0; doc && n > 0 && i < info->n_features; i = dataset_next_column(info, i)) {
        bool out = is_among(i, columns, n);
        if (out && json_array_remove(list, kept) != 0)
            return as_fail_nomem(err);
        kept += !out;
        features += out ? 0 : dataset_column_width(&info->columns[i]);
    }
    if (!doc ||
        (n > 0 && json_object_set_new(doc, "features", json_integer((json_int_t)features)) != 0))
        return as_fail_nomem(err);
    return dataset_info_from_json(doc, "", ret, err);
}

void dataset_without(struct dataset *set, const struct dataset_info *info, const size_t *columns,
                     size_t n)
{
    size_t width = set->n_features, kept = 0, next;
    if (n == 0)
        return;
    for (size_t i = 0; i < set->n_rows; i++)
        for (size_t c = 0; c < width; c = next) {
            next = dataset_next_column(info, c);
            if (is_among(c, columns, n))
                continue;
            memmove(&set->x[kept], &set->x[i * width + c], (next - c) * sizeof *set->x);
            kept += next - c;
        }
    set->n_features = set->n_rows ? kept / set->n_rows : width;
}

as_status dataset_info_with(const struct dataset_info *info, const char *const *names, size_t n,
                            struct dataset_info *ret, struct as_err *err)
{
    JSON_AUTO doc = dataset_info_to_json(info);
    json_t *list = json_object_get(doc, "columns");
    size_t features = info->n_features + n;
    if (info->input != DATASET_TABLE)
        return as_fail(err, AS_E_INVAL, "found %s, expected a table",
                       dataset_input_name(info->input));
    if (features > DATASET_MAX_FEATURES)
        return as_fail(err, AS_E_INVAL, "a row would have %zu numbers, expected at most %zu",
                       features, DATASET_MAX_FEATURES);
    if (!doc || json_object_set_new(doc, "features", json_integer((json_int_t)features)) != 0)
        return as_fail_nomem(err);
    for (size_t i = 0; list && i < n; i++)
        if (json_array_append_new(list, json_pack("{s:s, s:s, s:i}", "name", names[i], "kind",
                                                  "numeric", "missing", 0)) != 0)
            return as_fail_nomem(err);
    return dataset_info_from_json(doc, "", ret, err);
}

as_status dataset_with(struct dataset *set, const float *added, size_t n, struct as_err *err)
{
    size_t old = set->n_features, width = old + n, values;
    if (__builtin_mul_overflow(set->n_rows, width, &values) || values > DATASET_MAX_VALUES)
        return as_fail(err, AS_E_TOO_LARGE, "%zu rows of %zu numbers, expected at most %zu in all",
                       set->n_rows, width, DATASET_MAX_VALUES);
    float *x = as_calloc(values, sizeof *x);
    if (!x)
        return as_fail_nomem(err);
    for (size_t i = 0; i < set->n_rows; i++) {
        memcpy(x + i * width, set->x + i * old, old * sizeof *x);
        memcpy(x + i * width + old, added + i * n, n * sizeof *x);
    }
    free(set->x);
    set->x = x;
    set->n_features = width;
    return AS_OK;
}

as_status dataset_read_cells(const struct dataset_paths *paths, const struct dataset_info *info,
                             const char *name, struct dataset_cells *ret, struct as_err *err)
{
    AS_AUTO(dataset_cells_done) struct dataset_cells cells = {0};
    if (info->format != DATASET_CSV)
        return as_fail(err, AS_E_UNSUPPORTED,
                       "column '%.80s': the data set is %s, expected a csv table", name,
                       dataset_format_name(info->format));
    as_status st = dataset_csv_cells(paths, info, name, &cells, err);
    if (st != AS_OK)
        return st;
    if (cells.n != info->n_rows)
        return as_fail(err, AS_E_INVAL, "the table has %zu rows, the data set says %zu", cells.n,
                       info->n_rows);
    *ret = cells;
    cells = (struct dataset_cells){0};
    return AS_OK;
}

#define WHOLE_NUMBERS 1e9F /* smaller ones are written without an exponent */

const char *dataset_value_text(const struct dataset_column *c, const char *cell,
                               char buf[DATASET_VALUE_TEXT])
{
    struct column_cell value = column_cell_of_text(cell, strlen(cell));
    float v = 0;
    if (!c || c->categorical || c->part != DATASET_CELL || value.missing ||
        column_value_of(c, &value, &v, NULL) != AS_OK)
        return cell;
    v += 0.0F; /* -0 is 0 */
    if (v == truncf(v) && fabsf(v) < WHOLE_NUMBERS) {
        (void)snprintf(buf, DATASET_VALUE_TEXT, "%.0f", (double)v);
        return buf;
    }
    for (int digits = 1; digits <= 9; digits++) {
        (void)snprintf(buf, DATASET_VALUE_TEXT, "%.*g", digits, (double)v);
        if (strtof(buf, NULL) == v)
            break;
    }
    return buf;
}

as_status dataset_list_values(const struct dataset_info *info, const char *name,
                              const struct dataset_cells *cells, const int32_t *rows, size_t n,
                              json_t *list, struct as_err *err)
{
    size_t at = info->columns ? dataset_find_column(info, name) : SIZE_MAX;
    const struct dataset_column *c = at == SIZE_MAX ? NULL : &info->columns[at];
    char buf[DATASET_VALUE_TEXT];
    for (size_t i = 0; i < n; i++) {
        size_t row = rows ? (size_t)rows[i] : i;
        json_t *value = json_string(dataset_value_text(c, dataset_cell(cells, row), buf));
        if (!value)
            return as_fail(err, AS_E_INVAL, "column '%.60s', row %zu: the text is no UTF-8", name,
                           row + 1);
        if (json_array_append_new(list, value) != 0)
            return as_fail_nomem(err);
    }
    return AS_OK;
}
