/* Tables with missing values or categories: the inputs of a model, in the layout that
 * data/dataset.h describes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/preprocess/preprocess_priv.h"

bool data_table_is_plain(const struct dataset_info *info)
{
    if (info->input != DATASET_TABLE)
        return true;
    return dataset_numeric_inputs(info) == info->n_features &&
           dataset_categorical_columns(info) == 0;
}

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Median of the values there are in the training rows, the mean of the middle two when they are
 * even in number; 0 when there is none. `work` holds n_train values. */
static float median(const struct train_data *d, size_t column, float *work)
{
    size_t n = 0;
    for (size_t i = 0; i < d->n_train; i++) {
        float v = d->set.x[(size_t)d->train_rows[i] * d->set.n_features + column];
        if (!isnan(v))
            work[n++] = v;
    }
    if (n == 0)
        return 0;
    qsort(work, n, sizeof *work, compare_floats);
    return n % 2 ? work[n / 2] : (float)(((double)work[n / 2 - 1] + (double)work[n / 2]) / 2);
}

static as_status find_fills(struct train_data *d, const struct dataset_info *info,
                            struct as_err *err)
{
    AS_AUTO(as_freep) float *work = as_calloc(d->n_train, sizeof *work);
    d->fill = as_calloc(info->n_features, sizeof *d->fill);
    if (!work || !d->fill)
        return as_fail(err, AS_E_NOMEM, "out of memory for the medians");
    for (size_t c = 0; c < info->n_features; c++)
        if (!info->columns[c].categorical && info->columns[c].n_missing)
            d->fill[c] = median(d, c, work);
    return AS_OK;
}

/* Which values are in the training rows: [categorical column][value]. */
static as_status find_seen(struct train_data *d, const struct dataset_info *info,
                           struct as_err *err)
{
    size_t total = 0, at = 0;
    for (size_t c = 0; c < info->n_features; c++)
        total += info->columns[c].n_values;
    d->seen = as_calloc(total, 1);
    if (!d->seen)
        return as_fail(err, AS_E_NOMEM, "out of memory for the categories");
    for (size_t c = 0; c < info->n_features; c++) {
        size_t n = info->columns[c].n_values;
        for (size_t i = 0; n && i < d->n_train; i++) {
            float v = d->set.x[(size_t)d->train_rows[i] * d->set.n_features + c];
            if (v >= 0 && v < (float)n)
                d->seen[at + (size_t)v] = 1;
        }
        at += n;
    }
    return AS_OK;
}

/* The slot of a categorical cell within its column. */
static size_t slot_of(const struct dataset_column *c, const char *seen, float cell)
{
    bool known = cell >= 0 && cell < (float)dataset_column_slots(c);
    size_t v = known ? (size_t)cell : c->n_values;
    return v < c->n_values && !seen[v] ? c->n_values : v;
}

/* One row of the file into inputs (zeroed) and codes (NULL: one-hot). */
static void encode_row(const struct train_data *d, const struct dataset_info *info,
                       const float *row, float *x, int32_t *codes)
{
    size_t at = 0, first_slot = 0;
    const char *seen = d->seen;
    for (size_t c = 0; c < info->n_features; c++) {
        const struct dataset_column *column = &info->columns[c];
        if (column->categorical)
            continue;
        bool missing = isnan(row[c]);
        x[at++] = missing ? d->fill[c] : row[c];
        if (column->n_missing)
            x[at++] = missing ? 1 : 0;
    }
    for (size_t c = 0; c < info->n_features; c++) {
        const struct dataset_column *column = &info->columns[c];
        if (!column->categorical)
            continue;
        size_t slot = slot_of(column, seen, row[c]);
        if (codes)
            *codes++ = (int32_t)(first_slot + slot);
        else
            x[at + first_slot + slot] = 1;
        first_slot += dataset_column_slots(column);
        seen += column->n_values;
    }
}

as_status data_table_encode(struct train_data *d, const struct dataset_info *info, bool embed,
                            struct as_err *err)
{
    size_t width = embed ? dataset_numeric_inputs(info) : dataset_inputs(info);
    size_t n = d->set.n_rows, values;
    if (__builtin_mul_overflow(n, width, &values) || values > DATASET_MAX_VALUES)
        return as_fail(err, AS_E_TOO_LARGE,
                       "%zu rows of %zu inputs, categories one-hot: at most %zu values; try "
                       "model.embedding",
                       n, width, DATASET_MAX_VALUES);
    as_status st = find_fills(d, info, err);
    if (st == AS_OK)
        st = find_seen(d, info, err);
    if (st != AS_OK)
        return st;
    AS_AUTO(as_freep) float *x = as_calloc(values, sizeof *x);
    d->n_codes = embed ? dataset_categorical_columns(info) : 0;
    d->codes = d->n_codes ? as_calloc(n * d->n_codes, sizeof *d->codes) : NULL;
    if (!x || (d->n_codes && !d->codes))
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu rows of %zu inputs", n, width);
    for (size_t r = 0; r < n; r++)
        encode_row(d, info, d->set.x + r * info->n_features, x + r * width,
                   d->codes ? d->codes + r * d->n_codes : NULL);
    free(d->set.x);
    d->set.x = as_steal(x);
    d->set.n_features = width;
    return AS_OK;
}
