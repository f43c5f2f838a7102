/* Fitting reads a data set without changing it, so that the same code encodes the training rows and
 * rows that come later. Rows that need an encoding are encoded one at a time while sums are taken:
 * the sums then see the values that a model will see. */
#include "data/preprocess/preprocess.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "data/preprocess/moments.h"
#include "data/preprocess/piecewise.h"
#include "data/preprocess/table.h"
#include "data/preprocess/target_unit.h"

void preprocess_done(struct preprocess *p)
{
    free(p->mean);
    free(p->scale);
    free(p->target_mean);
    free(p->target_scale);
    free(p->quantiles);
    free(p->n_edges);
    free(p->edges);
    free(p->fill);
    free(p->median);
    free(p->seen);
    *p = (struct preprocess){0};
}

static size_t inputs_before_bins(const struct preprocess *p, const struct dataset_info *info)
{
    return p->n_codes ? dataset_numeric_inputs(info) : dataset_inputs(info);
}

size_t preprocess_inputs(const struct preprocess *p, const struct dataset_info *info)
{
    size_t more = p->bins ? (p->bins - 1) * dataset_number_columns(info) : 0;
    return inputs_before_bins(p, info) + more;
}

static as_status out_of_memory(struct as_err *err)
{
    return as_fail(err, AS_E_NOMEM, "out of memory for the data of the run");
}

/* Are the encoded inputs of n rows within the limit? */
static as_status check_size(const struct preprocess *p, const struct dataset_info *info, size_t n,
                            struct as_err *err)
{
    size_t values, width = preprocess_inputs(p, info);
    if (__builtin_mul_overflow(n, width, &values) || values > DATASET_MAX_VALUES)
        return as_fail(err, AS_E_TOO_LARGE,
                       "%zu rows of %zu inputs, %s: at most %zu values; try %s", n, width,
                       p->bins ? "numbers in bins" : "categories one-hot", DATASET_MAX_VALUES,
                       p->bins ? "fewer numbers.bins" : "model.embedding");
    return AS_OK;
}

/* ---- fitting ---- */

/* Indicators keep their values 0 and 1, and hashed texts their length 1: mean 0, scale 1. So do
 * numbers whose bins follow. */
static void reset_moments(const struct preprocess *p, const struct dataset_info *info, double *mean,
                          double *scale)
{
    size_t at = 0;
    for (size_t i = 0; p->bins && !info->columns && i < info->n_features; i++) {
        mean[i] = 0;
        scale[i] = 1;
    }
    for (size_t i = 0; info->columns && i < info->n_features; i++) {
        const struct dataset_column *c = &info->columns[i];
        if (c->part == DATASET_HASHED || (p->bins && dataset_column_is_number(c))) {
            mean[at] = 0;
            scale[at] = 1;
        }
        at += !c->categorical;
        if (!c->categorical && c->n_missing) {
            mean[at] = 0;
            scale[at++] = 1;
        }
    }
}

static as_status table_moments(const struct preprocess *p, const struct dataset *set,
                               const struct dataset_info *info, const struct preprocess_rows *rows,
                               double *mean, double *scale, struct as_err *err)
{
    const struct preprocess_table table = {info, p->fill, p->seen};
    size_t n = dataset_numeric_inputs(info);
    const struct moments_columns v = {.x = set->x,
                                      .bytes = set->bytes,
                                      .width = set->n_features,
                                      .n = n,
                                      .n_means = n,
                                      .rows = rows->train,
                                      .n_rows = rows->n_train,
                                      .table = p->fill ? &table : NULL};
    as_status st = moments_of_columns(&v, mean, scale, err);
    if (st != AS_OK)
        return st;
    reset_moments(p, info, mean, scale);
    return AS_OK;
}

static as_status image_moments(const struct dataset *set, const struct dataset_info *info,
                               const struct preprocess_rows *rows, double *mean, double *scale,
                               struct as_err *err)
{
    const struct moments_bytes bytes = {.bytes = set->bytes,
                                        .n_rows = set->n_rows,
                                        .width = set->n_features,
                                        .channels = info->channels,
                                        .held = rows->held,
                                        .n_held = rows->n_held};
    const struct moments_columns pixels = {.x = set->x,
                                           .width = set->n_features,
                                           .n = set->n_features,
                                           .n_means = info->channels,
                                           .rows = rows->train,
                                           .n_rows = rows->n_train};
    return set->bytes ? moments_of_bytes(&bytes, mean, scale, err)
                      : moments_of_pixels(&pixels, mean, scale, err);
}

/* One-hot inputs follow the numeric inputs; they keep mean 0 and scale 1. */
static as_status fit_features(struct preprocess *p, const struct dataset *set,
                              const struct dataset_info *info, const struct preprocess_rows *rows,
                              struct as_err *err)
{
    bool image = info->input == DATASET_IMAGE;
    p->n_scales = image ? info->channels : inputs_before_bins(p, info);
    p->mean = as_calloc(p->n_scales, sizeof *p->mean);
    p->scale = as_calloc(p->n_scales, sizeof *p->scale);
    AS_AUTO(as_freep) double *mean = as_calloc(p->n_scales, sizeof *mean);
    AS_AUTO(as_freep) double *scale = as_calloc(p->n_scales, sizeof *scale);
    if (!p->mean || !p->scale || !mean || !scale)
        return out_of_memory(err);
    for (size_t c = 0; c < p->n_scales; c++)
        p->scale[c] = 1;
    if (!p->standardize)
        return AS_OK;
    as_status st = image ? image_moments(set, info, rows, mean, scale, err)
                         : table_moments(p, set, info, rows, mean, scale, err);
    if (st != AS_OK)
        return st;
    size_t n = image ? p->n_scales : dataset_numeric_inputs(info);
    for (size_t c = 0; c < n; c++) {
        p->mean[c] = (float)mean[c];
        p->scale[c] = (float)scale[c];
    }
    return AS_OK;
}

static as_status check_shares(const struct dataset *set, struct as_err *err)
{
    for (size_t i = 0; i < set->n_rows * set->n_outputs; i++) {
        double v = (double)set->targets[i];
        if (!(v >= 0 && v <= 1))
            return as_fail(err, AS_E_INVAL,
                           "the loss bce: the target of row %zu is %g, expected 0 to 1",
                           i / set->n_outputs, v);
    }
    return AS_OK;
}

/* Targets of a regression are standardised, so that a learning rate does not depend on their unit.
 */
static as_status fit_targets(struct preprocess *p, const struct dataset *set,
                             const struct preprocess_rows *rows, bool shares, struct as_err *err)
{
    size_t n = set->targets && !set->labels ? set->n_outputs : 0;
    if (n == 0)
        return AS_OK;
    p->n_targets = n;
    p->target_mean = as_calloc(n, sizeof *p->target_mean);
    p->target_scale = as_calloc(n, sizeof *p->target_scale);
    if (!p->target_mean || !p->target_scale)
        return out_of_memory(err);
    for (size_t c = 0; c < n; c++)
        p->target_scale[c] = 1;
    if (shares)
        return check_shares(set, err);
    return target_unit_fit(set, rows, p, err);
}

static as_status fit_rows(struct preprocess *p, const struct dataset *set,
                          const struct dataset_info *info, const struct preprocess_rows *rows,
                          const struct preprocess_opts *opts, struct as_err *err)
{
    as_status st = AS_OK;
    if (!preprocess_table_is_plain(info)) {
        p->n_codes = opts->embed_categories ? dataset_categorical_columns(info) : 0;
        st = check_size(p, info, set->n_rows, err);
        if (st != AS_OK)
            return st;
        st = preprocess_table_fit(set, info, rows, p, err);
        if (st != AS_OK)
            return st;
    }
    if (info->input == DATASET_TABLE && info->columns) {
        st = preprocess_table_medians(set, info, rows, p, err);
        if (st != AS_OK)
            return st;
    }
    if (info->input == DATASET_TABLE && opts->bins > 0) {
        st = piecewise_fit(set, info, rows, opts->bins, p, err);
        if (st == AS_OK)
            st = check_size(p, info, set->n_rows, err);
        if (st != AS_OK)
            return st;
    }
    st = fit_features(p, set, info, rows, err);
    if (st != AS_OK)
        return st;
    return fit_targets(p, set, rows, opts->targets_as_shares, err);
}

as_status preprocess_fit(const struct dataset *set, const struct dataset_info *info,
                         const struct preprocess_rows *rows, const struct preprocess_opts *opts,
                         struct preprocess *ret, struct as_err *err)
{
    AS_AUTO(preprocess_done)
    struct preprocess p = {.input = info->input,
                           .standardize = opts->standardize,
                           .n_train = rows->n_train,
                           .n_held = rows->n_held,
                           .target_transform = opts->target_transform};
    if (info->input == DATASET_TOKEN_TEXT) {
        p.context = opts->context;
        p.n_tokens = set->n_rows - opts->n_validation;
    } else {
        as_status st = fit_rows(&p, set, info, rows, opts, err);
        if (st != AS_OK)
            return st;
    }
    *ret = p;
    p = (struct preprocess){0};
    return AS_OK;
}

/* ---- applying ---- */

void preprocess_complete(const struct preprocess *p, const struct dataset_info *info, float *x,
                         size_t rows)
{
    for (size_t r = 0; p->median && r < rows; r++, x += info->n_features)
        for (size_t c = 0; c < info->n_features; c++)
            if (isnan(x[c]) && !isnan(p->median[c]))
                x[c] = p->median[c];
}

static void standardize_row(float *x, const float *mean, const float *scale, size_t n)
{
    size_t c = 0;
    for (; c + 8 <= n; c += 8)
        for (size_t i = c; i < c + 8; i++)
            x[i] = (x[i] - mean[i]) / scale[i];
    for (; c < n; c++)
        x[c] = (x[c] - mean[c]) / scale[c];
}

/* All pixels of a channel share its mean. Expanding means and scales to one for each pixel makes
 * the loop over a row simple. */
static as_status standardize_images(const struct preprocess *p, struct dataset *set,
                                    struct as_err *err)
{
    size_t n = set->n_features;
    if (set->bytes || p->n_scales == 0)
        return AS_OK;
    AS_AUTO(as_freep) float *mean = as_calloc(n, sizeof *mean);
    AS_AUTO(as_freep) float *scale = as_calloc(n, sizeof *scale);
    if (!mean || !scale)
        return out_of_memory(err);
    for (size_t c = 0; c < n; c++) {
        mean[c] = p->mean[c % p->n_scales];
        scale[c] = p->scale[c % p->n_scales];
    }
    for (size_t r = 0; r < set->n_rows; r++)
        standardize_row(set->x + r * n, mean, scale, n);
    return AS_OK;
}

static void standardize_table(const struct preprocess *p, const struct dataset_info *info,
                              struct dataset *set)
{
    size_t n = dataset_numeric_inputs(info);
    for (size_t r = 0; n && r < set->n_rows; r++)
        standardize_row(set->x + r * set->n_features, p->mean, p->scale, n);
}

/* The inputs of the rows of `set`, which hold NaN and indices of categories, not standardised. */
static as_status encode_table(const struct preprocess *p, const struct dataset_info *info,
                              const struct dataset *set, float **ret, int32_t **ret_codes,
                              struct as_err *err)
{
    const struct preprocess_table table = {info, p->fill, p->seen};
    size_t n = set->n_rows, width = inputs_before_bins(p, info);
    size_t numbers = dataset_numeric_inputs(info);
    AS_AUTO(as_freep) float *x = as_calloc(n * width, sizeof *x);
    AS_AUTO(as_freep) int32_t *codes = p->n_codes ? as_calloc(n * p->n_codes, sizeof *codes) : NULL;
    if (!x || (p->n_codes && !codes))
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu rows of %zu inputs", n, width);
    for (size_t r = 0; r < n; r++) {
        const float *row = set->x + r * info->n_features;
        preprocess_table_numbers(&table, row, x + r * width);
        preprocess_table_categories(&table, row, codes ? NULL : x + r * width + numbers,
                                    codes ? codes + r * p->n_codes : NULL);
    }
    *ret = as_steal(x);
    *ret_codes = as_steal(codes);
    return AS_OK;
}

/* Replace set->x by the inputs of the model. With bins, other inputs are standardised here, too. */
static as_status encode_rows(const struct preprocess *p, const struct dataset_info *info,
                             struct dataset *set, int32_t **ret_codes, struct as_err *err)
{
    AS_AUTO(as_freep) float *x = NULL;
    AS_AUTO(as_freep) float *cut = NULL;
    AS_AUTO(as_freep) int32_t *codes = NULL;
    size_t width = inputs_before_bins(p, info);
    as_status st = check_size(p, info, set->n_rows, err);
    if (st == AS_OK && p->fill)
        st = encode_table(p, info, set, &x, &codes, err);
    if (st == AS_OK && p->bins)
        st = piecewise_apply(p, info, x ? x : set->x, set->n_rows, width, &cut, err);
    if (st != AS_OK)
        return st;
    if (cut || x) {
        free(set->x);
        set->x = cut ? as_steal(cut) : as_steal(x);
    }
    set->n_features = preprocess_inputs(p, info);
    *ret_codes = as_steal(codes);
    return AS_OK;
}

static void apply_targets(const struct preprocess *p, struct dataset *set)
{
    for (size_t i = 0; set->targets && i < set->n_rows; i++)
        for (size_t c = 0; c < p->n_targets; c++) {
            float *y = &set->targets[i * p->n_targets + c];
            *y = (float)target_unit_forward(p, c, (double)*y);
        }
}

/* Does the set have the columns that p was made for? */
static as_status check_columns(const struct preprocess *p, const struct dataset_info *info,
                               const struct dataset *set, struct as_err *err)
{
    if (p->input != info->input)
        return as_fail(err, AS_E_INVAL, "the data set's input is %s, expected %s",
                       dataset_input_name(info->input), dataset_input_name(p->input));
    if (set->n_features != info->n_features)
        return as_fail(err, AS_E_INVAL, "rows of %zu features, expected %zu", set->n_features,
                       info->n_features);
    if (set->targets && p->n_targets && set->n_outputs != p->n_targets)
        return as_fail(err, AS_E_INVAL, "rows of %zu targets, expected %zu", set->n_outputs,
                       p->n_targets);
    return AS_OK;
}

as_status preprocess_apply(const struct preprocess *p, const struct dataset_info *info,
                           struct dataset *set, int32_t **ret_codes, struct as_err *err)
{
    as_status st = check_columns(p, info, set, err);
    if (st != AS_OK)
        return st;
    int32_t *codes = NULL;
    if (p->fill || p->bins)
        st = encode_rows(p, info, set, &codes, err);
    else if (p->standardize && info->input == DATASET_IMAGE)
        st = standardize_images(p, set, err);
    if (st != AS_OK)
        return st;
    if (p->standardize && info->input == DATASET_TABLE && !p->bins)
        standardize_table(p, info, set);
    apply_targets(p, set);
    *ret_codes = codes;
    return AS_OK;
}
