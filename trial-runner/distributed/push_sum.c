#include "trial-runner/distributed/push_sum.h"

#include "base/rng.h"

#define PURPOSE 0x60551b /* keeps these draws apart from others under the seed */

double push_sum_give(double *w)
{
    *w /= 2;
    return *w;
}

void push_sum_take(float *x, double *w, const float *model, double weight, size_t n)
{
    double sum = *w + weight, own = *w / sum, other = weight / sum;
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(own * (double)x[i] + other * (double)model[i]);
    *w = sum;
}

int32_t push_sum_peer(uint64_t seed, uint64_t step, uint32_t index, int32_t rank, int32_t n)
{
    struct rng g;
    rng_init(&g, rng_mix(seed, PURPOSE), step << 24 | (uint64_t)index << 12 | (uint64_t)rank);
    return (int32_t)((rank + 1 + (int32_t)rng_below(&g, (uint64_t)n - 1)) % n);
}
