#include "kernels/cuda/cuda.cuh"

__global__ static void ema(struct dev_f32 params, struct dev_f32 average, struct dev_f32 decay,
                           struct dev_i32 active, size_t members, size_t n)
{
    FOR_MEMBERS(k, members)
    {
        if (active.p != nullptr && *active.at(k) == 0)
            continue;
        float keep = *decay.at(k), rest = (float)(1 - (double)keep);
        FOR_ELEMENTS(i, n)
        average.at(k)[i] = keep * average.at(k)[i] + rest * params.at(k)[i];
    }
}

as_status cuda_ema(struct backend *be, const struct ema_args *a, struct as_err *err)
{
    if (a->members == 0 || a->n == 0)
        return AS_OK;
    cuda_use(be);
    LAUNCH(ema, grid_over(a->n, a->members), THREADS, 0, cuda_of(be)->stream, f32_of(a->params),
           f32_of(a->average), f32_of(a->decay), i32_of(a->active), a->members, a->n);
    return cuda_launched("moving average", err);
}
