#include "kernels/reference/reference.h"

#include <math.h>

static double sigmoid(double z)
{
    return z >= 0 ? 1 / (1 + exp(-z)) : exp(z) / (1 + exp(z));
}

static double weight_of(const float *weights, double t)
{
    return weights != NULL ? (double)weights[0] * (1 - t) + (double)weights[1] * t : 1;
}

/* The factor of each weight: 1 / the mean weight of the batch; 0 when that mean is 0. */
static double norm_of(const struct bce_args *a, size_t k)
{
    const float *weights = tensor_f32(a->class_weights, k), *target = tensor_f32(a->target, k);
    double sum = 0, n = (double)a->batch * (double)a->outputs;
    if (weights == NULL)
        return 1;
    for (size_t i = 0; i < a->batch * a->outputs; i++)
        sum += weight_of(weights, (double)target[i]);
    return sum > 0 ? n / sum : 0;
}

static void bce_member(const struct bce_args *a, size_t k)
{
    const float *z = tensor_f32(a->logits, k), *target = tensor_f32(a->target, k);
    const float *weights = tensor_f32(a->class_weights, k);
    double smoothing = a->smoothing.buf != NULL ? (double)*tensor_f32(a->smoothing, k) : 0;
    double norm = norm_of(a, k), n = (double)a->batch * (double)a->outputs;
    int32_t hits = 0, *correct = tensor_i32(a->correct, k);
    for (size_t r = 0; r < a->batch; r++) {
        double sum = 0;
        const float *row = z + r * a->outputs;
        bool none = a->outputs == 0 || isnan(row[0]);
        tensor_i32(a->row_class, k)[r] = none ? -1 : row[0] > 0;
        for (size_t o = 0; o < a->outputs; o++) {
            size_t at = r * a->outputs + o; /* [B, O] */
            double logit = (double)z[at], given = (double)target[at];
            double t = (1 - smoothing) * given + smoothing / 2;
            double weight = norm * weight_of(weights, given);
            hits += !isnan(z[at]) && (z[at] > 0) == (given > 0.5);
            sum += weight * ((logit < 0 ? 0 : logit) - logit * t + log1p(exp(-fabs(logit))));
            if (a->dlogits.buf != NULL)
                tensor_f32(a->dlogits, k)[at] =
                    (float)((double)a->grad_scale / n * weight * (sigmoid(logit) - t));
        }
        tensor_f32(a->out.row_loss, k)[r] = a->outputs > 0 ? (float)(sum / (double)a->outputs) : 0;
    }
    *correct = (a->out.accumulate ? *correct : 0) + hits;
    ref_reduce_rows(&a->out, k, a->batch);
}

as_status ref_bce(struct backend *be, const struct bce_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++)
        bce_member(a, k);
    return AS_OK;
}
