/* Convolution, pooling and batch normalisation: the part of bench/kernels that looks at images. */
#ifndef ASSAY_BENCH_KERNELS_CONV_H
#define ASSAY_BENCH_KERNELS_CONV_H

#include "kernels/backend.h"

/* Report all cases on `be`; ends the program when one cannot run. */
void bench_images(struct backend *be);

#endif
