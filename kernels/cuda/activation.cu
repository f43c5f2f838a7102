/* Bias and activation behind a product that has not fused them, activations alone, and their
 * gradients. The kind is a template parameter, so each kernel has no branch in its loop. Bias goes
 * by blocks of columns and rows, because a bias belongs to a column; the others go over all
 * elements alike. ReLU keeps a NaN (decision 3001). */
#include "kernels/cuda/cuda.cuh"

/* 1 / sqrt 2, 1 / sqrt(2 pi) */
#define SQRT_HALF 0.707106781f
#define NORMAL_PEAK 0.398942280f

template <act_kind act> __device__ static inline float activate(float z)
{
    switch (act) {
    case ACT_RELU:
        return z < 0.0f ? 0.0f : z;
    case ACT_TANH:
        return tanhf(z);
    case ACT_GELU:
        return 0.5f * z * (1.0f + erff(z * SQRT_HALF));
    default:
        return z;
    }
}

/* The derivative, from the output (relu, tanh) or the input (gelu). */
template <act_kind act> __device__ static inline float slope(float kept)
{
    switch (act) {
    case ACT_RELU:
        return kept <= 0.0f ? 0.0f : 1.0f;
    case ACT_TANH:
        return 1.0f - kept * kept;
    case ACT_GELU:
        return 0.5f * (1.0f + erff(kept * SQRT_HALF)) +
               kept * expf(-0.5f * kept * kept) * NORMAL_PEAK;
    default:
        return 1.0f;
    }
}

/* Blocks of 32 columns and 8 rows; members in z. */
template <act_kind act>
__global__ static void bias_act(struct dev_f32 y, struct dev_f32 b, struct dev_f32 z,
                                size_t members, size_t rows, size_t cols)
{
    for (size_t k = blockIdx.z; k < members; k += gridDim.z) {
        float *out = y.at(k), *kept = z.at(k);
        const float *bias = b.at(k);
        for (size_t c = blockIdx.x * (size_t)WARP + threadIdx.x; c < cols;
             c += gridDim.x * (size_t)WARP) {
            float add = bias != nullptr ? bias[c] : 0.0f;
            for (size_t r = blockIdx.y * (size_t)WARPS + threadIdx.y; r < rows;
                 r += gridDim.y * (size_t)WARPS) {
                size_t at = r * cols + c; /* [rows, cols] */
                float v = out[at] + add;
                if (kept != nullptr)
                    kept[at] = v;
                out[at] = activate<act>(v);
            }
        }
    }
}

as_status cuda_bias_act(struct backend *be, act_kind act, size_t members, size_t rows, size_t cols,
                        struct tensor y, struct tensor b, struct tensor z, struct as_err *err)
{
    bool nothing = act == ACT_NONE && b.buf == NULL && z.buf == NULL;
    if (nothing || members == 0 || rows == 0 || cols == 0)
        return AS_OK;
    static void (*const kernels[])(struct dev_f32, struct dev_f32, struct dev_f32, size_t, size_t,
                                   size_t) = {bias_act<ACT_NONE>, bias_act<ACT_RELU>,
                                              bias_act<ACT_TANH>, bias_act<ACT_GELU>};
    cuda_use(be);
    dim3 grid(blocks_for(cols, WARP, 65535), blocks_for(rows, WARPS, 1024),
              blocks_for(members, 1, GRID_YZ_MAX));
    LAUNCH(kernels[act], grid, dim3(WARP, WARPS), 0, cuda_of(be)->stream, f32_of(y), f32_of(b),
           f32_of(z), members, rows, cols);
    return cuda_launched("bias and activation", err);
}

template <act_kind act>
__global__ static void act_forward(struct dev_f32 z, struct dev_f32 y, size_t members, size_t n)
{
    FOR_MEMBERS(k, members)
    {
        FOR_ELEMENTS(i, n)
        y.at(k)[i] = activate<act>(z.at(k)[i]);
    }
}

as_status cuda_activate(struct backend *be, act_kind act, size_t members, size_t n, struct tensor z,
                        struct tensor y, struct as_err *err)
{
    if (members == 0 || n == 0)
        return AS_OK;
    static void (*const kernels[])(struct dev_f32, struct dev_f32, size_t, size_t) = {
        act_forward<ACT_NONE>, act_forward<ACT_RELU>, act_forward<ACT_TANH>, act_forward<ACT_GELU>};
    LAUNCH(kernels[act], grid_over(n, members), THREADS, 0, cuda_of(be)->stream, f32_of(z),
           f32_of(y), members, n);
    return cuda_launched("activation", err);
}

template <act_kind act>
__global__ static void act_backward(struct dev_f32 kept, struct dev_f32 dy, struct dev_f32 dx,
                                    size_t members, size_t n)
{
    FOR_MEMBERS(k, members)
    {
        FOR_ELEMENTS(i, n)
        dx.at(k)[i] = dy.at(k)[i] * slope<act>(kept.at(k)[i]);
    }
}

as_status cuda_act_backward(struct backend *be, const struct act_args *a, struct as_err *err)
{
    if (a->members == 0 || a->n == 0)
        return AS_OK;
    static void (*const kernels[])(struct dev_f32, struct dev_f32, struct dev_f32, size_t,
                                   size_t) = {act_backward<ACT_NONE>, act_backward<ACT_RELU>,
                                              act_backward<ACT_TANH>, act_backward<ACT_GELU>};
    cuda_use(be);
    LAUNCH(kernels[a->act], grid_over(a->n, a->members), THREADS, 0, cuda_of(be)->stream,
           f32_of(a->kept), f32_of(a->dy), f32_of(a->dx), a->members, a->n);
    return cuda_launched("activation backward", err);
}
