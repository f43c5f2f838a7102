/* Replaces cuBLAS's header where kernels/cuda is compiled for the host. It declares the functions
 * that kernels/cuda calls, with cuBLAS's names and rules. Plain loops (blas.cu): column-major, one
 * chain of float additions per element. */
#ifndef ASSAY_TESTS_KERNELS_EMU_CUBLAS_V2_H
#define ASSAY_TESTS_KERNELS_EMU_CUBLAS_V2_H

#ifdef __cplusplus
#include "tests/kernels/emu/emu.cuh"

struct emu_blas;
typedef struct emu_blas *cublasHandle_t;

enum cublasStatus_t {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_NOT_SUPPORTED = 15
};
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
enum cublasComputeType_t { CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_16BF };
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1 };
enum cudaDataType { CUDA_R_32F };

const char *cublasGetStatusString(cublasStatus_t s);
cublasStatus_t cublasCreate(cublasHandle_t *ret);
cublasStatus_t cublasDestroy(cublasHandle_t h);
cublasStatus_t cublasSetStream(cublasHandle_t h, cudaStream_t stream);
cublasStatus_t cublasSetWorkspace(cublasHandle_t h, void *workspace, size_t size);

/* v, or v rounded to bfloat16: round to nearest, ties to even; NaN stays. */
float emu_factor(bool rounded, float v);

/* c[i] [m, n] = alpha op(a[i]) op(b[i]) + beta c[i], i < count. CUBLAS_COMPUTE_32F_FAST_16BF rounds
 * the factors to bfloat16. */
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t h, cublasOperation_t op_a,
                                          cublasOperation_t op_b, int m, int n, int inner,
                                          const void *alpha, const void *a, cudaDataType type_a,
                                          int lda, long long stride_a, const void *b,
                                          cudaDataType type_b, int ldb, long long stride_b,
                                          const void *beta, void *c, cudaDataType type_c, int ldc,
                                          long long stride_c, int count,
                                          cublasComputeType_t compute, cublasGemmAlgo_t algo);
#endif

#endif
