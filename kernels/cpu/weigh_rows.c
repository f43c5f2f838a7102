#include "base/cpu_clones.h"
#include "kernels/cpu/cpu.h"

CPU_CLONES static void weigh(float *v, size_t n, float w)
{
    for (size_t i = 0; i < n; i++)
        v[i] = w > 0 ? w * v[i] : 0;
}

as_status cpu_weigh_rows(struct backend *be, const struct weigh_rows_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        const float *weights = tensor_f32(a->weights, k);
        float *row_loss = tensor_f32(a->out.row_loss, k), *gradient = tensor_f32(a->gradient, k);
        for (size_t r = 0; r < a->batch; r++) {
            weigh(&row_loss[r], 1, weights[r]);
            if (gradient)
                weigh(gradient + r * a->width, a->width, weights[r]); /* [B, D] */
        }
        cpu_reduce_rows(&a->out, k, a->batch);
    }
    return AS_OK;
}
