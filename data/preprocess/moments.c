/* Means and deviations over the training rows.
 *
 * Sums are in double and always in the same order: row after row, in the order of the training
 * rows. The weights of a trained model depend on every bit of them. Within a row, the columns are
 * independent sums; loops of eight let every compiler turn them into vectors without changing the
 * order of any one sum.
 *
 * Columns use two passes, which is the accurate way. Images use one pass about a pivot, because
 * reading them twice takes long. Bytes use exact integer sums. */
#include "data/preprocess/moments.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "data/preprocess/byte_sums.h"

/* A column whose deviation is only rounding noise beside the mean counts as constant: scale 1. */
static double scale_of(double mean, double squares, double n)
{
    double deviation = sqrt(squares / n);
    return deviation > 1e-7 * fabs(mean) && deviation > 1e-30 ? deviation : 1;
}

/* sums[c] += x[c] - mean[c]; add_row_squares() adds the square of that. */
static void add_row(double *sums, const float *x, const double *mean, size_t n)
{
    size_t c = 0;
    for (; c + 8 <= n; c += 8)
        for (size_t i = c; i < c + 8; i++) {
            double e = (double)x[i] - mean[i];
            sums[i] += e;
        }
    for (; c < n; c++)
        sums[c] += (double)x[c] - mean[c];
}

static void add_row_squares(double *sums, const float *x, const double *mean, size_t n)
{
    size_t c = 0;
    for (; c + 8 <= n; c += 8)
        for (size_t i = c; i < c + 8; i++) {
            double e = (double)x[i] - mean[i];
            sums[i] += e * e;
        }
    for (; c < n; c++) {
        double e = (double)x[c] - mean[c];
        sums[c] += e * e;
    }
}

/* The numbers of row i to sum: the row, or its numeric inputs, computed into `work` [n + width]. */
static const float *row_of(const struct moments_columns *v, size_t i, float *work)
{
    size_t at = (size_t)v->rows[i] * v->width;
    for (size_t c = 0; v->bytes && c < v->width; c++)
        work[v->n + c] = (float)v->bytes[at + c];
    const float *row = v->bytes ? work + v->n : v->x + at;
    if (!v->table)
        return row;
    preprocess_table_numbers(v->table, row, work);
    return work;
}

/* Sum over the training rows, row after row, so that memory is read in whole lines. Then add up the
 * columns that share a mean, in the order of the columns. `mean` has one value for each column. */
static void sum_columns(const struct moments_columns *v, bool squares, const double *mean,
                        double *sums, float *work)
{
    memset(sums, 0, v->n * sizeof *sums);
    for (size_t i = 0; i < v->n_rows; i++)
        (squares ? add_row_squares : add_row)(sums, row_of(v, i, work), mean, v->n);
    for (size_t c = v->n_means; c < v->n; c++)
        sums[c % v->n_means] += sums[c];
}

static as_status out_of_memory(const struct moments_columns *v, struct as_err *err)
{
    return as_fail(err, AS_E_NOMEM, "out of memory for the sums of %zu columns", v->n);
}

as_status moments_of_columns(const struct moments_columns *v, double *ret_mean, double *ret_scale,
                             struct as_err *err)
{
    AS_AUTO(as_freep) double *sums = as_calloc(v->n, sizeof *sums);
    AS_AUTO(as_freep) double *mean = as_calloc(v->n, sizeof *mean);
    AS_AUTO(as_freep) float *work = as_calloc(v->n + v->width, sizeof *work);
    if (v->n_means == 0)
        return AS_OK; /* no columns */
    if (!sums || !mean || !work)
        return out_of_memory(v, err);
    size_t per_row = v->n / v->n_means; /* values of a row that share a mean: pixels; else 1 */
    double n = (double)v->n_rows * (double)per_row;
    sum_columns(v, false, mean, sums, work);
    for (size_t c = 0; c < v->n_means; c++)
        ret_mean[c] = sums[c] / n;
    for (size_t c = 0; c < v->n; c++)
        mean[c] = ret_mean[c % v->n_means];
    sum_columns(v, true, mean, sums, work);
    for (size_t c = 0; c < v->n_means; c++)
        ret_scale[c] = scale_of(ret_mean[c], sums[c], n);
    return AS_OK;
}

/* sums[c] += x[c] - pivot[c]; squares[c] += the square of that. */
static void add_row_both(double *sums, double *squares, const float *x, const double *pivot,
                         size_t n)
{
    size_t c = 0;
    for (; c + 8 <= n; c += 8)
        for (size_t i = c; i < c + 8; i++) {
            double e = (double)x[i] - pivot[i];
            sums[i] += e;
            squares[i] += e * e;
        }
    for (; c < n; c++) {
        double e = (double)x[c] - pivot[c];
        sums[c] += e;
        squares[c] += e * e;
    }
}

as_status moments_of_pixels(const struct moments_columns *v, double *ret_mean, double *ret_scale,
                            struct as_err *err)
{
    AS_AUTO(as_freep) double *work = as_calloc(3 * v->n, sizeof *work);
    if (v->n_means == 0)
        return AS_OK; /* no pixels */
    if (!work)
        return out_of_memory(v, err);
    double *pivot = work, *sums = work + v->n, *squares = work + 2 * v->n;
    const float *first = v->x + (size_t)v->rows[0] * v->width;
    for (size_t c = 0; c < v->n; c++)
        pivot[c] = (double)first[c % v->n_means];
    for (size_t i = 0; i < v->n_rows; i++)
        add_row_both(sums, squares, v->x + (size_t)v->rows[i] * v->width, pivot, v->n);
    size_t per_row = v->n / v->n_means; /* values of a row that share a mean: pixels; else 1 */
    double n = (double)v->n_rows * (double)per_row;
    for (size_t c = v->n_means; c < v->n; c++) {
        sums[c % v->n_means] += sums[c];
        squares[c % v->n_means] += squares[c];
    }
    for (size_t c = 0; c < v->n_means; c++) {
        /* sum of (x - mean)^2 = sum of (x - pivot)^2 - n shift^2; rounding may make it negative */
        double shift = sums[c] / n, around = squares[c] - sums[c] * shift;
        ret_mean[c] = pivot[c] + shift;
        ret_scale[c] = scale_of(ret_mean[c], around > 0 ? around : 0, n);
    }
    return AS_OK;
}

as_status moments_of_bytes(const struct moments_bytes *v, double *ret_mean, double *ret_scale,
                           struct as_err *err)
{
    __extension__ typedef unsigned __int128 wide;
    size_t width = v->width, channels = v->channels;
    AS_AUTO(as_freep) struct byte_sums *sums = as_calloc(2 * channels, sizeof *sums);
    if (channels == 0)
        return AS_OK; /* no pixels */
    if (!sums)
        return as_fail(err, AS_E_NOMEM, "out of memory for the sums of %zu channels", channels);
    struct byte_sums *held = sums + channels;
    as_status st = byte_sums_add(v->bytes, v->n_rows * width, channels, sums, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < v->n_held; i++) {
        st = byte_sums_add(v->bytes + (size_t)v->held[i] * width, width, channels, held, err);
        if (st != AS_OK)
            return st;
    }
    uint64_t n = (uint64_t)(v->n_rows - v->n_held) * (width / channels);
    for (size_t c = 0; c < channels; c++) {
        uint64_t sum = sums[c].sum - held[c].sum, squares = sums[c].squares - held[c].squares;
        wide around = (wide)squares * n - (wide)sum * sum; /* n * sum of (v - mean)^2 */
        ret_mean[c] = (double)sum / (double)n;
        ret_scale[c] = scale_of(ret_mean[c], (double)around / (double)n, (double)n);
    }
    return AS_OK;
}
