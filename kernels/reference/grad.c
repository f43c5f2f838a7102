#include "kernels/reference/reference.h"

#include <math.h>

as_status ref_grad_stats(struct backend *be, const struct grad_stats_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        const float *g = tensor_f32(a->grads, k);
        double sum = 0;
        int32_t finite = 1;
        for (size_t i = 0; i < a->n; i++) {
            sum += (double)g[i] * (double)g[i];
            if (!isfinite(g[i]))
                finite = 0;
        }
        *tensor_f32(a->sq_norm, k) = (float)sum;
        *tensor_i32(a->finite, k) = finite;
        if (a->active.buf != NULL && finite == 0)
            *tensor_i32(a->active, k) = 0;
    }
    return AS_OK;
}

as_status ref_grad_clip(struct backend *be, const struct grad_clip_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        float *g = tensor_f32(a->grads, k);
        double norm = sqrt((double)*tensor_f32(a->sq_norm, k));
        double max_norm = (double)*tensor_f32(a->max_norm, k);
        if (!isfinite(norm) || !(max_norm > 0) || max_norm >= norm + 1e-6)
            continue;
        for (size_t i = 0; i < a->n; i++)
            g[i] = (float)((double)g[i] * (max_norm / (norm + 1e-6)));
    }
    return AS_OK;
}

as_status ref_grad_accumulate(struct backend *be, const struct grad_accumulate_args *a,
                              struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        const float *g = tensor_f32(a->grads, k);
        float *sum = tensor_f32(a->sum, k);
        double scale = (double)*tensor_f32(a->scale, k);
        bool first = *tensor_i32(a->first, k) != 0;
        for (size_t i = 0; i < a->n; i++)
            sum[i] = (float)((first ? 0 : (double)sum[i]) + scale * (double)g[i]);
    }
    return AS_OK;
}
