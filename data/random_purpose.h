/* Which random numbers are for what. Each draw of the trainer is Philox with a seed as its key and
 * a counter made of purpose, place and time. So nothing depends on the order of work, nor on where
 * a run resumed. Dropout in the kernels uses the same key with the purpose DROPOUT_PURPOSE
 * (kernels/ops_dense.h). */
#ifndef ASSAY_DATA_RANDOM_PURPOSE_H
#define ASSAY_DATA_RANDOM_PURPOSE_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/rng.h"

typedef enum draw_purpose {
    DRAW_INIT = 1,          /* at: layer */
    DRAW_SHUFFLE = 2,       /* at: epoch */
    DRAW_SPLIT = 3,         /* under validation.seed */
    DRAW_TREES = 4,         /* at: round; XGBoost's seed from there on */
    DRAW_RESAMPLE = 5,      /* under train.resample; at: 0 */
    DRAW_PRIVATE_ROWS = 6,  /* at: micro-step; which rows are in the batch */
    DRAW_PRIVATE_NOISE = 7, /* at: micro-step; what is added to their gradients */
    DRAW_ROUND_ORDER = 8,   /* at: round x shards + shard; in which order CoCoA goes over rows */
    DRAW_PARTITIONS = 9,    /* under validation.seed; at: 0; which rows are in a partition */
    DRAW_PART_ORDER = 10,   /* at: epoch x partitions + partition; the order of its rows */
    DRAW_CENTROIDS = 11,    /* at: 0; the rows that k-means starts from */
} draw_purpose;

static inline struct rng draw_stream(uint64_t seed, draw_purpose purpose, uint64_t at)
{
    struct rng r;
    rng_init(&r, seed, at << 8 | (uint64_t)purpose);
    return r;
}

/* Values of r that are drawn before they are needed, because many at once are faster. */
struct draw_ahead {
    struct rng *r;
    size_t left;
    uint64_t values[64];
};

/* The value that rng_below(a->r, bound) would return. */
static inline uint64_t draw_below(struct draw_ahead *a, uint64_t bound)
{
    for (;;) {
        if (a->left == 0) {
            a->left = AS_ARRAY_LEN(a->values);
            rng_fill(a->r, a->values, a->left);
        }
        uint64_t v = a->values[AS_ARRAY_LEN(a->values) - a->left--];
        if (v >= bound || v >= -bound % bound) /* see rng_below */
            return v % bound;
    }
}

/* Shuffle n row numbers in place (Fisher and Yates). It draws more values of r than it uses, so the
 * caller must not draw from r afterwards. */
static inline void draw_shuffle(struct rng *r, int32_t *rows, size_t n)
{
    struct draw_ahead a;
    a.r = r;
    a.left = 0;
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)draw_below(&a, i);
        int32_t t = rows[i - 1];
        rows[i - 1] = rows[j];
        rows[j] = t;
    }
}

#endif
