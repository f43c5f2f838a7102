/* Convolution, pooling and batch normalisation: the part of bench/kernels that looks at images. */
#ifndef ASSAY_BENCH_KERNELS_CONV_H
#define ASSAY_BENCH_KERNELS_CONV_H

#include "kernels/backend.h"

/* Report all cases on `be`; ends the program when one cannot run. */
void bench_images(struct backend *be);

/* Both paths of convolution on cuda (ASSAY_CUDA_CONV) on the layers of our networks, alone and 16
 * members at once, in float32 and with bf16; sets that variable. Only where cuda opens. */
void bench_conv_paths(void);

#endif
