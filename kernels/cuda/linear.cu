/* One strided-batched product over the members; a shared tensor is stride 0. cuBLAS is
 * column-major: a row-major [m, n] is its [n, m], so products are written with their factors
 * exchanged. FP32 throughout (no TF32), unless the back end was opened with bf16: the oracle's
 * bounds hold. */
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

as_status cuda_gemm(struct backend *be, size_t members, size_t m, size_t n, size_t inner,
                    struct factor a, struct factor b, float beta, struct tensor c,
                    struct as_err *err)
{
    if (members == 0 || m == 0 || n == 0)
        return AS_OK;
    if (inner == 0) /* an empty sum; cuBLAS is not asked what it makes of one */
        return beta == 0.0f ? cuda_zero(be, c, members, m * n, err) : AS_OK;
    const float one = 1.0f;
    cublasStatus_t s = cublasGemmStridedBatchedEx(
        cuda_of(be)->blas, b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
        a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N, (int)n, (int)m, (int)inner, &one,
        tensor_f32(b.t, 0), CUDA_R_32F, (int)b.row, (long long)b.t.stride, tensor_f32(a.t, 0),
        CUDA_R_32F, (int)a.row, (long long)a.t.stride, &beta, tensor_f32(c, 0), CUDA_R_32F, (int)n,
        (long long)c.stride, (int)members, cuda_of(be)->compute, CUBLAS_GEMM_DEFAULT);
    return blas_status(s, "product", err);
}

as_status cuda_linear_forward(struct backend *be, const struct linear_args *a, act_kind act,
                              struct tensor y, struct tensor z, struct as_err *err)
{
    cuda_use(be);
    as_status st = cuda_gemm(be, a->members, a->batch, a->out, a->in, {a->x, false, a->in},
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

as_status cuda_linear_backward(struct backend *be, const struct linear_args *a,
                               const struct linear_grads *g, struct as_err *err)
{
    cuda_use(be);
    as_status st = AS_OK;
    if (g->dw.buf != NULL)
        st = cuda_gemm(be, a->members, a->in, a->out, a->batch, {a->x, true, a->in},
                       {g->dy, false, a->out}, g->accumulate ? 1.0f : 0.0f, g->dw, err);
    if (st == AS_OK && g->db.buf != NULL)
        st = cuda_sum_rows(be, a->members, a->batch, a->out, g->dy, g->db, g->accumulate, err);
    if (st == AS_OK && g->dx.buf != NULL)
        st = cuda_gemm(be, a->members, a->batch, a->in, a->out, {g->dy, false, a->out},
                       {a->w, true, a->out}, 0.0f, g->dx, err);
    return st;
}
