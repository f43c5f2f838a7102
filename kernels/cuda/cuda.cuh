/* Declarations that the files of the CUDA back end share: its state, CUDA's errors as statuses,
 * launches over members.
 *
 * Kernels get plain pointers and strides (`struct dev_f32`, `struct dev_i32`): member k begins at
 * p + k * stride; p is NULL when the tensor is absent. */
#ifndef ASSAY_KERNELS_CUDA_CUDA_CUH
#define ASSAY_KERNELS_CUDA_CUDA_CUH

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include "kernels/backend_priv.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/version.cuh"

/* A launch. tests/kernels/emu defines both macros itself, because it runs kernels on the host. */
#ifdef __CUDACC__
#define LAUNCH(kernel, grid, block, shared, stream, ...)                                           \
    kernel<<<grid, block, shared, stream>>>(__VA_ARGS__)
#define DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#endif

/* Two sums that a block writes for the next launch. */
struct pair {
    double a, b;
};

/* Pairs of the back end's own memory: 1 MiB, used by one operation at a time. At least PARTS_MAX of
 * grad.cu. The emulated build has fewer, so that tests need several launches. */
#ifndef ROOM_PAIRS
#define ROOM_PAIRS 65536
#endif

/* cuBLAS recommends 32 MiB on Hopper, 4 MiB before. It is set once, so that no product allocates
 * and equal calls take equal paths. The emulated build has little, so that it opens quickly. */
#ifndef BLAS_WORKSPACE_BYTES
#define BLAS_WORKSPACE_BYTES ((size_t)32 << 20)
#endif

/* How many steps the host may be ahead of the device (backend_step_end). Two would keep the device
 * busy; more hide a host that is late now and then. */
#define STEPS_AHEAD 4

struct lt; /* plans of products (product.cuh) */

struct cuda_backend {
    struct backend base; /* must be first: a struct backend * points to one of these */
    int device;
    cudaStream_t stream;
    cublasHandle_t blas;
    cublasComputeType_t compute; /* of products: float32 throughout, or with bfloat16 factors */
    void *blas_workspace;        /* [BLAS_WORKSPACE_BYTES] */
    struct lt *lt;               /* NULL: no product goes through cublasLt */
    float *split_room;           /* for the parts of long sums (split.cu); NULL: none is split */
    struct products_count count;
    struct pair *room;                 /* [ROOM_PAIRS], on the device */
    size_t shared_bytes;               /* bytes of shared memory that a block may use */
    bool recording;                    /* between graph_begin and graph_end */
    struct conv_cudnn *conv_cudnn;     /* convolutions through cuDNN (conv.cuh); NULL: our own */
    cudaEvent_t step_end[STEPS_AHEAD]; /* of the last steps, as a ring */
    size_t steps;
    struct copies *copies; /* out of buffers, beside the operations (copies.cu); NULL: none yet */
};

static inline struct cuda_backend *cuda_of(struct backend *be)
{
    return (struct cuda_backend *)be;
}

/* Every operation calls this first: CUDA's current device belongs to the thread, which may be
 * new. */
static inline void cuda_use(struct backend *be)
{
    (void)cudaSetDevice(cuda_of(be)->device); /* the next call reports a failure */
}

/* CUDA's and cuBLAS's results as statuses; `what` is named. AS_E_NOMEM; AS_E_INTERNAL: a fault that
 * our own launches can cause (a wrong argument or address); AS_E_UNAVAILABLE: any other, that is
 * the device or its driver fails. */
as_status cuda_status(cudaError_t e, const char *what, struct as_err *err);
as_status blas_status(cublasStatus_t s, const char *what, struct as_err *err);

/* Check after launches that they started. */
static inline as_status cuda_launched(const char *what, struct as_err *err)
{
    return cuda_status(cudaGetLastError(), what, err);
}

struct dev_f32 {
    float *p;
    size_t stride;
    __device__ float *at(size_t k) const
    {
        return p == nullptr ? nullptr : p + k * stride;
    }
};

struct dev_i32 {
    int32_t *p;
    size_t stride;
    __device__ int32_t *at(size_t k) const
    {
        return p == nullptr ? nullptr : p + k * stride;
    }
};

static inline struct dev_f32 f32_of(struct tensor t)
{
    return {tensor_f32(t, 0), t.stride};
}

static inline struct dev_i32 i32_of(struct tensor t)
{
    return {tensor_i32(t, 0), t.stride};
}

#define THREADS 256
#define WARP 32
#define WARPS (THREADS / WARP)
#define GRID_YZ_MAX 65535u

static inline unsigned blocks_for(size_t n, size_t each, unsigned most)
{
    size_t blocks = (n + each - 1) / each;
    return blocks < 1 ? 1 : blocks > most ? most : (unsigned)blocks;
}

/* A grid over n elements (x) of each member (y). Kernels loop with a stride, so any limit on
 * the grid is right; 4096 blocks fill any device. */
static inline dim3 grid_over(size_t n, size_t members)
{
    return dim3(blocks_for(n, THREADS, 4096), blocks_for(members, 1, GRID_YZ_MAX));
}

/* A warp per row (x), members (y). */
static inline dim3 grid_over_rows(size_t rows, size_t members)
{
    return dim3(blocks_for(rows, WARPS, 65536), blocks_for(members, 1, GRID_YZ_MAX));
}

/* for (k over members) and for (i over n) inside such a grid. */
#define FOR_MEMBERS(k, members) for (size_t k = blockIdx.y; k < (members); k += gridDim.y)
#define FOR_ELEMENTS(i, n)                                                                         \
    for (size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x; i < (n);                           \
         i += gridDim.x * (size_t)THREADS)
#define FOR_ROWS(r, rows)                                                                          \
    for (size_t r = blockIdx.x * (size_t)WARPS + threadIdx.x / WARP; r < (rows);                   \
         r += gridDim.x * (size_t)WARPS)

/* The sum over a warp, the same bits in every lane; the order is fixed. */
template <typename T> __device__ static inline T warp_sum(T v)
{
    for (int step = WARP / 2; step > 0; step /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, step);
    return v;
}

/* The sum over a block of THREADS, valid in every thread; the order is fixed. */
template <typename T> __device__ static inline T block_sum(T v)
{
    __shared__ T warp[WARPS];
    v = warp_sum(v);
    __syncthreads(); /* threads may still read the previous sum */
    if (threadIdx.x % WARP == 0)
        warp[threadIdx.x / WARP] = v;
    __syncthreads();
    T sum = 0;
    for (int w = 0; w < WARPS; w++)
        sum += warp[w];
    return sum;
}

/* A factor of a product: its tensor, whether it is transposed, and its row length in memory. */
struct factor {
    struct tensor t;
    bool transposed;
    size_t row;
};

/* c[k] [m, n] = beta c[k] + op(a[k]) op(b[k]), row-major, inner size `inner`; all may be 0
 * (linear.cu). */
as_status cuda_gemm(struct backend *be, size_t members, size_t m, size_t n, size_t inner,
                    struct factor a, struct factor b, float beta, struct tensor c,
                    struct as_err *err);

/* n elements of each member become 0 (linear.cu). */
as_status cuda_zero(struct backend *be, struct tensor c, size_t members, size_t n,
                    struct as_err *err);

/* db [K, cols] (+)= the sum of dy [K, rows, cols] over the rows (linear.cu). */
as_status cuda_sum_rows(struct backend *be, size_t members, size_t rows, size_t cols,
                        struct tensor dy, struct tensor db, bool accumulate, struct as_err *err);

/* Refuses a call that moves data between host and device, or waits, while a graph is recorded:
 * AS_E_CONFLICT (cuda.cu). */
as_status cuda_not_recording(struct backend *be, const char *what, struct as_err *err);

/* "GPU-" (of a part of a GPU "MIG-") and the UUID in its usual form (cuda.cu). */
void cuda_format_uuid(const struct cudaDeviceProp *prop, char ret[BACKEND_GPU_ID_MAX]);

/* Memory of the host and copies (copies.cu). */
as_status cuda_host_alloc(struct backend *be, size_t bytes, void **ret, struct as_err *err);
void cuda_host_free(struct backend *be, void *p);
as_status cuda_download_begin(const struct buf *b, size_t offset, void *dst, size_t n,
                              uint64_t *ret, struct as_err *err);
as_status cuda_copied(struct backend *be, uint64_t copy, bool wait, bool *ret, struct as_err *err);
void cuda_copies_free(struct cuda_backend *c); /* of a back end without them, too */

/* Products, at opening and closing a back end (lt.cu); close accepts a back end that is half
 * open. */
as_status lt_open(struct cuda_backend *c, struct as_err *err);
void lt_close(struct cuda_backend *c);

/* y = act(z), n elements of each member; y may be z (activation.cu). */
as_status cuda_activate(struct backend *be, act_kind act, size_t members, size_t n, struct tensor z,
                        struct tensor y, struct as_err *err);

/* y [K, rows, cols] holds x w and becomes act(y + b); z receives y + b (activation.cu). */
as_status cuda_bias_act(struct backend *be, act_kind act, size_t members, size_t rows, size_t cols,
                        struct tensor y, struct tensor b, struct tensor z, struct as_err *err);

/* The operations, one per row of the table. */
as_status cuda_gather(struct backend *be, const struct gather_args *a, struct as_err *err);
as_status cuda_gather_bytes(struct backend *be, const struct gather_bytes_args *a,
                            struct as_err *err);
as_status cuda_columns(struct backend *be, const struct columns_args *a, struct as_err *err);
as_status cuda_linear_forward(struct backend *be, const struct linear_args *a, act_kind act,
                              struct tensor y, struct tensor z, struct as_err *err);
as_status cuda_linear_backward(struct backend *be, const struct linear_args *a,
                               const struct linear_grads *g, struct as_err *err);
as_status cuda_act_backward(struct backend *be, const struct act_args *a, struct as_err *err);
as_status cuda_add(struct backend *be, const struct add_args *a, struct as_err *err);
as_status cuda_dropout(struct backend *be, const struct dropout_args *a, struct as_err *err);
as_status cuda_softmax_ce(struct backend *be, const struct softmax_ce_args *a, struct as_err *err);
as_status cuda_mse(struct backend *be, const struct mse_args *a, struct as_err *err);
as_status cuda_grad_stats(struct backend *be, const struct grad_stats_args *a, struct as_err *err);
as_status cuda_grad_clip(struct backend *be, const struct grad_clip_args *a, struct as_err *err);
as_status cuda_optimize(struct backend *be, const struct opt_args *a, struct as_err *err);
as_status cuda_tick(struct backend *be, const struct tick_args *a, struct as_err *err);
as_status cuda_augment(struct backend *be, const struct augment_args *a, struct as_err *err);
as_status cuda_layer_norm_forward(struct backend *be, const struct layer_norm_args *a,
                                  struct tensor y, struct as_err *err);
as_status cuda_layer_norm_backward(struct backend *be, const struct layer_norm_args *a,
                                   struct tensor dy, struct tensor dx, struct tensor dgamma,
                                   struct tensor dbeta, struct as_err *err);
as_status cuda_embedding_forward(struct backend *be, const struct embedding_args *a,
                                 struct tensor y, struct as_err *err);
as_status cuda_embedding_backward(struct backend *be, const struct embedding_args *a,
                                  struct tensor dy, struct tensor dtable, struct tensor dpositions,
                                  struct as_err *err);
size_t cuda_attention_work(const struct backend *be, const struct attention_args *a);
as_status cuda_attention_forward(struct backend *be, const struct attention_args *a,
                                 struct as_err *err);
as_status cuda_attention_backward(struct backend *be, const struct attention_args *a,
                                  struct tensor dout, struct tensor dqkv, struct as_err *err);
as_status cuda_huber(struct backend *be, const struct huber_args *a, struct as_err *err);
as_status cuda_bce(struct backend *be, const struct bce_args *a, struct as_err *err);
as_status cuda_weigh_rows(struct backend *be, const struct weigh_rows_args *a, struct as_err *err);
as_status cuda_grad_accumulate(struct backend *be, const struct grad_accumulate_args *a,
                               struct as_err *err);
as_status cuda_ema(struct backend *be, const struct ema_args *a, struct as_err *err);
size_t cuda_conv_work(const struct backend *be, const struct conv_args *a);
const char *cuda_conv_path(const struct backend *be);
as_status cuda_conv_forward(struct backend *be, const struct conv_args *a, act_kind act,
                            struct tensor y, struct tensor z, struct as_err *err);
as_status cuda_conv_backward(struct backend *be, const struct conv_args *a,
                             const struct conv_grads *g, struct as_err *err);
as_status cuda_pool_forward(struct backend *be, const struct pool_args *a, struct tensor x,
                            struct tensor y, struct as_err *err);
as_status cuda_pool_backward(struct backend *be, const struct pool_args *a, struct tensor dy,
                             struct tensor dx, struct as_err *err);
as_status cuda_batch_norm_train(struct backend *be, const struct batch_norm_args *a, float momentum,
                                struct tensor running_mean, struct tensor running_var,
                                struct as_err *err);
as_status cuda_batch_norm_eval(struct backend *be, const struct batch_norm_args *a,
                               struct tensor running_mean, struct tensor running_var,
                               struct as_err *err);
as_status cuda_batch_norm_backward(struct backend *be, const struct batch_norm_args *a,
                                   struct tensor dy, struct tensor dx, struct tensor dgamma,
                                   struct tensor dbeta, struct as_err *err);

/* Graphs (graph.cu). */
as_status cuda_graph_begin(struct backend *be, struct as_err *err);
as_status cuda_graph_end(struct backend *be, struct graph **ret, struct as_err *err);
as_status cuda_graph_run(struct backend *be, struct graph *g, struct as_err *err);
void cuda_graph_free(struct graph *g);

#endif
