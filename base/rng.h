/* Counter-based random numbers: Philox4x32-10.
 *
 * Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
 * A draw is a pure function of (key, counter): there is no state to store, and the order of draws
 * does not matter. */
#ifndef ASSAY_BASE_RNG_H
#define ASSAY_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

/* Four 32-bit words for a 128-bit counter (hi, lo) under a 64-bit key. */
void philox4x32(uint64_t key, uint64_t hi, uint64_t lo, uint32_t ret[4]);

/* A stream: the draws for one purpose under one key. `hi` names the purpose (a trial number << 8 |
 * purpose, or a step and layer); `lo` counts the draws. A copy of a stream continues where the
 * stream is. */
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

/* The values that the next n calls of rng_u64() or rng_normal() would return, in two thirds of the
 * time. */
void rng_fill(struct rng *r, uint64_t *ret, size_t n);
void rng_normals(struct rng *r, double *ret, size_t n);

/* Mix two 64-bit values into one well-spread key (splitmix64 finaliser). */
uint64_t rng_mix(uint64_t a, uint64_t b);

#endif
