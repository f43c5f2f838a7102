/* Counter-based random numbers: Philox4x32-10.
 *
 * Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
 * A draw is a pure function of (key, counter): no state travels, nothing depends on order. */
#ifndef ASSAY_BASE_RNG_H
#define ASSAY_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

/* Four 32-bit words for a 128-bit counter (hi, lo) under a 64-bit key. */
void philox4x32(uint64_t key, uint64_t hi, uint64_t lo, uint32_t ret[4]);

/* A stream: the draws of one purpose under one key. `hi` names the purpose (a trial number << 8 |
 * purpose, or a step and layer); the draw index runs in `lo`. Copying a stream copies its place. */
struct rng {
    uint64_t key, hi, lo;
    uint32_t buf[4];
    unsigned have; /* words left in buf */
};

void rng_init(struct rng *r, uint64_t key, uint64_t hi);
uint32_t rng_u32(struct rng *r);
uint64_t rng_u64(struct rng *r);
double rng_uniform(struct rng *r);                 /* [0, 1), 53 bits */
uint64_t rng_below(struct rng *r, uint64_t bound); /* [0, bound) without bias; bound > 0 */
double rng_normal(struct rng *r);                  /* mean 0, deviation 1 (Box-Muller) */

/* The next n of rng_u64() and of rng_normal(), the same values, in two thirds of the time. */
void rng_fill(struct rng *r, uint64_t *ret, size_t n);
void rng_normals(struct rng *r, double *ret, size_t n);

/* Mix two 64-bit values into one well-spread key (splitmix64 finaliser). */
uint64_t rng_mix(uint64_t a, uint64_t b);

#endif
