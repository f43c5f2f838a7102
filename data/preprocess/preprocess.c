#include "data/preprocess/preprocess.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/preprocess/preprocess_priv.h"
#include "data/draw.h"

void train_data_done(struct train_data *d)
{
    dataset_done(&d->set);
    free(d->codes);
    free(d->rows);
    free(d->mean);
    free(d->scale);
    free(d->target_mean);
    free(d->target_scale);
    free(d->val_targets);
    free(d->class_rows);
    free(d->fill);
    free(d->seen);
    *d = (struct train_data){0};
}

static as_status out_of_memory(struct as_err *err)
{
    return as_fail(err, AS_E_NOMEM, "out of memory for the data of the run");
}

static as_status split(struct train_data *d, const struct train_spec *spec, struct as_err *err)
{
    size_t n = d->set.n_rows;
    d->rows = as_calloc(n, sizeof *d->rows);
    if (!d->rows)
        return out_of_memory(err);
    for (size_t i = 0; i < n; i++)
        d->rows[i] = (int32_t)i;
    struct rng r = draw_stream((uint64_t)spec->validation_seed, DRAW_SPLIT, 0);
    draw_shuffle(&r, d->rows, n);
    d->n_val = train_spec_validation_rows(spec, n);
    d->n_train = n - d->n_val;
    d->val_rows = d->rows;
    d->train_rows = d->rows + d->n_val;
    return AS_OK;
}

/* ---- standardisation ---- */

/* A deviation that is only rounding noise next to the mean counts as a constant column. */
static double scale_of(double mean, double squares, double n)
{
    double deviation = sqrt(squares / n);
    return deviation > 1e-7 * fabs(mean) && deviation > 1e-30 ? deviation : 1;
}

/* Columns of an array of rows: the first n of `width`, of which those n_means apart share a mean.
 */
struct columns {
    const float *x;
    size_t width, n, n_means;
};

/* sums[c] += x[c], or its squared distance from mean[c]. In eights, so that compilers make vectors
 * of it. */
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

/* Sums over the training rows, in their order, row after row, so that memory is read in lines; then
 * those that share a mean, in the order of their columns. `mean` has one value per column. */
static void sum_columns(const struct train_data *d, const struct columns *v, bool squares,
                        const double *mean, double *sums)
{
    memset(sums, 0, v->n * sizeof *sums);
    for (size_t i = 0; i < d->n_train; i++) {
        const float *row = v->x + (size_t)d->train_rows[i] * v->width;
        (squares ? add_row_squares : add_row)(sums, row, mean, v->n);
    }
    for (size_t c = v->n_means; c < v->n; c++)
        sums[c % v->n_means] += sums[c];
}

/* Mean and scale [n_means] of the training rows; two passes, in double. n is a multiple of n_means.
 * AS_E_NOMEM. */
static as_status moments(const struct train_data *d, const struct columns *v, double *ret_mean,
                         double *ret_scale, struct as_err *err)
{
    AS_AUTO(as_freep) double *sums = as_calloc(v->n, sizeof *sums);
    AS_AUTO(as_freep) double *mean = as_calloc(v->n, sizeof *mean);
    if (!sums || !mean)
        return out_of_memory(err);
    size_t rows = v->n_means ? v->n / v->n_means : 0; /* that share a mean, in one row */
    double n = (double)d->n_train * (double)rows;
    sum_columns(d, v, false, mean, sums);
    for (size_t c = 0; c < v->n_means; c++)
        ret_mean[c] = sums[c] / n;
    for (size_t c = 0; c < v->n; c++)
        mean[c] = ret_mean[c % v->n_means];
    sum_columns(d, v, true, mean, sums);
    for (size_t c = 0; c < v->n_means; c++)
        ret_scale[c] = scale_of(ret_mean[c], sums[c], n);
    return AS_OK;
}

/* sums[c] += x[c] - pivot[c], squares[c] += its square. In eights, as above. */
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

/* As moments(), in one pass: images are large. Distances are from the first training row's first
 * pixel, so that a channel far from 0 loses no digits. AS_E_NOMEM. */
static as_status image_moments(const struct train_data *d, const struct columns *v,
                               double *ret_mean, double *ret_scale, struct as_err *err)
{
    AS_AUTO(as_freep) double *work = as_calloc(3 * v->n, sizeof *work);
    if (v->n_means == 0)
        return AS_OK; /* no pixels */
    if (!work)
        return out_of_memory(err);
    double *pivot = work, *sums = work + v->n, *squares = work + 2 * v->n;
    const float *first = v->x + (size_t)d->train_rows[0] * v->width;
    for (size_t c = 0; c < v->n; c++)
        pivot[c] = (double)first[c % v->n_means];
    for (size_t i = 0; i < d->n_train; i++)
        add_row_both(sums, squares, v->x + (size_t)d->train_rows[i] * v->width, pivot, v->n);
    size_t pixels = v->n / v->n_means;
    double n = (double)d->n_train * (double)pixels;
    for (size_t c = v->n_means; c < v->n; c++) {
        sums[c % v->n_means] += sums[c];
        squares[c % v->n_means] += squares[c];
    }
    for (size_t c = 0; c < v->n_means; c++) {
        double shift = sums[c] / n, around = squares[c] - sums[c] * shift;
        ret_mean[c] = pivot[c] + shift;
        ret_scale[c] = scale_of(ret_mean[c], around > 0 ? around : 0, n);
    }
    return AS_OK;
}

/* As image_moments(), of bytes: exact sums, so that no order of adding matters. AS_E_NOMEM. */
static as_status byte_moments(const struct train_data *d, size_t channels, double *ret_mean,
                              double *ret_scale, struct as_err *err)
{
    __extension__ typedef unsigned __int128 wide;
    size_t width = d->set.n_features;
    AS_AUTO(as_freep) struct data_sums *sums = as_calloc(2 * channels, sizeof *sums);
    if (channels == 0)
        return AS_OK; /* no pixels */
    if (!sums)
        return out_of_memory(err);
    struct data_sums *held = sums + channels;
    as_status st = data_sum_bytes(d->set.bytes, d->set.n_rows * width, channels, sums, err);
    for (size_t i = 0; st == AS_OK && i < d->n_val; i++)
        st = data_sum_bytes(d->set.bytes + (size_t)d->val_rows[i] * width, width, channels, held,
                            err);
    uint64_t n = (uint64_t)d->n_train * (width / channels);
    for (size_t c = 0; st == AS_OK && c < channels; c++) {
        uint64_t sum = sums[c].sum - held[c].sum, squares = sums[c].squares - held[c].squares;
        wide around = (wide)squares * n - (wide)sum * sum; /* n times that about the mean */
        ret_mean[c] = (double)sum / (double)n;
        ret_scale[c] = scale_of(ret_mean[c], (double)around / (double)n, (double)n);
    }
    return st;
}

/* Indicators are 0 or 1 by their making and keep their values. */
static void spare_indicators(const struct dataset_info *info, double *mean, double *scale)
{
    size_t at = 0;
    for (size_t i = 0; info->columns && i < info->n_features; i++) {
        const struct dataset_column *c = &info->columns[i];
        at += !c->categorical;
        if (!c->categorical && c->n_missing) {
            mean[at] = 0;
            scale[at++] = 1;
        }
    }
}

static void apply_row(float *x, const float *mean, const float *scale, size_t n)
{
    size_t c = 0;
    for (; c + 8 <= n; c += 8)
        for (size_t i = c; i < c + 8; i++)
            x[i] = (x[i] - mean[i]) / scale[i];
    for (; c < n; c++)
        x[c] = (x[c] - mean[c]) / scale[c];
}

/* By what is stored with the model, so that serving repeats it exactly. AS_E_NOMEM. */
static as_status apply(struct train_data *d, const struct columns *v, struct as_err *err)
{
    AS_AUTO(as_freep) float *mean = as_calloc(v->n, sizeof *mean);
    AS_AUTO(as_freep) float *scale = as_calloc(v->n, sizeof *scale);
    if (v->n_means == 0)
        return AS_OK; /* no columns */
    if (!mean || !scale)
        return out_of_memory(err);
    for (size_t c = 0; c < v->n; c++) {
        mean[c] = d->mean[c % v->n_means];
        scale[c] = d->scale[c % v->n_means];
    }
    for (size_t r = 0; r < d->set.n_rows; r++)
        apply_row(d->set.x + r * v->width, mean, scale, v->n);
    return AS_OK;
}

/* One-hot inputs, behind the numeric ones, have mean 0 and scale 1. */
static as_status standardize_features(struct train_data *d, const struct dataset_info *info,
                                      bool wanted, struct as_err *err)
{
    size_t width = d->set.n_features;
    bool image = info->input == DATASET_IMAGE;
    d->n_scales = image ? info->channels : width;
    d->mean = as_calloc(d->n_scales, sizeof *d->mean);
    d->scale = as_calloc(d->n_scales, sizeof *d->scale);
    AS_AUTO(as_freep) double *mean = as_calloc(d->n_scales, sizeof *mean);
    AS_AUTO(as_freep) double *scale = as_calloc(d->n_scales, sizeof *scale);
    if (!d->mean || !d->scale || !mean || !scale)
        return out_of_memory(err);
    for (size_t c = 0; c < d->n_scales; c++)
        d->scale[c] = 1;
    size_t n = image ? width : dataset_numeric_inputs(info);
    const struct columns v = {d->set.x, width, n, image ? info->channels : n};
    d->is_bytes = d->set.bytes != NULL;
    if (!wanted || n == 0)
        return AS_OK;
    as_status st = d->is_bytes ? byte_moments(d, v.n_means, mean, scale, err)
                   : image     ? image_moments(d, &v, mean, scale, err)
                               : moments(d, &v, mean, scale, err);
    if (st != AS_OK)
        return st;
    spare_indicators(info, mean, scale);
    for (size_t c = 0; c < v.n_means; c++) {
        d->mean[c] = (float)mean[c];
        d->scale[c] = (float)scale[c];
    }
    return d->is_bytes ? AS_OK : apply(d, &v, err);
}

/* ---- targets ---- */

/* Under bce two classes are one number. */
static as_status classes_as_numbers(struct train_data *d, struct as_err *err)
{
    d->set.targets = as_calloc(d->set.n_rows, sizeof *d->set.targets);
    if (!d->set.targets)
        return out_of_memory(err);
    d->n_targets = 1;
    for (size_t i = 0; i < d->set.n_rows; i++)
        d->set.targets[i] = (float)d->set.labels[i];
    return AS_OK;
}

static as_status check_shares(const struct train_data *d, struct as_err *err)
{
    for (size_t i = 0; i < d->set.n_rows * d->n_targets; i++) {
        double v = (double)d->set.targets[i];
        if (!(v >= 0 && v <= 1))
            return as_fail(err, AS_E_INVAL,
                           "the loss bce: the target of row %zu is %g, expected 0 to 1",
                           i / d->n_targets, v);
    }
    return AS_OK;
}

static as_status standardize_targets(struct train_data *d, bool bce, struct as_err *err)
{
    size_t n = d->n_targets;
    d->target_mean = as_calloc(n, sizeof *d->target_mean);
    d->target_scale = as_calloc(n, sizeof *d->target_scale);
    d->val_targets = as_calloc(d->n_val * n, sizeof *d->val_targets);
    if (!d->target_mean || !d->target_scale || !d->val_targets)
        return out_of_memory(err);
    for (size_t c = 0; c < n; c++)
        d->target_scale[c] = 1;
    for (size_t i = 0; n && i < d->n_val; i++)
        memcpy(d->val_targets + i * n, d->set.targets + (size_t)d->val_rows[i] * n,
               n * sizeof *d->val_targets);
    if (n == 0 || bce)
        return AS_OK;
    const struct columns v = {d->set.targets, n, n, n};
    as_status st = moments(d, &v, d->target_mean, d->target_scale, err);
    for (size_t i = 0; st == AS_OK && i < d->set.n_rows; i++)
        for (size_t c = 0; c < n; c++) {
            float *y = &d->set.targets[i * n + c];
            *y = (float)(((double)*y - d->target_mean[c]) / d->target_scale[c]);
        }
    return st;
}

static as_status count_classes(struct train_data *d, struct as_err *err)
{
    d->class_rows = as_calloc(d->set.n_outputs, sizeof *d->class_rows);
    if (!d->class_rows)
        return out_of_memory(err);
    for (size_t i = 0; i < d->n_train; i++)
        d->class_rows[d->set.labels[d->train_rows[i]]]++;
    return AS_OK;
}

static as_status prepare_targets(struct train_data *d, const struct dataset_info *info,
                                 const struct train_spec *spec, struct as_err *err)
{
    bool bce = train_spec_loss(spec, info->task) == TRAIN_BCE;
    as_status st = AS_OK;
    d->n_targets = d->set.targets ? d->set.n_outputs : 0;
    if (d->set.labels)
        st = count_classes(d, err);
    if (st == AS_OK && bce && d->set.labels && d->set.n_outputs == 2)
        st = classes_as_numbers(d, err);
    if (st == AS_OK && bce)
        st = check_shares(d, err);
    return st == AS_OK ? standardize_targets(d, bce, err) : st;
}

/* ---- all of it ---- */

static as_status prepare_rows(struct train_data *d, const struct dataset_info *info,
                              const struct train_spec *spec, struct as_err *err)
{
    as_status st = split(d, spec, err);
    if (st == AS_OK && !data_table_is_plain(info))
        st = data_table_encode(d, info, spec->model.embedding > 0, err);
    if (st == AS_OK)
        st = standardize_features(d, info, spec->standardize, err);
    return st == AS_OK ? prepare_targets(d, info, spec, err) : st;
}

as_status train_data_prepare(struct dataset *set, const struct dataset_info *info,
                             const struct train_spec *spec, struct train_data *ret,
                             struct as_err *err)
{
    struct train_data d = {.set = *set};
    *set = (struct dataset){0};
    as_status st = info->input == DATASET_TOKEN_TEXT ? data_text_split(&d, spec, err)
                                                     : prepare_rows(&d, info, spec, err);
    if (st < 0)
        train_data_done(&d);
    else
        *ret = d;
    return st;
}
