/* One strided-batched product over the members; a shared tensor is stride 0. cuBLAS is
 * column-major: a row-major [m, n] is its [n, m], so products are written with their factors
 * exchanged. FP32 throughout (no TF32): the oracle's bounds hold. */
#include "kernels/cuda/cuda.cuh"

__global__ static void zero(struct dev_f32 c, size_t members, size_t n)
{
    FOR_MEMBERS(k, members)
    {
        FOR_ELEMENTS(i, n)
        c.at(k)[i] = 0.0f;
    }
}

/* A factor: its place, whether it is transposed, and its row length in memory. */
struct factor {
    struct tensor t;
    bool transposed;
    size_t row;
};

/* c[k] [m, n] = beta c[k] + op(a[k]) op(b[k]), row-major, inner size `inner`. */
static as_status gemm(struct backend *be, size_t members, size_t m, size_t n, size_t inner,
                      struct factor a, struct factor b, float beta, struct tensor c,
                      struct as_err *err)
{
    if (members == 0 || m == 0 || n == 0)
        return AS_OK;
    if (inner == 0) { /* an empty sum; cuBLAS is not asked what it makes of one */
        if (beta == 0.0f)
            LAUNCH(zero, grid_over(m * n, members), THREADS, 0, cuda_of(be)->stream, f32_of(c),
                   members, m * n);
        return cuda_launched("product", err);
    }
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
    as_status st = gemm(be, a->members, a->batch, a->out, a->in, {a->x, false, a->in},
                        {a->w, false, a->out}, 0.0f, y, err);
    return st < 0 ? st : cuda_bias_act(be, act, a->members, a->batch, a->out, y, a->b, z, err);
}

/* db[o] (+)= sum of dy over the rows. A block has 32 columns; its 8 warps take every eighth row,
 * and their sums are added in order. */
__global__ static void sum_rows(struct dev_f32 dy, struct dev_f32 db, size_t members, size_t rows,
                                size_t cols, bool accumulate)
{
    __shared__ float part[WARPS][WARP];
    FOR_MEMBERS(k, members)
    {
        size_t c = blockIdx.x * (size_t)WARP + threadIdx.x;
        float sum = 0.0f;
        for (size_t r = threadIdx.y; c < cols && r < rows; r += WARPS)
            sum += dy.at(k)[r * cols + c];
        part[threadIdx.y][threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.y == 0 && c < cols) {
            float total = accumulate ? db.at(k)[c] : 0.0f;
            for (int w = 0; w < WARPS; w++)
                total += part[w][threadIdx.x];
            db.at(k)[c] = total;
        }
        __syncthreads();
    }
}

static as_status backward_b(struct backend *be, const struct linear_args *a,
                            const struct linear_grads *g, struct as_err *err)
{
    if (a->members == 0 || a->out == 0)
        return AS_OK;
    /* Every column needs a block here: 2^31 / 32 fit in the grid's x. */
    dim3 grid((unsigned)((a->out + WARP - 1) / WARP), blocks_for(a->members, 1, GRID_YZ_MAX));
    LAUNCH(sum_rows, grid, dim3(WARP, WARPS), 0, cuda_of(be)->stream, f32_of(g->dy), f32_of(g->db),
           a->members, a->batch, a->out, g->accumulate);
    return cuda_launched("bias gradient", err);
}

as_status cuda_linear_backward(struct backend *be, const struct linear_args *a,
                               const struct linear_grads *g, struct as_err *err)
{
    cuda_use(be);
    as_status st = AS_OK;
    if (g->dw.buf != NULL)
        st = gemm(be, a->members, a->in, a->out, a->batch, {a->x, true, a->in},
                  {g->dy, false, a->out}, g->accumulate ? 1.0f : 0.0f, g->dw, err);
    if (st == AS_OK && g->db.buf != NULL)
        st = backward_b(be, a, g, err);
    if (st == AS_OK && g->dx.buf != NULL)
        st = gemm(be, a->members, a->batch, a->in, a->out, {g->dy, false, a->out},
                  {a->w, true, a->out}, 0.0f, g->dx, err);
    return st;
}
