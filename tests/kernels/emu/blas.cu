#include <cublas_v2.h>

#include <bit>

struct emu_blas {
    cudaStream_t stream;
};

/* The arguments of one product. */
struct product {
    bool t_a, t_b, rounded;
    int m, n, inner, lda, ldb, ldc, count;
    long long stride_a, stride_b, stride_c;
    float alpha, beta;
    const float *a, *b;
    float *c;
};

const char *cublasGetStatusString(cublasStatus_t s)
{
    return s == CUBLAS_STATUS_INVALID_VALUE ? "an argument is out of range" : "failed";
}

cublasStatus_t cublasCreate(cublasHandle_t *ret)
{
    *ret = new emu_blas();
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t h)
{
    delete h;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t h, cudaStream_t stream)
{
    h->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t h, void *workspace, size_t size)
{
    return h->stream != NULL && workspace != NULL && size > 0 ? CUBLAS_STATUS_SUCCESS
                                                              : CUBLAS_STATUS_INVALID_VALUE;
}

float emu_factor(bool rounded, float v)
{
    uint32_t bits = std::bit_cast<uint32_t>(v);
    if (!rounded || v != v)
        return v;
    bits += 0x7fff + (bits >> 16 & 1);
    return std::bit_cast<float>(bits & 0xffff0000u);
}

static float dot(const struct product &p, const float *a, const float *b, long long i, long long j)
{
    float sum = 0;
    for (long long l = 0; l < p.inner; l++) {
        float x = p.t_a ? a[l + i * p.lda] : a[i + l * p.lda];
        float y = p.t_b ? b[j + l * p.ldb] : b[l + j * p.ldb];
        sum += emu_factor(p.rounded, x) * emu_factor(p.rounded, y);
    }
    return sum;
}

static void multiply(const struct product &p)
{
    for (int k = 0; k < p.count; k++) {
        const float *a = p.a + k * p.stride_a, *b = p.b + k * p.stride_b;
        for (long long j = 0; j < p.n; j++)
            for (long long i = 0; i < p.m; i++) {
                float *c = p.c + k * p.stride_c + i + j * p.ldc;
                *c = p.alpha * dot(p, a, b, i, j) + (p.beta != 0 ? p.beta * *c : 0);
            }
    }
}

static int at_least_one(int n)
{
    return n > 1 ? n : 1;
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t h, cublasOperation_t op_a,
                                          cublasOperation_t op_b, int m, int n, int inner,
                                          const void *alpha, const void *a, cudaDataType type_a,
                                          int lda, long long stride_a, const void *b,
                                          cudaDataType type_b, int ldb, long long stride_b,
                                          const void *beta, void *c, cudaDataType type_c, int ldc,
                                          long long stride_c, int count,
                                          cublasComputeType_t compute, cublasGemmAlgo_t algo)
{
    struct product p = {op_a == CUBLAS_OP_T,
                        op_b == CUBLAS_OP_T,
                        compute == CUBLAS_COMPUTE_32F_FAST_16BF,
                        m,
                        n,
                        inner,
                        lda,
                        ldb,
                        ldc,
                        count,
                        stride_a,
                        stride_b,
                        stride_c,
                        *(const float *)alpha,
                        *(const float *)beta,
                        (const float *)a,
                        (const float *)b,
                        (float *)c};
    bool typed = type_a == CUDA_R_32F && type_b == CUDA_R_32F && type_c == CUDA_R_32F;
    if (m < 0 || n < 0 || inner < 0 || count < 0 || !typed || algo != CUBLAS_GEMM_DEFAULT ||
        lda < at_least_one(p.t_a ? inner : m) || ldb < at_least_one(p.t_b ? n : inner) ||
        ldc < at_least_one(m))
        return CUBLAS_STATUS_INVALID_VALUE;
    emu_enqueue(h->stream, [=] { multiply(p); });
    return CUBLAS_STATUS_SUCCESS;
}
