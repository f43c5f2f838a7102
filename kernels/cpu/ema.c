#include "base/cpu_clones.h"
#include "kernels/cpu/cpu.h"

CPU_CLONES static void average_part(const float *restrict p, float *restrict average, size_t n,
                                    float decay, float rest)
{
    for (size_t i = 0; i < n; i++)
        average[i] = decay * average[i] + rest * p[i];
}

static void average_chunk(void *arg, size_t k, size_t first, size_t n)
{
    const struct ema_args *a = arg;
    if (a->active.buf != NULL && *tensor_i32(a->active, k) == 0)
        return;
    float decay = *tensor_f32(a->decay, k);
    average_part(tensor_f32(a->params, k) + first, tensor_f32(a->average, k) + first, n, decay,
                 (float)(1 - (double)decay));
}

as_status cpu_ema(struct backend *be, const struct ema_args *a, struct as_err *err)
{
    (void)err;
    struct ema_args args = *a;
    cpu_split_elements(be, a->members, a->n, average_chunk, &args);
    return AS_OK;
}
