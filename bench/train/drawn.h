/* Shapes drawn at random, so that no kernel is good at the shapes of a list alone. */
#ifndef ASSAY_BENCH_TRAIN_DRAWN_H
#define ASSAY_BENCH_TRAIN_DRAWN_H

#include "base/rng.h"
#include "bench/train/trainer.h"

/* A case with its texts; `c` has views of them, so it must not be moved. */
struct drawn_case {
    struct bench_case c;
    char name[96], train[512], torch[512];
};

/* The i-th case: of five, three are networks of dense layers (1 to 3 hidden ones of 16 to 1,024, 4
 * to 1,024 columns, a number or 2 to 50 classes), one a small CNN, one a transformer. Sizes are
 * uniform in their logarithm. */
void drawn_case(struct rng *r, size_t i, struct drawn_case *ret);

#endif
