#include "kernels/cuda/cuda.cuh"

#include <cmath>

struct clock {
    size_t members, steps, columns;
    struct dev_f32 table, out;
    struct dev_i32 at;
};

/* A block for each member: all threads read the counter before it changes. */
__global__ static void tick(struct clock a)
{
    FOR_MEMBERS(k, a.members)
    {
        int32_t at = *a.at.at(k);
        bool inside = at >= 0 && (size_t)at < a.steps;
        for (size_t j = threadIdx.x; j < a.columns; j += THREADS)
            a.out.at(k)[j] = inside ? a.table.at(k)[(size_t)at * a.columns + j] : NAN; /* [S, J] */
        __syncthreads();
        if (threadIdx.x == 0)
            *a.at.at(k) = (int32_t)((uint32_t)at + 1);
    }
}

as_status cuda_tick(struct backend *be, const struct tick_args *a, struct as_err *err)
{
    if (a->members == 0)
        return AS_OK;
    cuda_use(be);
    struct clock c = {a->members,       a->n_steps,     a->columns,
                      f32_of(a->table), f32_of(a->out), i32_of(a->at)};
    LAUNCH(tick, grid_over(1, a->members), THREADS, 0, cuda_of(be)->stream, c);
    return cuda_launched("tick", err);
}
