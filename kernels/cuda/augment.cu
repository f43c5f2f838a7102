#include "kernels/cuda/cuda.cuh"
#include "kernels/philox.h"

struct pictures {
    size_t members, batch;
    int64_t height, width, channels;
    struct dev_f32 x, y, flip;
    struct dev_i32 pad, cutout, seed, step;
};

/* The changes of one image. */
struct change {
    int64_t down, right;
    bool flip;
    int64_t top, left, side; /* of the square set to 0; side 0: none */
};

__device__ static int64_t setting(struct dev_i32 t, size_t k)
{
    return t.p != nullptr && *t.at(k) > 0 ? *t.at(k) : 0;
}

/* A whole number in [0, n). */
__device__ static int64_t below(uint32_t word, uint64_t n)
{
    return (int64_t)((word * n) >> 32);
}

__device__ static struct change change_of(const struct pictures &a, size_t k, size_t r)
{
    uint64_t key = (uint32_t)a.seed.at(k)[0] | (uint64_t)(uint32_t)a.seed.at(k)[1] << 32;
    uint64_t hi = (uint64_t)(uint32_t)*a.step.at(k) << 32 | AUGMENT_PURPOSE;
    uint32_t one[4], two[4];
    philox_block(key, hi, 2 * (uint64_t)r, one);
    philox_block(key, hi, 2 * (uint64_t)r + 1, two);
    int64_t pad = setting(a.pad, k), side = setting(a.cutout, k);
    double share = a.flip.p != nullptr ? (double)*a.flip.at(k) : 0;
    struct change c;
    c.down = below(one[0], 2 * (uint64_t)pad + 1) - pad;
    c.right = below(one[1], 2 * (uint64_t)pad + 1) - pad;
    c.flip = (double)one[2] < share * 4294967296.0;
    c.top = below(two[0], (uint64_t)a.height) - side / 2;
    c.left = below(two[1], (uint64_t)a.width) - side / 2;
    c.side = side;
    return c;
}

/* Element e of the changed image. */
__device__ static float changed(const struct pictures &a, const struct change &c, const float *x,
                                int64_t e)
{
    int64_t ch = e % a.channels, j = e / a.channels % a.width, i = e / a.channels / a.width;
    int64_t row = i - c.down, col = j - c.right;
    bool cut = i >= c.top && i < c.top + c.side && j >= c.left && j < c.left + c.side;
    if (cut || row < 0 || row >= a.height || col < 0 || col >= a.width)
        return 0.0f;
    if (c.flip)
        col = a.width - 1 - col;
    return x[(row * a.width + col) * a.channels + ch]; /* [H, W, C] */
}

/* A block per image. */
__global__ static void augment(struct pictures a)
{
    __shared__ struct change change;
    int64_t size = a.height * a.width * a.channels;
    FOR_MEMBERS(k, a.members)
    {
        for (size_t r = blockIdx.x; r < a.batch; r += gridDim.x) {
            __syncthreads(); /* threads may still read the previous image */
            if (threadIdx.x == 0)
                change = change_of(a, k, r);
            __syncthreads();
            const float *x = a.x.at(k) + (int64_t)r * size;
            float *y = a.y.at(k) + (int64_t)r * size;
            for (int64_t e = threadIdx.x; e < size; e += THREADS)
                y[e] = changed(a, change, x, e);
        }
    }
}

as_status cuda_augment(struct backend *be, const struct augment_args *a, struct as_err *err)
{
    if (a->members == 0 || a->batch == 0 || a->height * a->width * a->channels == 0)
        return AS_OK;
    cuda_use(be);
    struct pictures p = {
        a->members,           a->batch,          (int64_t)a->height, (int64_t)a->width,
        (int64_t)a->channels, f32_of(a->x),      f32_of(a->y),       f32_of(a->flip),
        i32_of(a->pad),       i32_of(a->cutout), i32_of(a->seed),    i32_of(a->step)};
    dim3 grid(blocks_for(a->batch, 1, 65536), blocks_for(a->members, 1, GRID_YZ_MAX));
    LAUNCH(augment, grid, THREADS, 0, cuda_of(be)->stream, p);
    return cuda_launched("augmentation", err);
}
