#include "kernels/reference/reference.h"

#include <math.h>

as_status ref_tick(struct backend *be, const struct tick_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        int32_t *at = tensor_i32(a->at, k);
        const float *table = tensor_f32(a->table, k);
        float *out = tensor_f32(a->out, k);
        bool inside = *at >= 0 && (size_t)*at < a->n_steps;
        for (size_t j = 0; j < a->columns; j++)
            out[j] = inside ? table[(size_t)*at * a->columns + j] : NAN; /* [S, J] */
        *at = (int32_t)((uint32_t)*at + 1);
    }
    return AS_OK;
}
