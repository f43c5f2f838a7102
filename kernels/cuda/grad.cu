/* Statistics in two launches: blocks write partial sums to the back end's own memory, then a block
 * for each member adds them in a fixed order. */
#include "kernels/cuda/cuda.cuh"

#define PARTS_MAX 1024 /* blocks per member at most: fills any device when K = 1 */
#define ELEMENTS_PER_PART 4096

/* Members [first, first + members). */
__global__ static void grad_parts(struct dev_f32 grads, struct pair *parts, size_t first,
                                  size_t members, size_t n)
{
    FOR_MEMBERS(k, members)
    {
        const float *g = grads.at(first + k);
        double sum = 0;
        int odd = 0;
        FOR_ELEMENTS(i, n)
        {
            sum += (double)g[i] * (double)g[i];
            odd |= !isfinite(g[i]);
        }
        sum = block_sum(sum);
        odd = block_sum(odd);
        if (threadIdx.x == 0)
            parts[k * gridDim.x + blockIdx.x] = {sum, (double)odd};
    }
}

__global__ static void grad_sum(const struct pair *parts, size_t n_parts, size_t first,
                                size_t members, struct dev_f32 sq_norm, struct dev_i32 finite,
                                struct dev_i32 active)
{
    FOR_MEMBERS(k, members)
    {
        double sum = 0;
        int odd = 0;
        for (size_t i = threadIdx.x; i < n_parts; i += THREADS) {
            sum += parts[k * n_parts + i].a;
            odd |= parts[k * n_parts + i].b != 0;
        }
        sum = block_sum(sum);
        odd = block_sum(odd);
        if (threadIdx.x != 0)
            continue;
        *sq_norm.at(first + k) = (float)sum;
        *finite.at(first + k) = odd == 0;
        if (active.p != nullptr && odd != 0)
            *active.at(first + k) = 0;
    }
}

as_status cuda_grad_stats(struct backend *be, const struct grad_stats_args *a, struct as_err *err)
{
    cuda_use(be);
    struct cuda_backend *c = cuda_of(be);
    unsigned n_parts = blocks_for(a->n, ELEMENTS_PER_PART, PARTS_MAX);
    size_t most = ROOM_PAIRS / n_parts; /* members per launch */
    if (most > GRID_YZ_MAX)
        most = GRID_YZ_MAX;
    for (size_t first = 0; first < a->members; first += most) {
        size_t members = a->members - first < most ? a->members - first : most;
        LAUNCH(grad_parts, dim3(n_parts, (unsigned)members), THREADS, 0, c->stream,
               f32_of(a->grads), c->room, first, members, a->n);
        LAUNCH(grad_sum, dim3(1, (unsigned)members), THREADS, 0, c->stream, c->room, n_parts, first,
               members, f32_of(a->sq_norm), i32_of(a->finite), i32_of(a->active));
    }
    return cuda_launched("gradient stats", err);
}

__global__ static void grad_clip(struct dev_f32 grads, struct dev_f32 sq_norm,
                                 struct dev_f32 max_norm, size_t members, size_t n)
{
    FOR_MEMBERS(k, members)
    {
        double norm = sqrt((double)*sq_norm.at(k)), most = (double)*max_norm.at(k);
        if (!isfinite(norm) || !(most > 0) || most >= norm + 1e-6)
            continue;
        float by = (float)(most / (norm + 1e-6));
        FOR_ELEMENTS(i, n)
        grads.at(k)[i] *= by;
    }
}

as_status cuda_grad_clip(struct backend *be, const struct grad_clip_args *a, struct as_err *err)
{
    if (a->members == 0 || a->n == 0)
        return AS_OK;
    cuda_use(be);
    LAUNCH(grad_clip, grid_over(a->n, a->members), THREADS, 0, cuda_of(be)->stream,
           f32_of(a->grads), f32_of(a->sq_norm), f32_of(a->max_norm), a->members, a->n);
    return cuda_launched("gradient clip", err);
}

__global__ static void accumulate(struct dev_f32 grads, struct dev_f32 sum, struct dev_f32 scale,
                                  struct dev_i32 first, size_t members, size_t n)
{
    FOR_MEMBERS(k, members)
    {
        bool begins = *first.at(k) != 0;
        float by = *scale.at(k);
        FOR_ELEMENTS(i, n)
        {
            float share = by * grads.at(k)[i];
            sum.at(k)[i] = begins ? share : sum.at(k)[i] + share;
        }
    }
}

as_status cuda_grad_accumulate(struct backend *be, const struct grad_accumulate_args *a,
                               struct as_err *err)
{
    if (a->members == 0 || a->n == 0)
        return AS_OK;
    cuda_use(be);
    LAUNCH(accumulate, grid_over(a->n, a->members), THREADS, 0, cuda_of(be)->stream,
           f32_of(a->grads), f32_of(a->sum), f32_of(a->scale), i32_of(a->first), a->members, a->n);
    return cuda_launched("gradient accumulate", err);
}
