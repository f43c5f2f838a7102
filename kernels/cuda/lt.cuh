/* Products of matrices through cublasLt, with what follows them in the same launch.
 *
 * Plans. What cublasLt needs to know of a product (descriptors, the algorithm) is made at the first
 * call of its shape and kept for the back end's life; the heuristics are asked then and never
 * again. The trainer makes every call of a step once before it records the step, so nothing is
 * asked while it records; elsewhere a missing plan is made even then (the heuristics run on the
 * host alone), so that a record gives the bits of the calls. A plan may say that cublasLt has no
 * algorithm: the caller then has another way.
 *
 * Equal bits alone and in a group. The algorithm is chosen for one member, by sizes, row lengths
 * and the alignment that holds for any slot (of the tensor's place and its stride); how many
 * members there are is not asked. It is then used for all members in one launch where cublasLt
 * takes it so (cublasLtMatmulAlgoCheck), else with a launch for each. Sums are not split (no
 * split-K): one order, one result.
 *
 * ReLU. NaN must reach its output (ops_dense.h), which cublasLt does not promise: a plan with ReLU
 * tries its algorithm on a small product of NaN first, and is refused when they are lost. It has
 * the algorithm of the plan without ReLU, and so its bits. It is not made while a graph is
 * recorded.
 *
 * Memory: the workspace is cuBLAS's own (one stream: they never run side by side), 32 MiB; a plan
 * is about 1 KiB of the host's. */
#ifndef ASSAY_KERNELS_CUDA_LT_CUH
#define ASSAY_KERNELS_CUDA_LT_CUH

#include "kernels/cuda/cuda.cuh"

/* c[k] [m, n] = beta c[k] + op(a[k]) op(b[k]), row-major, as cuda_gemm. */
struct product {
    size_t members, m, n, inner;
    struct factor a, b;
    float beta;
    struct tensor c;
    struct tensor bias; /* [K, n]: what LT_BIAS adds, or where LT_BIAS_GRAD goes */
};

enum {
    LT_BIAS = 1,      /* c + bias, the same for each row */
    LT_RELU = 2,      /* then max(c, 0) */
    LT_BIAS_GRAD = 4, /* bias = the sums of b over the inner size; alone, and b not transposed */
};

/* Do the product with what is asked for (an OR of the above), all of it or nothing: *ret_done tells
 * which. Nothing is done where a size is 0, or ASSAY_CUDA_PRODUCTS is gemm. */
as_status lt_product(struct backend *be, const struct product *p, unsigned fused, bool *ret_done,
                     struct as_err *err);

#endif
