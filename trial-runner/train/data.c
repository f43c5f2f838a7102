#include "trial-runner/train/data.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "trial-runner/train/draw.h"

void train_data_done(struct train_data *d)
{
    dataset_done(&d->set);
    free(d->rows);
    free(d->mean);
    free(d->scale);
    free(d->val_targets);
    *d = (struct train_data){0};
}

static void split(struct train_data *d, const struct train_spec *spec)
{
    size_t n = d->set.n_rows;
    for (size_t i = 0; i < n; i++)
        d->rows[i] = (int32_t)i;
    struct rng r = draw_stream((uint64_t)spec->validation_seed, DRAW_SPLIT, 0);
    draw_shuffle(&r, d->rows, n);
    d->n_val = train_spec_validation_rows(spec, n);
    d->n_train = n - d->n_val;
    d->val_rows = d->rows;
    d->train_rows = d->rows + d->n_val;
}

/* Mean and deviation of the training rows of one column; two passes, in double. A deviation that is
 * only rounding noise next to the mean counts as a constant column. */
static void moments(const struct train_data *d, const float *x, size_t stride, double *ret_mean,
                    double *ret_scale)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < d->n_train; i++)
        sum += (double)x[(size_t)d->train_rows[i] * stride];
    double mean = sum / (double)d->n_train;
    for (size_t i = 0; i < d->n_train; i++) {
        double e = (double)x[(size_t)d->train_rows[i] * stride] - mean;
        squares += e * e;
    }
    double deviation = sqrt(squares / (double)d->n_train);
    *ret_mean = mean;
    *ret_scale = deviation > 1e-7 * fabs(mean) && deviation > 1e-30 ? deviation : 1;
}

static void standardize_features(struct train_data *d, bool wanted)
{
    size_t width = d->set.n_features;
    for (size_t c = 0; c < width; c++) {
        double mean = 0, scale = 1;
        if (wanted)
            moments(d, d->set.x + c, width, &mean, &scale);
        d->mean[c] = (float)mean;
        d->scale[c] = (float)scale;
    }
    /* by what is stored with the model, so that serving repeats it exactly */
    for (size_t r = 0; wanted && r < d->set.n_rows; r++)
        for (size_t c = 0; c < width; c++) {
            float *v = &d->set.x[r * width + c];
            *v = (*v - d->mean[c]) / d->scale[c];
        }
}

static void standardize_targets(struct train_data *d)
{
    d->target_scale = 1;
    if (!d->set.targets)
        return;
    for (size_t i = 0; i < d->n_val; i++)
        d->val_targets[i] = d->set.targets[d->val_rows[i]];
    moments(d, d->set.targets, 1, &d->target_mean, &d->target_scale);
    for (size_t i = 0; i < d->set.n_rows; i++)
        d->set.targets[i] = (float)(((double)d->set.targets[i] - d->target_mean) / d->target_scale);
}

as_status train_data_prepare(struct dataset *set, const struct train_spec *spec,
                             struct train_data *ret, struct as_err *err)
{
    struct train_data d = {.set = *set};
    *set = (struct dataset){0};
    d.rows = as_calloc(d.set.n_rows, sizeof *d.rows);
    d.mean = as_calloc(d.set.n_features, sizeof *d.mean);
    d.scale = as_calloc(d.set.n_features, sizeof *d.scale);
    d.val_targets = as_calloc(d.set.targets ? d.set.n_rows : 0, sizeof *d.val_targets);
    if (!d.rows || !d.mean || !d.scale || !d.val_targets) {
        train_data_done(&d);
        return as_fail(err, AS_E_NOMEM, "out of memory for the split of the rows");
    }
    split(&d, spec);
    standardize_features(&d, spec->standardize);
    standardize_targets(&d);
    *ret = d;
    return AS_OK;
}
