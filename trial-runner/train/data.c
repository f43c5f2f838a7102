#include "trial-runner/train/data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trial-runner/train/data_priv.h"
#include "trial-runner/train/draw.h"

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

/* Sums over the training rows, in their order, column by column: of x, or of its squared distance
 * from mean[column % n_means]. Row after row, so that memory is read once and in lines. */
static void sum_columns(const struct train_data *d, const float *x, size_t width,
                        const double *mean, size_t n_means, double *sums)
{
    memset(sums, 0, width * sizeof *sums);
    for (size_t i = 0; i < d->n_train; i++) {
        const float *row = x + (size_t)d->train_rows[i] * width;
        if (!mean) {
            for (size_t c = 0; c < width; c++)
                sums[c] += (double)row[c];
            continue;
        }
        for (size_t at = 0; at < width; at += n_means)
            for (size_t c = 0; c < n_means; c++) {
                double e = (double)row[at + c] - mean[c];
                sums[at + c] += e * e;
            }
    }
}

/* Columns that share a mean are `n_means` apart: their sums, in order. */
static void fold(double *sums, size_t width, size_t n_means)
{
    for (size_t at = n_means; at < width; at++)
        sums[at % n_means] += sums[at];
}

/* Mean and scale of the training rows; two passes, in double. `width` is a multiple of n_means.
 * AS_E_NOMEM. */
static as_status moments(const struct train_data *d, const float *x, size_t width, size_t n_means,
                         double *ret_mean, double *ret_scale, struct as_err *err)
{
    AS_AUTO(as_freep) double *sums = as_calloc(width, sizeof *sums);
    if (!sums)
        return out_of_memory(err);
    double n = (double)d->n_train * (double)(n_means ? width / n_means : 0);
    sum_columns(d, x, width, NULL, n_means, sums);
    fold(sums, width, n_means);
    for (size_t c = 0; c < n_means; c++)
        ret_mean[c] = sums[c] / n;
    sum_columns(d, x, width, ret_mean, n_means, sums);
    fold(sums, width, n_means);
    for (size_t c = 0; c < n_means; c++)
        ret_scale[c] = scale_of(ret_mean[c], sums[c], n);
    return AS_OK;
}

/* Inputs that are 0 or 1 by their making keep their values. */
static void spare_indicators(const struct dataset_info *info, double *mean, double *scale,
                             size_t width)
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
    for (; info->columns && at < width; at++) {
        mean[at] = 0;
        scale[at] = 1;
    }
}

/* by what is stored with the model, so that serving repeats it exactly */
static void apply(struct train_data *d)
{
    size_t width = d->set.n_features, n = d->n_scales;
    for (size_t r = 0; r < d->set.n_rows; r++)
        for (size_t at = 0; at < width; at += n) {
            float *v = d->set.x + r * width + at;
            for (size_t c = 0; c < n; c++)
                v[c] = (v[c] - d->mean[c]) / d->scale[c];
        }
}

static as_status standardize_features(struct train_data *d, const struct dataset_info *info,
                                      bool wanted, struct as_err *err)
{
    size_t width = d->set.n_features;
    d->n_scales = info->input == DATASET_IMAGE ? info->channels : width;
    d->mean = as_calloc(d->n_scales, sizeof *d->mean);
    d->scale = as_calloc(d->n_scales, sizeof *d->scale);
    AS_AUTO(as_freep) double *mean = as_calloc(d->n_scales, sizeof *mean);
    AS_AUTO(as_freep) double *scale = as_calloc(d->n_scales, sizeof *scale);
    if (!d->mean || !d->scale || !mean || !scale)
        return out_of_memory(err);
    for (size_t c = 0; c < d->n_scales; c++)
        d->scale[c] = 1;
    if (!wanted || width == 0)
        return AS_OK;
    as_status st = moments(d, d->set.x, width, d->n_scales, mean, scale, err);
    if (st != AS_OK)
        return st;
    spare_indicators(info, mean, scale, width);
    for (size_t c = 0; c < d->n_scales; c++) {
        d->mean[c] = (float)mean[c];
        d->scale[c] = (float)scale[c];
    }
    apply(d);
    return AS_OK;
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
    as_status st = moments(d, d->set.targets, n, n, d->target_mean, d->target_scale, err);
    for (size_t i = 0; st == AS_OK && i < d->set.n_rows; i++)
        for (size_t c = 0; c < n; c++) {
            float *v = &d->set.targets[i * n + c];
            *v = (float)(((double)*v - d->target_mean[c]) / d->target_scale[c]);
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
