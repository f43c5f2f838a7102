#include "kernels/cuda/cuda.cuh"
#include "kernels/philox.h"

struct dropout {
    size_t members, rows, width;
    struct dev_f32 x, y, rate;
    struct dev_i32 seed, step;
    uint32_t layer;
};

/* The four words of units 4 quad to 4 quad + 3 of a row. */
__device__ static void draw(const struct dropout &d, size_t k, uint32_t row, uint32_t quad,
                            uint32_t word[4])
{
    uint64_t key = (uint32_t)d.seed.at(k)[0] | (uint64_t)(uint32_t)d.seed.at(k)[1] << 32;
    uint64_t step = (uint32_t)*d.step.at(k);
    philox_block(key, step << 32 | d.layer << 8 | DROPOUT_PURPOSE, (uint64_t)row << 32 | quad,
                 word);
}

/* A thread handles four units: one Philox block. */
__global__ static void dropout(struct dropout d)
{
    size_t quads = (d.width + 3) / 4;
    FOR_MEMBERS(k, d.members)
    {
        uint64_t threshold = dropout_threshold(*d.rate.at(k));
        float scale = dropout_scale(*d.rate.at(k));
        FOR_ELEMENTS(block, d.rows * quads)
        {
            size_t row = block / quads, quad = block % quads;
            uint32_t word[4];
            draw(d, k, (uint32_t)row, (uint32_t)quad, word);
            for (size_t j = 0; j < 4 && quad * 4 + j < d.width; j++) {
                size_t i = row * d.width + quad * 4 + j; /* [B, D] */
                d.y.at(k)[i] = word[j] >= threshold ? d.x.at(k)[i] * scale : 0.0f;
            }
        }
    }
}

as_status cuda_dropout(struct backend *be, const struct dropout_args *a, struct as_err *err)
{
    if (a->members == 0 || a->rows == 0 || a->width == 0)
        return AS_OK;
    cuda_use(be);
    struct dropout d = {a->members,      a->rows,         a->width,
                        f32_of(a->x),    f32_of(a->y),    f32_of(a->rate),
                        i32_of(a->seed), i32_of(a->step), a->layer};
    size_t quads = (a->width + 3) / 4;
    LAUNCH(dropout, grid_over(a->rows * quads, a->members), THREADS, 0, cuda_of(be)->stream, d);
    return cuda_launched("dropout", err);
}
