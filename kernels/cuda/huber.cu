#include "kernels/cuda/loss.cuh"

struct huber {
    size_t members, batch, outputs;
    double scale; /* grad_scale / (B O) */
    struct dev_f32 pred, target, dpred, delta, row_loss;
};

__device__ static double loss_of(double e, double delta)
{
    double size = fabs(e);
    return size <= delta ? e * e / 2 : delta * (size - delta / 2);
}

/* NaN stays. */
__device__ static double slope_of(double e, double delta)
{
    return e < -delta ? -delta : e > delta ? delta : e;
}

/* A warp per row. */
__global__ static void huber_rows(struct huber a)
{
    FOR_MEMBERS(k, a.members)
    {
        double delta = (double)*a.delta.at(k);
        FOR_ROWS(r, a.batch)
        {
            double sum = 0;
            for (size_t o = threadIdx.x % WARP; o < a.outputs; o += WARP) {
                size_t at = r * a.outputs + o; /* [B, O] */
                double e = (double)a.pred.at(k)[at] - (double)a.target.at(k)[at];
                sum += loss_of(e, delta);
                if (a.dpred.p != nullptr)
                    a.dpred.at(k)[at] = (float)(a.scale * slope_of(e, delta));
            }
            sum = warp_sum(sum);
            if (threadIdx.x % WARP == 0)
                a.row_loss.at(k)[r] = a.outputs > 0 ? (float)(sum / (double)a.outputs) : 0.0f;
        }
    }
}

as_status cuda_huber(struct backend *be, const struct huber_args *a, struct as_err *err)
{
    const struct mse_args *m = &a->mse;
    if (m->members == 0)
        return AS_OK;
    cuda_use(be);
    struct huber h = {m->members,
                      m->batch,
                      m->outputs,
                      (double)m->grad_scale / ((double)m->batch * (double)m->outputs),
                      f32_of(m->pred),
                      f32_of(m->target),
                      f32_of(m->dpred),
                      f32_of(a->delta),
                      f32_of(m->out.row_loss)};
    LAUNCH(huber_rows, grid_over_rows(m->batch, m->members), THREADS, 0, cuda_of(be)->stream, h);
    return cuda_reduce_rows(be, &m->out, m->members, m->batch, "huber", err);
}
