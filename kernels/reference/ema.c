#include "kernels/reference/reference.h"

as_status ref_ema(struct backend *be, const struct ema_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        if (a->active.buf != NULL && *tensor_i32(a->active, k) == 0)
            continue;
        const float *p = tensor_f32(a->params, k);
        float *average = tensor_f32(a->average, k);
        double decay = (double)*tensor_f32(a->decay, k);
        for (size_t i = 0; i < a->n; i++)
            average[i] = (float)(decay * (double)average[i] + (1 - decay) * (double)p[i]);
    }
    return AS_OK;
}
