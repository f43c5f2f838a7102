/* How products of matrices are done on a device, and how often each way was taken: for tests and
 * benchmarks, in C.
 *
 * ASSAY_CUDA_PRODUCTS, read when a back end is opened:
 *   auto    (the default) a kernel of ours where a product is small, else cublasLt where it has an
 *           algorithm (product.cuh), else cuBLAS
 *   small   the kernel of ours whatever the size: to find where it stops paying
 *   lt      cublasLt whatever the size, else cuBLAS
 *   gemm    cuBLAS alone, bias, activation and sums by kernels of their own: what the others are
 * held against Any other value is AS_E_INVAL. */
#ifndef ASSAY_KERNELS_CUDA_PRODUCTS_H
#define ASSAY_KERNELS_CUDA_PRODUCTS_H

#include <stdint.h>

#include "kernels/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_PRODUCTS_ENV "ASSAY_CUDA_PRODUCTS"

/* Products since the back end was opened; one recorded into a graph counts once, when recorded. */
struct products_count {
    uint64_t planned;       /* plans made: each asked cublasLt's heuristics once */
    uint64_t planned_late;  /* of them, while a graph was recorded */
    uint64_t refused;       /* of them, those for which cublasLt has nothing: others do them */
    uint64_t lt;            /* products by cublasLt */
    uint64_t bias;          /* of them, with the bias added in the same launch */
    uint64_t relu;          /* of them, with ReLU in the same launch */
    uint64_t bias_grad;     /* of them, with the bias gradient in the same launch */
    uint64_t one_by_one;    /* of them, with a launch per member */
    uint64_t small;         /* products by our own kernel, with all that was to follow */
    uint64_t small_at_most; /* not a count: multiply-adds of the largest that is small */
    uint64_t gemm;          /* products by cuBLAS */
};

/* Of a back end that the plugin opened: view of be. The plugin exports it under the name below;
 * dlopen() of the plugin's file gives a program the plugin that backend_open() uses. */
typedef const struct products_count *cuda_products_count(const struct backend *be);
#define CUDA_PRODUCTS_COUNT_SYMBOL "assay_cuda_products_count"

#ifdef __cplusplus
}
#endif

#endif
