/* The cases of `kernels` that compare the ways to compute a product on a device. */
#ifndef ASSAY_BENCH_KERNELS_PRODUCTS_H
#define ASSAY_BENCH_KERNELS_PRODUCTS_H

/* Linear layers, forward (with bias and ReLU) and backward, as recorded steps, with each way of
 * ASSAY_CUDA_PRODUCTS (kernels/cuda/products.h), in float32 and with bfloat16 factors. The peer of
 * every way is `gemm`. Only on cuda. It opens back ends of its own and leaves the variable set, so
 * call it last. */
void bench_products(void);

#endif
