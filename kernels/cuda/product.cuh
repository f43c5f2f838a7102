/* Products of matrices with what follows them in the same launch: by a kernel of ours where they
 * are small (small.cu), by cublasLt where it has an algorithm (lt.cu). Each does a product whole or
 * not at all; the caller's last way is cuBLAS and kernels of its own (linear.cu).
 *
 * Which way is taken depends on sizes, row lengths, the precision and the alignment that holds for
 * any slot (of a tensor's place and its stride), never on how many members there are: a member has
 * the same bits alone and in a group. */
#ifndef ASSAY_KERNELS_CUDA_PRODUCT_CUH
#define ASSAY_KERNELS_CUDA_PRODUCT_CUH

#include "kernels/cuda/cuda.cuh"

/* c[k] [m, n] = beta c[k] + op(a[k]) op(b[k]), row-major, as cuda_gemm. */
struct product {
    size_t members, m, n, inner;
    struct factor a, b;
    float beta;
    struct tensor c;
    struct tensor bias; /* [K, n]: what FUSE_BIAS adds, or where FUSE_BIAS_GRAD goes */
};

enum {
    FUSE_BIAS = 1,      /* c + bias, the same for each row */
    FUSE_RELU = 2,      /* then max(c, 0); NaN stays NaN */
    FUSE_BIAS_GRAD = 4, /* bias = the sums of b over the inner size; alone, and b not transposed */
};

/* Do the product with what is asked for (an OR of the above), all of it or nothing: *ret_done tells
 * which. Nothing is done where a size is 0. small_product() first, then lt_product(). */
as_status fused_product(struct backend *be, const struct product *p, unsigned fused, bool *ret_done,
                        struct as_err *err);

/* One launch of our own: up to SMALL_PRODUCTS multiply-adds of each member, in float32 alone. Each
 * element is one chain of fused multiply-adds along the inner size; a bias gradient is summed in
 * double. The limit is a layer of 64 x 64 with 128 rows: below about 64 columns a product of a
 * library costs more for its launch than for its arithmetic. Not measured on a device yet. */
#ifndef SMALL_PRODUCTS /* the emulated build has less, so that its small shapes reach cublasLt too \
                        */
#define SMALL_PRODUCTS ((size_t)1 << 19)
#endif
as_status small_product(struct backend *be, const struct product *p, unsigned fused, bool *ret_done,
                        struct as_err *err);

/* Through cublasLt.
 *
 * Plans. What cublasLt needs to know of a product (descriptors, the algorithm) is made at the first
 * call of its shape and kept for the back end's life; the heuristics are asked then and never
 * again. The trainer makes every call of a step once before it records the step, so nothing is
 * asked while it records; elsewhere a missing plan is made even then (the heuristics run on the
 * host alone), so that a record gives the bits of the calls. A plan may say that cublasLt has no
 * algorithm.
 *
 * The algorithm is chosen for one member, then used for all in one launch where cublasLt takes it
 * so (cublasLtMatmulAlgoCheck), else with a launch for each; what is fused must work for two at
 * once. Sums are not split (no split-K): one order, one result.
 *
 * ReLU. NaN must reach its output (ops_dense.h), which cublasLt does not promise: a plan with ReLU
 * tries its algorithm on a small product of NaN first, and is refused when they are lost. It has
 * the algorithm of the plan without ReLU, and so its bits. It is not made while a graph is
 * recorded.
 *
 * Memory: the workspace is cuBLAS's own (one stream: they never run side by side), 32 MiB; a plan
 * is about 1 KiB of the host's. */
as_status lt_product(struct backend *be, const struct product *p, unsigned fused, bool *ret_done,
                     struct as_err *err);

#endif
