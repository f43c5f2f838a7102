#include "kernels/reference/reference.h"

#include <math.h>

double ref_activate(act_kind act, double z)
{
    switch (act) {
    case ACT_RELU:
        return z < 0 ? 0 : z;
    case ACT_TANH:
        return tanh(z);
    case ACT_GELU:
        return 0.5 * z * (1 + erf(z * M_SQRT1_2));
    case ACT_NONE:
        break;
    }
    return z;
}

/* The derivative, from the output (relu, tanh) or the input (gelu). */
static double slope(act_kind act, double kept)
{
    switch (act) {
    case ACT_RELU:
        return kept <= 0 ? 0 : 1;
    case ACT_TANH:
        return 1 - kept * kept;
    case ACT_GELU: /* Phi(z) + z phi(z); 1 / sqrt(2 pi) = M_2_SQRTPI * M_SQRT1_2 / 2 */
        return 0.5 * (1 + erf(kept * M_SQRT1_2)) +
               kept * exp(-0.5 * kept * kept) * (M_2_SQRTPI * M_SQRT1_2 / 2);
    case ACT_NONE:
        break;
    }
    return 1;
}

as_status ref_act_backward(struct backend *be, const struct act_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        const float *kept = tensor_f32(a->kept, k), *dy = tensor_f32(a->dy, k);
        float *dx = tensor_f32(a->dx, k);
        for (size_t i = 0; i < a->n; i++)
            dx[i] = (float)((double)dy[i] * slope(a->act, (double)kept[i]));
    }
    return AS_OK;
}
