#include "kernels/cpu/clones.h"
#include "kernels/cpu/cpu.h"

/* y may be a or b. */
CPU_CLONES static void add_member(const float *a, const float *b, float *y, size_t n, bool relu)
{
    if (!relu) {
        for (size_t i = 0; i < n; i++)
            y[i] = a[i] + b[i];
        return;
    }
    for (size_t i = 0; i < n; i++) {
        float sum = a[i] + b[i];
        y[i] = sum < 0.0f ? 0.0f : sum;
    }
}

as_status cpu_add(struct backend *be, const struct add_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++)
        add_member(tensor_f32(a->a, k), tensor_f32(a->b, k), tensor_f32(a->y, k), a->n,
                   a->act == ACT_RELU);
    return AS_OK;
}
