#include "kernels/reference/reference.h"

#include <math.h>

static double loss_of(double e, double delta)
{
    double size = fabs(e);
    return size <= delta ? e * e / 2 : delta * (size - delta / 2);
}

/* NaN stays. */
static double slope_of(double e, double delta)
{
    return e < -delta ? -delta : e > delta ? delta : e;
}

static void huber_member(const struct huber_args *a, size_t k)
{
    const struct mse_args *m = &a->mse;
    const float *pred = tensor_f32(m->pred, k), *target = tensor_f32(m->target, k);
    float *dpred = tensor_f32(m->dpred, k), *row_loss = tensor_f32(m->out.row_loss, k);
    double delta = (double)*tensor_f32(a->delta, k);
    double scale = (double)m->grad_scale / ((double)m->batch * (double)m->outputs);
    for (size_t r = 0; r < m->batch; r++) {
        double sum = 0;
        for (size_t o = 0; o < m->outputs; o++) {
            size_t at = r * m->outputs + o; /* [B, O] */
            double e = (double)pred[at] - (double)target[at];
            sum += loss_of(e, delta);
            if (dpred != NULL)
                dpred[at] = (float)(scale * slope_of(e, delta));
        }
        row_loss[r] = m->outputs > 0 ? (float)(sum / (double)m->outputs) : 0;
    }
    ref_reduce_rows(&m->out, k, m->batch);
}

as_status ref_huber(struct backend *be, const struct huber_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->mse.members; k++)
        huber_member(a, k);
    return AS_OK;
}
