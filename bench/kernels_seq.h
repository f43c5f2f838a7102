/* The cases of `kernels` that are about sequences and memory, and a device's ceilings. */
#ifndef ASSAY_BENCH_KERNELS_SEQ_H
#define ASSAY_BENCH_KERNELS_SEQ_H

#include "kernels/backend.h"

/* Report what the device reaches at best, measured here and now: one large product of matrices, and
 * a copy far larger than its caches. On cuda these are the floors of bench_sequences(); on the host
 * nothing is reported, and there are none. */
void bench_ceilings(struct backend *be);

/* Attention, layer normalisation, embedding, gather, averages. */
void bench_sequences(struct backend *be);

#endif
