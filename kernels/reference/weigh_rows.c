#include "kernels/reference/reference.h"

as_status ref_weigh_rows(struct backend *be, const struct weigh_rows_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        const float *weights = tensor_f32(a->weights, k);
        float *row_loss = tensor_f32(a->out.row_loss, k), *gradient = tensor_f32(a->gradient, k);
        for (size_t r = 0; r < a->batch; r++) {
            double w = (double)weights[r];
            row_loss[r] = w > 0 ? (float)(w * (double)row_loss[r]) : 0;
            for (size_t c = 0; gradient && c < a->width; c++) {
                float *g = &gradient[r * a->width + c]; /* [B, D] */
                *g = w > 0 ? (float)(w * (double)*g) : 0;
            }
        }
        ref_reduce_rows(&a->out, k, a->batch);
    }
    return AS_OK;
}
