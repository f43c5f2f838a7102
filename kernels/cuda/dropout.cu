#include "kernels/cuda/cuda.cuh"
#include "kernels/philox.h"

/* A thread per four elements: one Philox block. */
__global__ static void dropout(struct dev_f32 x, struct dev_f32 y, struct dev_f32 rate,
                               struct dev_i32 seed, struct dev_i32 step, size_t members, size_t n,
                               uint32_t layer)
{
    FOR_MEMBERS(k, members)
    {
        uint64_t threshold = dropout_threshold(*rate.at(k));
        float scale = dropout_scale(*rate.at(k));
        FOR_ELEMENTS(block, (n + 3) / 4)
        {
            uint32_t word[4] = {(uint32_t)block, (uint32_t)((uint64_t)block >> 32),
                                layer << 8 | DROPOUT_PURPOSE, (uint32_t)*step.at(k)};
            uint32_t key0 = (uint32_t)seed.at(k)[0], key1 = (uint32_t)seed.at(k)[1];
            for (int round = 0; round < PHILOX_ROUNDS; round++) {
                philox_round(&word[0], &word[1], &word[2], &word[3], key0, key1);
                key0 += PHILOX_W0;
                key1 += PHILOX_W1;
            }
            for (size_t j = 0; j < 4 && block * 4 + j < n; j++) {
                size_t i = block * 4 + j;
                y.at(k)[i] = word[j] >= threshold ? x.at(k)[i] * scale : 0.0f;
            }
        }
    }
}

as_status cuda_dropout(struct backend *be, const struct dropout_args *a, struct as_err *err)
{
    if (a->members == 0 || a->n == 0)
        return AS_OK;
    cuda_use(be);
    dropout<<<grid_over((a->n + 3) / 4, a->members), THREADS, 0, cuda_of(be)->stream>>>(
        f32_of(a->x), f32_of(a->y), f32_of(a->rate), i32_of(a->seed), i32_of(a->step), a->members,
        a->n, a->layer);
    return cuda_launched("dropout", err);
}
