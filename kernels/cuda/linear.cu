/* Linear layers: one strided-batched product over the members; a shared tensor has stride 0. Bias
 * and ReLU, or the bias gradient, are in the same launch where product.cuh has a way. Otherwise
 * cuBLAS computes the product, and kernels of ours do the rest. cuBLAS is column-major: our
 * row-major [m, n] is its [n, m], so products are written with their factors exchanged. Everything
 * is FP32 (no TF32), so that the oracle's bounds hold, unless the back end was opened with bf16.
 *
 * cublasLt's gelu is the tanh form, ours is the erf form. So the product writes z with its bias,
 * and a kernel of ours computes y from it. cublasLt's dReLU would need a bit mask of the forward
 * pass and the previous layer in the same call: ops_dense.h has neither. */
#include "kernels/cuda/product.cuh"
#include "kernels/cuda/sums.cuh"

__global__ static void zero(struct dev_f32 c, size_t members, size_t n)
{
    FOR_MEMBERS(k, members)
    {
        FOR_ELEMENTS(i, n)
        c.at(k)[i] = 0.0f;
    }
}

as_status cuda_zero(struct backend *be, struct tensor c, size_t members, size_t n,
                    struct as_err *err)
{
    if (members > 0 && n > 0)
        LAUNCH(zero, grid_over(n, members), THREADS, 0, cuda_of(be)->stream, f32_of(c), members, n);
    return cuda_launched("fill with zeros", err);
}

as_status fused_product(struct backend *be, const struct product *p, unsigned fused, bool *ret_done,
                        struct as_err *err)
{
    *ret_done = false;
    if (is_split(cuda_of(be), p))
        return AS_OK;
    return lt_product(be, p, fused, ret_done, err);
}

static as_status blas_product(struct cuda_backend *c, const struct product *p, struct as_err *err)
{
    const float one = 1.0f;
    c->count.gemm++;
    cublasStatus_t s = cublasGemmStridedBatchedEx(
        c->blas, p->b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
        p->a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N, (int)p->n, (int)p->m, (int)p->inner, &one,
        tensor_f32(p->b.t, 0), CUDA_R_32F, (int)p->b.row, (long long)p->b.t.stride,
        tensor_f32(p->a.t, 0), CUDA_R_32F, (int)p->a.row, (long long)p->a.t.stride, &p->beta,
        tensor_f32(p->c, 0), CUDA_R_32F, (int)p->n, (long long)p->c.stride, (int)p->members,
        c->compute, CUBLAS_GEMM_DEFAULT);
    return blas_status(s, "product", err);
}

as_status whole_product(struct backend *be, const struct product *p, struct as_err *err)
{
    bool done = false;
    as_status st = lt_product(be, p, 0, &done, err);
    return st < 0 || done ? st : blas_product(cuda_of(be), p, err);
}

as_status cuda_gemm(struct backend *be, size_t members, size_t m, size_t n, size_t inner,
                    struct factor a, struct factor b, float beta, struct tensor c,
                    struct as_err *err)
{
    if (members == 0 || m == 0 || n == 0)
        return AS_OK;
    if (inner == 0) /* an empty sum: do not rely on cuBLAS for it */
        return beta == 0.0f ? cuda_zero(be, c, members, m * n, err) : AS_OK;
    struct product p = {members, m, n, inner, a, b, beta, c, tensor_none()};
    return is_split(cuda_of(be), &p) ? split_product(be, &p, err) : whole_product(be, &p, err);
}

/* Try the product with the bias, and with ReLU if z is absent, in one launch; *done says
 * whether. */
static as_status forward_fused(struct backend *be, const struct linear_args *a, act_kind act,
                               struct tensor y, struct tensor z, bool *done, struct as_err *err)
{
    unsigned bias = a->b.buf != NULL ? FUSE_BIAS : 0;
    struct product p = {
        a->members, a->batch, a->out, a->in, {a->x, false, a->in}, {a->w, false, a->out},
        0.0f,       y,        a->b};
    as_status st = AS_OK;
    *done = false;
    if (act == ACT_RELU && z.buf == NULL)
        st = fused_product(be, &p, bias | FUSE_RELU, done, err);
    if (st < 0 || *done || (bias == 0 && z.buf == NULL))
        return st;
    if (z.buf != NULL)
        p.c = z;
    st = fused_product(be, &p, bias, done, err);
    if (st < 0 || !*done || (act == ACT_NONE && p.c.buf == y.buf && p.c.offset == y.offset))
        return st;
    return cuda_activate(be, act, a->members, a->batch * a->out, p.c, y, err);
}

as_status cuda_linear_forward(struct backend *be, const struct linear_args *a, act_kind act,
                              struct tensor y, struct tensor z, struct as_err *err)
{
    cuda_use(be);
    bool done = false;
    as_status st = forward_fused(be, a, act, y, z, &done, err);
    if (st < 0 || done)
        return st;
    st = cuda_gemm(be, a->members, a->batch, a->out, a->in, {a->x, false, a->in},
                   {a->w, false, a->out}, 0.0f, y, err);
    return st < 0 ? st : cuda_bias_act(be, act, a->members, a->batch, a->out, y, a->b, z, err);
}

struct bias_sum {
    size_t cols;
    struct dev_f32 dy, db;
    bool accumulate;
    __device__ void add(size_t k, size_t r, size_t c, struct pair &sum) const
    {
        sum.a += (double)dy.at(k)[r * cols + c];
    }
    __device__ void put(size_t k, size_t c, struct pair sum) const
    {
        float *to = db.at(k) + c;
        *to = (float)(accumulate ? (double)*to + sum.a : sum.a);
    }
};

as_status cuda_sum_rows(struct backend *be, size_t members, size_t rows, size_t cols,
                        struct tensor dy, struct tensor db, bool accumulate, struct as_err *err)
{
    struct bias_sum sum = {cols, f32_of(dy), f32_of(db), accumulate};
    return sum_columns(be, members, rows, cols, sum, "bias gradient", err);
}

/* dw and db, in one launch if both are present and overwritten. */
static as_status backward_params(struct backend *be, const struct linear_args *a,
                                 const struct linear_grads *g, struct as_err *err)
{
    struct factor x = {a->x, true, a->in}, dy = {g->dy, false, a->out};
    as_status st = AS_OK;
    if (g->dw.buf != NULL && g->db.buf != NULL && !g->accumulate) {
        struct product p = {a->members, a->in, a->out, a->batch, x, dy, 0.0f, g->dw, g->db};
        bool done = false;
        st = fused_product(be, &p, FUSE_BIAS_GRAD, &done, err);
        if (st < 0 || done)
            return st;
    }
    if (g->dw.buf != NULL)
        st = cuda_gemm(be, a->members, a->in, a->out, a->batch, x, dy, g->accumulate ? 1.0f : 0.0f,
                       g->dw, err);
    if (st == AS_OK && g->db.buf != NULL)
        st = cuda_sum_rows(be, a->members, a->batch, a->out, g->dy, g->db, g->accumulate, err);
    return st;
}

as_status cuda_linear_backward(struct backend *be, const struct linear_args *a,
                               const struct linear_grads *g, struct as_err *err)
{
    cuda_use(be);
    as_status st = backward_params(be, a, g, err);
    if (st == AS_OK && g->dx.buf != NULL)
        st = cuda_gemm(be, a->members, a->batch, a->in, a->out, {g->dy, false, a->out},
                       {a->w, true, a->out}, 0.0f, g->dx, err);
    return st;
}
