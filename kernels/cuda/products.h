/* The ways to compute a matrix product on a device, and a counter for each way, for tests and
 * benchmarks, in C.
 *
 * ASSAY_CUDA_PRODUCTS, read when a back end is opened:
 *   auto    (the default) cublasLt if it has an algorithm (product.cuh), else cuBLAS; long sums in
 *           parts (split.cu)
 *   lt      the same, with all sums whole
 *   gemm    cuBLAS alone, with separate kernels for bias, activation and sums: the way that the
 *           others are compared with
 * Any other value is AS_E_INVAL. */
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
    uint64_t planned;      /* plans made: each asked cublasLt's heuristics once */
    uint64_t planned_late; /* of `planned`, those made while a graph was recorded */
    uint64_t refused;      /* of `planned`, those without an algorithm of cublasLt */
    uint64_t lt;           /* products by cublasLt */
    uint64_t bias;         /* of `lt`, those with the bias added in the same launch */
    uint64_t relu;         /* of `lt`, those with ReLU in the same launch */
    uint64_t bias_grad;    /* of `lt`, those with the bias gradient in the same launch */
    uint64_t one_by_one;   /* of `lt`, those with a launch per member */
    uint64_t gemm;         /* products by cuBLAS */
    uint64_t split;        /* products in parts; each part or row of parts also counts by its way */
    uint64_t split_from;   /* not a counter: the shortest sum that is split; 0: none is */
};

/* The counters of a back end that the plugin opened: a view of be. The plugin exports it under the
 * name below; dlopen() of the plugin's file gives a program the plugin that backend_open() uses. */
typedef const struct products_count *cuda_products_count(const struct backend *be);
#define CUDA_PRODUCTS_COUNT_SYMBOL "assay_cuda_products_count"

#ifdef __cplusplus
}
#endif

#endif
