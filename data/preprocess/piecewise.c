/* Numbers in bins. Every input of an encoded row is one piece: a subtraction, a division and two
 * limits. So a row is one loop, and what exports a model writes the same four operations
 * (model/onnx/encode.c). Bins that a column lacks are pieces whose limits are both 0, and inputs
 * that are not cut have no limits (decision 1010). */
#include "data/preprocess/piecewise.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"

/* ---- fitting ---- */

as_status piecewise_alloc(const struct dataset_info *info, size_t bins, struct preprocess *p,
                          struct as_err *err)
{
    size_t n = dataset_numeric_inputs(info);
    p->bins = bins;
    p->n_edges = as_calloc(n, sizeof *p->n_edges);
    p->edges = as_calloc(n * (bins + 1), sizeof *p->edges);
    if (!p->n_edges || !p->edges)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu bins of %zu inputs", bins, n);
    return AS_OK;
}

static float limited(double v)
{
    const double most = (double)PIECEWISE_LARGEST_EDGE;
    return (float)fmin(fmax(v, -most), most);
}

/* The k-th of `bins` equal parts of sorted values [n], n >= 1. */
static double quantile(const double *sorted, size_t n, size_t k, size_t bins)
{
    double place = (double)(n - 1) * (double)k / (double)bins;
    size_t i = (size_t)place;
    if (i + 1 >= n)
        return sorted[n - 1];
    return sorted[i] + (place - (double)i) * (sorted[i + 1] - sorted[i]);
}

/* The edges of a column; returns how many: 1 if it is constant or has no value. */
static size_t edges_of(double *values, size_t n, size_t bins, float *ret)
{
    size_t n_edges = 1;
    qsort(values, n, sizeof *values, as_order_f64);
    ret[0] = n > 0 ? limited(values[0]) : 0;
    for (size_t k = 1; n > 0 && k <= bins; k++) {
        float edge = limited(quantile(values, n, k, bins));
        if (edge - ret[n_edges - 1] >= FLT_MIN)
            ret[n_edges++] = edge;
    }
    return n_edges;
}

/* The values of a column in the training rows, without missing ones; returns how many. */
static size_t values_of(const struct dataset *set, const struct preprocess_rows *rows,
                        size_t column, double *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < rows->n_train; i++) {
        float v = set->x[(size_t)rows->train[i] * set->n_features + column];
        if (!isnan(v))
            ret[n++] = (double)v;
    }
    return n;
}

as_status piecewise_fit(const struct dataset *set, const struct dataset_info *info,
                        const struct preprocess_rows *rows, size_t bins, struct preprocess *p,
                        struct as_err *err)
{
    AS_AUTO(as_freep) double *work = as_calloc(rows->n_train, sizeof *work);
    if (!work)
        return as_fail(err, AS_E_NOMEM, "out of memory for the quantiles of the inputs");
    as_status st = piecewise_alloc(info, bins, p, err);
    if (st != AS_OK)
        return st;
    size_t at = 0;
    for (size_t c = 0; c < info->n_features; c++) {
        const struct dataset_column *column = info->columns ? &info->columns[c] : NULL;
        if (column && column->categorical)
            continue;
        if (dataset_column_is_number(column))
            p->n_edges[at] = (uint16_t)edges_of(work, values_of(set, rows, c, work), bins,
                                                p->edges + at * (bins + 1));
        at += 1 + (column && column->n_missing > 0);
    }
    return AS_OK;
}

/* ---- applying ---- */

/* Bin k of the input `at`, which is cut. */
static struct piece bin_of(const struct preprocess *p, size_t at, size_t k)
{
    size_t n = p->n_edges[at];
    if (k + 1 >= n) /* the column lacks it */
        return (struct piece){.input = at, .low = 0, .width = 1, .least = 0, .most = 0};
    const float *edges = p->edges + at * (p->bins + 1);
    return (struct piece){.input = at,
                          .low = edges[k],
                          .width = edges[k + 1] - edges[k],
                          .least = k == 0 ? -INFINITY : 0,
                          .most = k + 2 == n ? INFINITY : 1};
}

as_status piecewise_pieces(const struct preprocess *p, const struct dataset_info *info,
                           struct piece **ret, size_t *ret_n, struct as_err *err)
{
    size_t n = dataset_numeric_inputs(info), at = 0;
    struct piece *list = as_calloc(n * p->bins, sizeof *list);
    if (!list)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu bins of %zu inputs", p->bins, n);
    for (size_t i = 0; i < n; i++) {
        if (p->n_edges[i] == 0)
            list[at++] = (struct piece){.input = i,
                                        .low = p->mean[i],
                                        .width = p->scale[i],
                                        .least = -INFINITY,
                                        .most = INFINITY};
        for (size_t k = 0; p->n_edges[i] && k < p->bins; k++)
            list[at++] = bin_of(p, i, k);
    }
    *ret = list;
    *ret_n = at;
    return AS_OK;
}

static float value_of(const struct piece *piece, const float *row)
{
    float v = (row[piece->input] - piece->low) / piece->width;
    v = v < piece->least ? piece->least : v; /* NaN stays */
    return v > piece->most ? piece->most : v;
}

as_status piecewise_apply(const struct preprocess *p, const struct dataset_info *info,
                          const float *x, size_t rows, size_t width, float **ret,
                          struct as_err *err)
{
    AS_AUTO(as_freep) struct piece *pieces = NULL;
    size_t n = 0, numbers = dataset_numeric_inputs(info), all = preprocess_inputs(p, info);
    as_status st = piecewise_pieces(p, info, &pieces, &n, err);
    if (st != AS_OK)
        return st;
    AS_AUTO(as_freep) float *to = as_calloc(rows * all, sizeof *to);
    if (!to)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu rows of %zu inputs", rows, all);
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < n; i++)
            to[r * all + i] = value_of(&pieces[i], x + r * width);
        if (width > numbers)
            memcpy(to + r * all + n, x + r * width + numbers, (width - numbers) * sizeof *to);
    }
    *ret = as_steal(to);
    return AS_OK;
}
