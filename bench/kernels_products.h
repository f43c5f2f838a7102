/* The cases of `kernels` that hold the ways of a product on a device against each other. */
#ifndef ASSAY_BENCH_KERNELS_PRODUCTS_H
#define ASSAY_BENCH_KERNELS_PRODUCTS_H

/* Linear layers, forward (with bias and ReLU) and backward, as recorded steps: by each way of
 * ASSAY_CUDA_PRODUCTS (kernels/cuda/products.h), in float32 and with bfloat16 factors. The peer of
 * every way is `gemm`. On cuda; it opens back ends of its own and leaves the variable set, so it is
 * the last to be called. */
void bench_products(void);

#endif
