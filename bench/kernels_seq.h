/* The cases of `kernels` about sequences and memory, and a device's highest rates. */
#ifndef ASSAY_BENCH_KERNELS_SEQ_H
#define ASSAY_BENCH_KERNELS_SEQ_H

#include "kernels/backend.h"

/* Measure and report the highest rates of the device: one large matrix product, and a copy far
 * larger than its caches. On cuda these are the floors of bench_sequences(). On the host it reports
 * nothing, and there are no floors. */
void bench_ceilings(struct backend *be);

/* Attention, layer normalisation, embedding, gather, averages. */
void bench_sequences(struct backend *be);

#endif
