#include "kernels/reference/reference.h"

#include <math.h>

/* loss[k] (+)= weight * mean of the rows. */
static void reduce_rows(const struct loss_out *o, size_t k, size_t batch)
{
    const float *row = tensor_f32(o->row_loss, k);
    double sum = 0;
    for (size_t r = 0; r < batch; r++)
        sum += (double)row[r];
    double mean = batch > 0 ? sum / (double)batch : 0;
    float *loss = tensor_f32(o->loss, k);
    *loss = (float)((o->accumulate ? (double)*loss : 0) + (double)o->weight * mean);
}

/* The first of the largest; -1 when one is NaN. */
static int32_t argmax(const float *z, size_t n)
{
    size_t best = 0;
    for (size_t c = 0; c < n; c++) {
        if (isnan(z[c]))
            return -1;
        if (z[c] > z[best])
            best = c;
    }
    return (int32_t)best;
}

/* log of the sum of exp(z); `max` is the largest. */
static double log_sum_exp(const float *z, size_t n, double max)
{
    double sum = 0;
    for (size_t c = 0; c < n; c++)
        sum += exp((double)z[c] - max);
    return max + log(sum);
}

struct ce_row {
    size_t classes;
    int32_t label;
    double smoothing, grad_scale; /* grad_scale is already divided by B */
};

/* One row: its loss; its gradient to dz unless NULL (which may be z). */
static double ce_row(const struct ce_row *row, const float *z, int32_t best, float *dz)
{
    size_t n = row->classes;
    bool sound = best >= 0 && row->label >= 0 && (size_t)row->label < n;
    double lse = sound ? log_sum_exp(z, n, (double)z[best]) : NAN;
    double even = row->smoothing / (double)n, loss = 0;
    for (size_t c = 0; c < n; c++) {
        double target = even + ((int32_t)c == row->label ? 1 - row->smoothing : 0);
        if (target > 0)
            loss += target * (lse - (double)z[c]);
        if (dz != NULL)
            dz[c] = (float)(row->grad_scale * (exp((double)z[c] - lse) - target));
    }
    return sound ? loss : NAN;
}

as_status ref_softmax_ce(struct backend *be, const struct softmax_ce_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        const float *z = tensor_f32(a->logits, k), *smoothing = tensor_f32(a->smoothing, k);
        const int32_t *label = tensor_i32(a->labels, k);
        float *dz = tensor_f32(a->dlogits, k), *row_loss = tensor_f32(a->out.row_loss, k);
        int32_t *row_class = tensor_i32(a->row_class, k), *correct = tensor_i32(a->correct, k);
        int32_t hits = 0;
        for (size_t r = 0; r < a->batch; r++) {
            size_t at = r * a->classes; /* [B, C] */
            struct ce_row row = {a->classes, label[r], smoothing != NULL ? (double)*smoothing : 0,
                                 (double)a->grad_scale / (double)a->batch};
            row_class[r] = argmax(z + at, a->classes);
            row_loss[r] = (float)ce_row(&row, z + at, row_class[r], dz != NULL ? dz + at : NULL);
            hits += row_class[r] >= 0 && row_class[r] == label[r];
        }
        *correct = (a->out.accumulate ? *correct : 0) + hits;
        reduce_rows(&a->out, k, a->batch);
    }
    return AS_OK;
}

as_status ref_mse(struct backend *be, const struct mse_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    double n = (double)a->batch * (double)a->outputs;
    for (size_t k = 0; k < a->members; k++) {
        const float *pred = tensor_f32(a->pred, k), *target = tensor_f32(a->target, k);
        float *dpred = tensor_f32(a->dpred, k), *row_loss = tensor_f32(a->out.row_loss, k);
        for (size_t r = 0; r < a->batch; r++) {
            double sum = 0;
            for (size_t o = 0; o < a->outputs; o++) {
                size_t at = r * a->outputs + o; /* [B, O] */
                double diff = (double)pred[at] - (double)target[at];
                sum += diff * diff;
                if (dpred != NULL)
                    dpred[at] = (float)((double)a->grad_scale * 2 / n * diff);
            }
            row_loss[r] = a->outputs > 0 ? (float)(sum / (double)a->outputs) : 0;
        }
        reduce_rows(&a->out, k, a->batch);
    }
    return AS_OK;
}

as_status ref_softmax(struct backend *be, const struct softmax_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        for (size_t r = 0; r < a->batch && a->classes > 0; r++) {
            const float *z = tensor_f32(a->logits, k) + r * a->classes;
            float *p = tensor_f32(a->probs, k) + r * a->classes;
            int32_t best = argmax(z, a->classes);
            double lse = best >= 0 ? log_sum_exp(z, a->classes, (double)z[best]) : NAN;
            for (size_t c = 0; c < a->classes; c++)
                p[c] = (float)exp((double)z[c] - lse);
        }
    }
    return AS_OK;
}
