#include "base/rng.h"

#include <math.h>

void philox4x32(uint64_t key, uint64_t hi, uint64_t lo, uint32_t ret[4])
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c[4] = {(uint32_t)lo, (uint32_t)(lo >> 32), (uint32_t)hi, (uint32_t)(hi >> 32)};
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c[0];
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c[2];
        uint32_t n[4] = {(uint32_t)(p1 >> 32) ^ c[1] ^ k0, (uint32_t)p1,
                         (uint32_t)(p0 >> 32) ^ c[3] ^ k1, (uint32_t)p0};
        for (int i = 0; i < 4; i++)
            c[i] = n[i];
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < 4; i++)
        ret[i] = c[i];
}

void rng_init(struct rng *r, uint64_t key, uint64_t hi)
{
    *r = (struct rng){.key = key, .hi = hi};
}

uint32_t rng_u32(struct rng *r)
{
    if (r->have == 0) {
        philox4x32(r->key, r->hi, r->lo++, r->buf);
        r->have = 4;
    }
    return r->buf[4 - r->have--];
}

uint64_t rng_u64(struct rng *r)
{
    uint64_t low = rng_u32(r);
    return low | (uint64_t)rng_u32(r) << 32;
}

double rng_uniform(struct rng *r)
{
    return (double)(rng_u64(r) >> 11) * 0x1p-53;
}

uint64_t rng_below(struct rng *r, uint64_t bound)
{
    uint64_t v = rng_u64(r);
    /* Those below 2^64 mod bound would be one too many; a division is not needed to see most. */
    while (v < bound && v < -bound % bound)
        v = rng_u64(r);
    return v % bound;
}

double rng_normal(struct rng *r)
{
    double u = 1.0 - rng_uniform(r); /* (0, 1] */
    double v = rng_uniform(r);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586476925 * v);
}

uint64_t rng_mix(uint64_t a, uint64_t b)
{
    uint64_t z = a * 0x9E3779B97F4A7C15u + b + 0x632BE59BD9B4E019u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}
