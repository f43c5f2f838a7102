/* The activation is a parameter of an inlined loop, so each kind is compiled to a loop of its own
 * that gcc vectorises for three instruction sets (CPU_CLONES, decision 3003). gelu is the erf form;
 * its slope needs z, the others' slopes need only the output. */
#include "kernels/cpu/activation.h"

#include "base/cpu_clones.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/vec_math.h"

CPU_INLINE float act_none(float z)
{
    return z;
}

CPU_INLINE float act_relu(float z)
{
    return z < 0.0f ? 0.0f : z;
}

CPU_INLINE float act_gelu(float z)
{
    return 0.5f * z * (1.0f + vec_erf(z * 0.707106781f));
}

/* z is NULL, y itself, or does not overlap y. */
CPU_INLINE void forward_row(float (*act)(float), float *y, const float *restrict b, float *z,
                            size_t n)
{
    if (z == NULL || z == y) {
        for (size_t i = 0; i < n; i++)
            y[i] = act(b != NULL ? y[i] + b[i] : y[i]);
        return;
    }
    for (size_t i = 0; b != NULL && i < n; i++)
        y[i] += b[i];
    memcpy(z, y, n * sizeof(*z));
    for (size_t i = 0; i < n; i++)
        y[i] = act(y[i]);
}

CPU_INLINE void forward_rows(float (*act)(float), float *y, const float *b, float *z, size_t rows,
                             size_t cols, size_t ld)
{
    for (size_t r = 0; r < rows; r++)
        forward_row(act, y + r * ld, b, z != NULL ? z + r * ld : NULL, cols);
}

CPU_CLONES void cpu_bias_act(act_kind act, float *y, const float *b, float *z, size_t rows,
                             size_t cols, size_t ld)
{
    if (b == NULL && cols == ld) {
        cols *= rows;
        rows = 1;
    }
    switch (act) {
    case ACT_NONE:
        forward_rows(act_none, y, b, z, rows, cols, ld);
        break;
    case ACT_RELU:
        forward_rows(act_relu, y, b, z, rows, cols, ld);
        break;
    case ACT_TANH:
        forward_rows(vec_tanh, y, b, z, rows, cols, ld);
        break;
    case ACT_GELU:
        forward_rows(act_gelu, y, b, z, rows, cols, ld);
        break;
    }
}

CPU_INLINE float slope_none(float kept)
{
    (void)kept;
    return 1.0f;
}

CPU_INLINE float slope_relu(float kept)
{
    return kept <= 0.0f ? 0.0f : 1.0f;
}

CPU_INLINE float slope_tanh(float kept)
{
    return 1.0f - kept * kept;
}

/* Phi(z) + z phi(z); 0.398942280 = 1 / sqrt(2 pi). */
CPU_INLINE float slope_gelu(float kept)
{
    return 0.5f * (1.0f + vec_erf(kept * 0.707106781f)) +
           kept * vec_exp(-0.5f * kept * kept) * 0.398942280f;
}

CPU_INLINE void backward(float (*slope)(float), const float *kept, const float *dy, float *dx,
                         size_t n)
{
    for (size_t i = 0; i < n; i++)
        dx[i] = dy[i] * slope(kept[i]);
}

CPU_CLONES static void backward_member(act_kind act, const float *kept, const float *dy, float *dx,
                                       size_t n)
{
    switch (act) {
    case ACT_NONE:
        backward(slope_none, kept, dy, dx, n);
        break;
    case ACT_RELU:
        backward(slope_relu, kept, dy, dx, n);
        break;
    case ACT_TANH:
        backward(slope_tanh, kept, dy, dx, n);
        break;
    case ACT_GELU:
        backward(slope_gelu, kept, dy, dx, n);
        break;
    }
}

static void backward_chunk(void *arg, size_t k, size_t first, size_t n)
{
    const struct act_args *a = arg;
    backward_member(a->act, tensor_f32(a->kept, k) + first, tensor_f32(a->dy, k) + first,
                    tensor_f32(a->dx, k) + first, n);
}

as_status cpu_act_backward(struct backend *be, const struct act_args *a, struct as_err *err)
{
    (void)err;
    struct act_args args = *a;
    cpu_split_elements(be, a->members, a->n, backward_chunk, &args);
    return AS_OK;
}
