/* Random bits of dropout and augmentation, inline, for the fast back ends: one source for host
 * and device, so that the masks agree bit for bit. The reference draws the same bits from
 * base/rng.h.
 *
 * Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. */
#ifndef ASSAY_KERNELS_PHILOX_H
#define ASSAY_KERNELS_PHILOX_H

#include <stdint.h>

#include "kernels/ops_data.h"
#include "kernels/ops_dense.h"

/* nvcc compiles a function for the device only with these attributes. */
#ifdef __CUDACC__
#define PHILOX_FN __host__ __device__ static inline
#else
#define PHILOX_FN static inline
#endif

#define PHILOX_M0 0xD2511F53u
#define PHILOX_M1 0xCD9E8D57u
#define PHILOX_W0 0x9E3779B9u
#define PHILOX_W1 0xBB67AE85u
#define PHILOX_ROUNDS 10

/* One round over the counter c; the caller adds W0 and W1 to the key. */
PHILOX_FN void philox_round(uint32_t *c0, uint32_t *c1, uint32_t *c2, uint32_t *c3, uint32_t key0,
                            uint32_t key1)
{
    uint64_t p0 = (uint64_t)PHILOX_M0 * *c0, p1 = (uint64_t)PHILOX_M1 * *c2;
    *c0 = (uint32_t)(p1 >> 32) ^ *c1 ^ key0;
    *c2 = (uint32_t)(p0 >> 32) ^ *c3 ^ key1;
    *c1 = (uint32_t)p1;
    *c3 = (uint32_t)p0;
}

/* Four words for a 128-bit counter under a 64-bit key: base/rng.h's philox4x32. */
PHILOX_FN void philox_block(uint64_t key, uint64_t hi, uint64_t lo, uint32_t ret[4])
{
    uint32_t c0 = (uint32_t)lo, c1 = (uint32_t)(lo >> 32);
    uint32_t c2 = (uint32_t)hi, c3 = (uint32_t)(hi >> 32);
    uint32_t key0 = (uint32_t)key, key1 = (uint32_t)(key >> 32);
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        philox_round(&c0, &c1, &c2, &c3, key0, key1);
        key0 += PHILOX_W0;
        key1 += PHILOX_W1;
    }
    ret[0] = c0;
    ret[1] = c1;
    ret[2] = c2;
    ret[3] = c3;
}

/* Elements whose word is below this are dropped: rate * 2^32, truncated; 0: none, 2^32: all. */
PHILOX_FN uint64_t dropout_threshold(float rate)
{
    if (!(rate > 0.0f))
        return 0;
    if (rate >= 1.0f)
        return UINT64_C(1) << 32;
    return (uint64_t)((double)rate * 4294967296.0);
}

/* The factor of the kept elements. */
PHILOX_FN float dropout_scale(float rate)
{
    if (!(rate > 0.0f))
        return 1.0f;
    return rate >= 1.0f ? 0.0f : 1.0f / (1.0f - rate);
}

#endif
