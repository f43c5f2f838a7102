/* Philox by the paper. rng_fill() and rng_normals() compute two counters side by side, because the
 * multiplications of one depend on one another, and return the values that single draws would
 * return (decision 1001). A normal is the cosine half of Box-Muller alone: two uniform draws for
 * each, so the place of a draw follows from its index. */
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

static double uniform_from_bits(uint64_t v)
{
    return (double)(v >> 11) * 0x1p-53;
}

double rng_uniform(struct rng *r)
{
    return uniform_from_bits(rng_u64(r));
}

uint64_t rng_below(struct rng *r, uint64_t bound)
{
    uint64_t v = rng_u64(r);
    /* 2^64 mod bound values must be rejected, else small results are too likely. Comparing with
     * bound first avoids the division nearly always. */
    while (v < bound && v < -bound % bound)
        v = rng_u64(r);
    return v % bound;
}

static double normal_from_bits(uint64_t first, uint64_t second)
{
    double u = 1.0 - uniform_from_bits(first); /* (0, 1] */
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586476925 * uniform_from_bits(second));
}

double rng_normal(struct rng *r)
{
    uint64_t first = rng_u64(r);
    return normal_from_bits(first, rng_u64(r));
}

/* ---- many at once ---- */

#define SIDE 2 /* counters computed side by side: the products of one depend on one another */

/* The blocks of counters lo to lo + SIDE - 1. Each block has two values. */
static void philox_side(uint64_t key, uint64_t hi, uint64_t lo, uint64_t ret[2 * SIDE])
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32), c[SIDE][4];
    for (uint64_t i = 0; i < SIDE; i++) {
        c[i][0] = (uint32_t)(lo + i);
        c[i][1] = (uint32_t)((lo + i) >> 32);
        c[i][2] = (uint32_t)hi;
        c[i][3] = (uint32_t)(hi >> 32);
    }
    for (int round = 0; round < 10; round++) {
#pragma GCC unroll 2
        for (int i = 0; i < SIDE; i++) {
            uint64_t p0 = (uint64_t)0xD2511F53u * c[i][0];
            uint64_t p1 = (uint64_t)0xCD9E8D57u * c[i][2];
            c[i][0] = (uint32_t)(p1 >> 32) ^ c[i][1] ^ k0;
            c[i][2] = (uint32_t)(p0 >> 32) ^ c[i][3] ^ k1;
            c[i][1] = (uint32_t)p1;
            c[i][3] = (uint32_t)p0;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < SIDE; i++) {
        ret[2 * i] = c[i][0] | (uint64_t)c[i][1] << 32;
        ret[2 * i + 1] = c[i][2] | (uint64_t)c[i][3] << 32;
    }
}

void rng_fill(struct rng *r, uint64_t *ret, size_t n)
{
    size_t i = 0;
    for (; i < n && r->have != 0; i++)
        ret[i] = rng_u64(r);
    for (; i + 2 * SIDE <= n; i += 2 * SIDE, r->lo += SIDE)
        philox_side(r->key, r->hi, r->lo, ret + i);
    for (; i < n; i++)
        ret[i] = rng_u64(r);
}

void rng_normals(struct rng *r, double *ret, size_t n)
{
    uint64_t bits[128] = {0};
    for (size_t i = 0; i < n;) {
        size_t len = n - i < 64 ? n - i : 64;
        rng_fill(r, bits, 2 * len);
        for (size_t j = 0; j < len; j++)
            ret[i++] = normal_from_bits(bits[2 * j], bits[2 * j + 1]);
    }
}

uint64_t rng_mix(uint64_t a, uint64_t b)
{
    uint64_t z = a * 0x9E3779B97F4A7C15u + b + 0x632BE59BD9B4E019u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}
