/* Convolution, pooling and batch normalisation: the part of bench/kernels about images. */
#ifndef ASSAY_BENCH_KERNELS_CONV_H
#define ASSAY_BENCH_KERNELS_CONV_H

#include "kernels/backend.h"

/* Report all cases on `be`; ends the program when one cannot run. */
void bench_images(struct backend *be);

/* Both paths of convolution on cuda (ASSAY_CUDA_CONV) on the layers of our networks, with 1 and 16
 * members, in float32 and with bf16. It sets that variable. It runs only where cuda opens. */
void bench_conv_paths(void);

#endif
