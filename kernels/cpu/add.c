#include "base/cpu_clones.h"
#include "kernels/cpu/cpu.h"

/* y may be a or b. */
CPU_CLONES static void add_part(const float *a, const float *b, float *y, size_t n, bool relu)
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

static void add_chunk(void *arg, size_t k, size_t first, size_t n)
{
    const struct add_args *a = arg;
    add_part(tensor_f32(a->a, k) + first, tensor_f32(a->b, k) + first, tensor_f32(a->y, k) + first,
             n, a->act == ACT_RELU);
}

as_status cpu_add(struct backend *be, const struct add_args *a, struct as_err *err)
{
    (void)err;
    struct add_args args = *a;
    cpu_split_elements(be, a->members, a->n, add_chunk, &args);
    return AS_OK;
}
