#include "base/rng.h"
#include "kernels/reference/reference.h"

as_status ref_dropout(struct backend *be, const struct dropout_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        const float *x = tensor_f32(a->x, k);
        float *y = tensor_f32(a->y, k);
        float rate = tensor_f32(a->rate, k)[0];
        const int32_t *seed = tensor_i32(a->seed, k);
        uint64_t key = (uint32_t)seed[0] | (uint64_t)(uint32_t)seed[1] << 32;
        uint64_t step = (uint32_t)tensor_i32(a->step, k)[0];
        uint64_t hi = step << 32 | (uint64_t)a->layer << 8 | DROPOUT_PURPOSE;
        double drop_below = rate > 0 ? (double)rate * 0x1p32 : 0; /* NaN: 0 */
        for (size_t i = 0; i < a->rows * a->width; i++) {
            uint32_t word[4];
            uint64_t row = i / a->width, unit = i % a->width;
            philox4x32(key, hi, row << 32 | unit / 4, word);
            bool keep = rate < 1 || !(rate > 0) ? word[unit % 4] >= (uint64_t)drop_below : false;
            y[i] = keep ? x[i] * (rate > 0 ? 1 / (1 - rate) : 1) : 0;
        }
    }
    return AS_OK;
}
