/* Fitting learns the medians of columns with gaps and which categories the training rows have.
 * Encoding writes numbers, then indicators, and the slot of each category; a category that was not
 * seen is "other". A row is encoded alone, so rows that come later for a prediction take the same
 * code (decision 1005). */
#include "data/preprocess/table.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

bool preprocess_table_is_plain(const struct dataset_info *info)
{
    if (info->input != DATASET_TABLE)
        return true;
    return dataset_numeric_inputs(info) == info->n_features &&
           dataset_categorical_columns(info) == 0;
}

as_status preprocess_table_alloc(const struct dataset_info *info, struct preprocess *p,
                                 struct as_err *err)
{
    size_t categories = 0;
    for (size_t c = 0; c < info->n_features; c++)
        categories += info->columns[c].n_values;
    p->fill = as_calloc(info->n_features, sizeof *p->fill);
    p->seen = as_calloc(categories, 1);
    if (!p->fill || !p->seen)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu columns of %zu categories",
                       info->n_features, categories);
    return AS_OK;
}

/* ---- fitting ---- */

/* Order v so that v[k] is the k-th value and what is before it is not larger (C. A. R. Hoare,
 * "Find", CACM 4, 1961). Sorting would cost a large table more than the first round of its
 * trees. */
static void select_value(float *v, size_t n, size_t k)
{
    size_t low = 0, high = n - 1;
    while (low < high) {
        float pivot = v[low + (high - low) / 2];
        size_t i = low, j = high;
        while (i <= j) {
            while (v[i] < pivot)
                i++;
            while (v[j] > pivot)
                j--;
            if (i > j)
                break;
            float swapped = v[i];
            v[i++] = v[j];
            v[j] = swapped;
            if (j == 0)
                break;
            j--;
        }
        if (k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            return;
    }
}

static float largest(const float *v, size_t n)
{
    float most = v[0];
    for (size_t i = 1; i < n; i++)
        most = v[i] > most ? v[i] : most;
    return most;
}

static float value_at(const struct dataset *set, int32_t row, size_t column)
{
    size_t at = (size_t)row * set->n_features + column;
    return set->x ? set->x[at] : (float)set->bytes[at];
}

/* The median of the column's values in the training rows that are not missing; for an even number
 * of them, the mean of the middle two; 0 if there is none. `work` has room for n_train values. */
static float median_of_column(const struct dataset *set, const struct preprocess_rows *rows,
                              size_t column, float *work)
{
    size_t n = 0;
    for (size_t i = 0; i < rows->n_train; i++) {
        float v = value_at(set, rows->train[i], column);
        if (!isnan(v))
            work[n++] = v;
    }
    if (n == 0)
        return 0;
    select_value(work, n, n / 2);
    return n % 2 ? work[n / 2] : (float)(((double)largest(work, n / 2) + (double)work[n / 2]) / 2);
}

/* Set seen[v] for each of the column's values that a training row has. */
static void find_seen(const struct dataset *set, const struct preprocess_rows *rows, size_t column,
                      size_t n_values, char *seen)
{
    for (size_t i = 0; n_values && i < rows->n_train; i++) {
        float v = value_at(set, rows->train[i], column);
        if (v >= 0 && v < (float)n_values)
            seen[(size_t)v] = 1;
    }
}

as_status preprocess_table_fit(const struct dataset *set, const struct dataset_info *info,
                               const struct preprocess_rows *rows, struct preprocess *p,
                               struct as_err *err)
{
    AS_AUTO(as_freep) float *work = as_calloc(rows->n_train, sizeof *work);
    if (!work)
        return as_fail(err, AS_E_NOMEM, "out of memory for the medians");
    as_status st = preprocess_table_alloc(info, p, err);
    if (st != AS_OK)
        return st;
    char *seen = p->seen;
    for (size_t c = 0; c < info->n_features; c++) {
        const struct dataset_column *column = &info->columns[c];
        if (!column->categorical && column->n_missing)
            p->fill[c] = median_of_column(set, rows, c, work);
        find_seen(set, rows, c, column->n_values, seen);
        seen += column->n_values;
    }
    return AS_OK;
}

as_status preprocess_table_alloc_medians(const struct dataset_info *info, struct preprocess *p,
                                         struct as_err *err)
{
    p->median = as_calloc(info->n_features, sizeof *p->median);
    if (!p->median)
        return as_fail(err, AS_E_NOMEM, "out of memory for the medians");
    for (size_t c = 0; c < info->n_features; c++)
        p->median[c] = NAN;
    return AS_OK;
}

as_status preprocess_table_medians(const struct dataset *set, const struct dataset_info *info,
                                   const struct preprocess_rows *rows, struct preprocess *p,
                                   struct as_err *err)
{
    AS_AUTO(as_freep) float *work = as_calloc(rows->n_train, sizeof *work);
    if (!work)
        return as_fail(err, AS_E_NOMEM, "out of memory for the medians");
    as_status st = preprocess_table_alloc_medians(info, p, err);
    for (size_t c = 0; st == AS_OK && c < info->n_features; c++)
        if (preprocess_column_is_complete(&info->columns[c]))
            p->median[c] = median_of_column(set, rows, c, work);
    return st;
}

/* ---- encoding a row ---- */

void preprocess_table_numbers(const struct preprocess_table *t, const float *row, float *x)
{
    for (size_t c = 0; c < t->info->n_features; c++) {
        const struct dataset_column *column = &t->info->columns[c];
        if (column->categorical)
            continue;
        bool missing = isnan(row[c]);
        *x++ = missing ? t->fill[c] : row[c];
        if (column->n_missing)
            *x++ = missing ? 1 : 0;
    }
}

/* The slot of a categorical cell within its column; values that were not seen are "other". */
static size_t slot_of(const struct dataset_column *c, const char *seen, float cell)
{
    bool known = cell >= 0 && cell < (float)dataset_column_slots(c);
    size_t v = known ? (size_t)cell : c->n_values;
    return v < c->n_values && !seen[v] ? c->n_values : v;
}

void preprocess_table_categories(const struct preprocess_table *t, const float *row, float *slots,
                                 int32_t *codes)
{
    size_t first_slot = 0;
    const char *seen = t->seen;
    for (size_t c = 0; c < t->info->n_features; c++) {
        const struct dataset_column *column = &t->info->columns[c];
        if (!column->categorical)
            continue;
        size_t slot = first_slot + slot_of(column, seen, row[c]);
        if (codes)
            *codes++ = (int32_t)slot;
        else
            slots[slot] = 1;
        first_slot += dataset_column_slots(column);
        seen += column->n_values;
    }
}
