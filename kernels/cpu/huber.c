#include <math.h>

#include "base/cpu_clones.h"
#include "kernels/cpu/cpu.h"

CPU_CLONES static void huber_member(const struct mse_args *m, const float *pred,
                                    const float *target, float *dpred, float *row_loss, float delta,
                                    float scale)
{
    for (size_t r = 0; r < m->batch; r++) {
        double sum = 0;
        for (size_t o = 0; o < m->outputs; o++) {
            size_t at = r * m->outputs + o; /* [B, O] */
            float e = pred[at] - target[at], size = fabsf(e);
            sum += (double)(size <= delta ? 0.5f * e * e : delta * (size - 0.5f * delta));
            if (dpred != NULL)
                dpred[at] = scale * (e < -delta ? -delta : e > delta ? delta : e);
        }
        row_loss[r] = m->outputs > 0 ? (float)(sum / (double)m->outputs) : 0.0f;
    }
}

as_status cpu_huber(struct backend *be, const struct huber_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    const struct mse_args *m = &a->mse;
    double n = (double)m->batch * (double)m->outputs;
    for (size_t k = 0; k < m->members; k++) {
        huber_member(m, tensor_f32(m->pred, k), tensor_f32(m->target, k), tensor_f32(m->dpred, k),
                     tensor_f32(m->out.row_loss, k), *tensor_f32(a->delta, k),
                     (float)((double)m->grad_scale / n));
        cpu_reduce_rows(&m->out, k, m->batch);
    }
    return AS_OK;
}
