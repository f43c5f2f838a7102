#include "kernels/cpu/clones.h"
#include "kernels/cpu/cpu.h"

CPU_CLONES static void average_member(const float *restrict p, float *restrict average, size_t n,
                                      float decay, float rest)
{
    for (size_t i = 0; i < n; i++)
        average[i] = decay * average[i] + rest * p[i];
}

as_status cpu_ema(struct backend *be, const struct ema_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        if (a->active.buf != NULL && *tensor_i32(a->active, k) == 0)
            continue;
        float decay = *tensor_f32(a->decay, k);
        average_member(tensor_f32(a->params, k), tensor_f32(a->average, k), a->n, decay,
                       (float)(1 - (double)decay));
    }
    return AS_OK;
}
