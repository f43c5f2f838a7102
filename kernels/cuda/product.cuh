/* Matrix products, with bias, ReLU or bias gradient in the same launch, through cublasLt where it
 * has an algorithm (lt.cu): a product completely or not at all. The caller's last way is cuBLAS
 * with kernels of its own (linear.cu). Products with few elements and long sums are cut into parts
 * (split.cu).
 *
 * The way depends on sizes, row lengths, the precision and the alignment that holds for any member
 * (of a tensor's place and its stride), never on the number of members. A member has the same bits
 * alone and in a group. */
#ifndef ASSAY_KERNELS_CUDA_PRODUCT_CUH
#define ASSAY_KERNELS_CUDA_PRODUCT_CUH

#include "kernels/cuda/cuda.cuh"

/* c[k] [m, n] = beta c[k] + op(a[k]) op(b[k]), row-major, as cuda_gemm. */
struct product {
    size_t members, m, n, inner;
    struct factor a, b;
    float beta;
    struct tensor c;
    struct tensor bias; /* [K, n]: FUSE_BIAS adds it, FUSE_BIAS_GRAD writes it */
    /* Bytes; 0: as the factors' places and strides say. A part of a product is aligned no better
     * than the product, so that its plan does not depend on the member. */
    size_t a_align, b_align;
};

/* The alignment in bytes, up to 16, that holds for every member; 0: absent. */
static inline size_t tensor_alignment(struct tensor t)
{
    if (t.buf == NULL)
        return 0;
    size_t bits = (size_t)(uintptr_t)tensor_f32(t, 0) | t.stride * sizeof(float) | 16;
    return bits & (~bits + 1);
}

enum {
    FUSE_BIAS = 1,      /* c + bias, the same for each row */
    FUSE_RELU = 2,      /* then max(c, 0); NaN stays NaN */
    FUSE_BIAS_GRAD = 4, /* bias = the sums of b over the inner size; alone, and b not transposed */
};

/* lt_product(), but nothing if the product is to be split. */
as_status fused_product(struct backend *be, const struct product *p, unsigned fused, bool *ret_done,
                        struct as_err *err);

/* Compute the product without fused steps, not split: by lt_product(), else by cuBLAS. No size is
 * 0. */
as_status whole_product(struct backend *be, const struct product *p, struct as_err *err);

/* In parts (split.cu): sums of at least SPLIT_FROM elements, where m and n leave most of a device
 * idle. Fused steps are the caller's. */
#ifndef SPLIT_FROM /* the emulated build has short sums */
#define SPLIT_FROM 2048
#endif
bool is_split(const struct cuda_backend *c, const struct product *p);
as_status split_product(struct backend *be, const struct product *p, struct as_err *err);

/* Room for the parts, in backends where products are split. close also accepts one without. */
as_status split_open(struct cuda_backend *c, struct as_err *err);
void split_close(struct cuda_backend *c);

/* Through cublasLt: compute the product with `fused` (an OR of the above), all of it or nothing:
 * *ret_done says which. If a size is 0, it does nothing.
 *
 * Plans. A plan holds cublasLt's descriptors and the algorithm of a product. It is made at the
 * first call of its shape and kept for the back end's life; the heuristics run then and never
 * again. The trainer makes every call of a step once before it records the step, so it needs no new
 * plan while it records. For other callers a missing plan is made even then (the heuristics run on
 * the host alone), so that a graph gives the bits of the calls. A plan may say that cublasLt has no
 * algorithm.
 *
 * The algorithm is chosen for one member. It then runs for all members in one launch if cublasLt
 * accepts that (cublasLtMatmulAlgoCheck), else with one launch for each. A fused step must work for
 * two members at once. cublasLt splits no sums (no split-K), so there is one order of adding.
 *
 * ReLU. NaN must reach its output (ops_dense.h). cublasLt does not promise this, so a plan with
 * ReLU first runs its algorithm on a small product of NaN, and is refused if they are lost. It has
 * the algorithm of the plan without ReLU, and so its bits. It is not made while a graph is
 * recorded.
 *
 * Memory: the workspace is the 32 MiB of cuBLAS (one stream, so they never run side by side). A
 * plan takes about 1 KiB on the host. */
as_status lt_product(struct backend *be, const struct product *p, unsigned fused, bool *ret_done,
                     struct as_err *err);

#endif
