/* The part of CUDA that kernels/cuda uses, on the host, so that its kernels run without a GPU: the
 * same sources are compiled as C++ with this folder first on the include path.
 *
 * A launch runs at once, block after block. The threads of a block are fibers: each runs alone
 * until it reaches a barrier, a shuffle or its end. If a barrier is missing, then in one of the two
 * orders a value is read before it is written (EMU_ORDER=reverse runs blocks, warps and lanes
 * backwards). The device's memory is host memory. Its first MiB is filled with NaN when it is
 * allocated. Shared memory is filled with NaN at the start of each block (under ASan it is not
 * filled, but guarded).
 *
 * An error that a device would forbid or hang on ends the program with a message: a barrier that
 * not all threads of the block reach, a shuffle without all lanes of the warp. Grids and blocks
 * past the limits of a device are errors of the launch, as on a device.
 *
 * With EMU_ASYNC=1 a stream runs nothing until somebody waits for it, as a device that is far
 * behind its host does, and a copy reads the host's memory only then, as devices do that read
 * pageable memory themselves. EMU_MEMORY=BYTES limits the memory, of which
 * EMU_SAYS_FREE=BYTES are said to be free. EMU_SHARED=BYTES is the shared memory that a block may
 * use (232448, as on an H100; 101376 is an A10's). EMU_FAIL=CODE:LAUNCHES
 * (or CODE:LAUNCHES:GPU, for processes with that CUDA_VISIBLE_DEVICES alone) breaks the device
 * after so many launches: every call returns that error from then on. EMU_DRIVER=12040 is the
 * driver's version of CUDA (13000). CUDA_VISIBLE_DEVICES=N is the device with a UUID of its own.
 *
 * Not modelled: time, effects between blocks that run at once (they must not communicate), the
 * device's rounding of expf and similar functions. */
#ifndef ASSAY_TESTS_KERNELS_EMU_EMU_CUH
#define ASSAY_TESTS_KERNELS_EMU_EMU_CUH

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <functional>
#include <tuple>
#include <vector>

/* ---- the language ---- */

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
#ifdef __SANITIZE_ADDRESS__
#define __shared__ static
#else
#define __shared__ static __attribute__((section("emu_shared")))
#endif

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned nx = 1, unsigned ny = 1, unsigned nz = 1) : x(nx), y(ny), z(nz)
    {
    }
};

/* The block and thread of the running fiber. */
struct emu_place {
    uint3 thread, block;
    dim3 threads, blocks;
    char *dynamic;
};
extern struct emu_place emu_here;
#define threadIdx (emu_here.thread)
#define blockIdx (emu_here.block)
#define blockDim (emu_here.threads)
#define gridDim (emu_here.blocks)
#define DYNAMIC_SHARED(type, name) type *name = (type *)emu_here.dynamic

/* All threads of the block. */
void __syncthreads(void);

/* All lanes of the warp: each writes a value at its place, and sees the values of all lanes until
 * it writes another. */
#define EMU_WARP 32
struct emu_words {
    uint64_t lane[EMU_WARP];
};
const struct emu_words *emu_exchange(unsigned mask, uint64_t value);

unsigned emu_lane(void);

template <typename T> static inline T __shfl_sync(unsigned mask, T value, int from)
{
    static_assert(sizeof(T) <= sizeof(uint64_t), "too wide for a shuffle");
    uint64_t word = 0;
    memcpy(&word, &value, sizeof(T));
    memcpy(&value, &emu_exchange(mask, word)->lane[(unsigned)from % EMU_WARP], sizeof(T));
    return value;
}

template <typename T> static inline T __shfl_xor_sync(unsigned mask, T value, int by)
{
    return __shfl_sync(mask, value, (int)(emu_lane() ^ (unsigned)by));
}

static inline void __syncwarp(void)
{
    (void)emu_exchange(0xffffffffu, 0);
}

int __any_sync(unsigned mask, int yes);
unsigned __ballot_sync(unsigned mask, int yes);

static inline int min(int a, int b)
{
    return a < b ? a : b;
}

static inline int __ffs(int v)
{
    return __builtin_ffs(v);
}

/* ---- the runtime ---- */

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorNotReady = 600,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchOutOfResources = 701,
    cudaErrorIllegalInstruction = 715,
    cudaErrorMisalignedAddress = 716,
    cudaErrorInvalidAddressSpace = 717,
    cudaErrorInvalidPc = 718,
    cudaErrorInvalidKernelImage = 200,
    cudaErrorInvalidDeviceFunction = 98,
    cudaErrorNoKernelImageForDevice = 209,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorStreamCaptureInvalidated = 901
};
enum cudaMemcpyKind {
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice
};
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
#define cudaStreamNonBlocking 1u
#define cudaEventDisableTiming 2u
#define cudaHostAllocDefault 0u
#define CUDART_VERSION 13000

struct cudaUUID_t {
    char bytes[16];
};

struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    size_t totalGlobalMem;
    int major, minor;
    size_t sharedMemPerBlockOptin;
};
struct cudaFuncAttributes {
    int numRegs;
};

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };

struct emu_stream;
struct emu_graph;
struct emu_event;
typedef struct emu_event *cudaEvent_t;
typedef struct emu_stream *cudaStream_t;
typedef struct emu_graph *cudaGraph_t;
typedef struct emu_graph *cudaGraphExec_t;

const char *cudaGetErrorString(cudaError_t e);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
cudaError_t cudaDriverGetVersion(int *ret);
cudaError_t cudaRuntimeGetVersion(int *ret);
cudaError_t cudaGetDeviceCount(int *ret);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *ret, int device);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t s);
cudaError_t cudaStreamSynchronize(cudaStream_t s);
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret, unsigned flags);
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s);
cudaError_t cudaEventSynchronize(cudaEvent_t e);
cudaError_t cudaEventQuery(cudaEvent_t e); /* the device catches up when it is asked */
cudaError_t cudaEventDestroy(cudaEvent_t e);
cudaError_t cudaMemGetInfo(size_t *ret_free, size_t *ret_total);
cudaError_t emu_malloc(void **ret, size_t size);
cudaError_t cudaFree(void *p);
cudaError_t emu_host_alloc(void **ret, size_t size, unsigned flags);
cudaError_t cudaFreeHost(void *p);
cudaError_t cudaMemsetAsync(void *p, int value, size_t size, cudaStream_t s);
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t size, cudaMemcpyKind kind,
                            cudaStream_t s);
cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *ret);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *ret, cudaGraph_t g, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t g, cudaStream_t s);
cudaError_t cudaGraphDestroy(cudaGraph_t g);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t g);

template <typename T> static inline cudaError_t cudaMalloc(T **ret, size_t size)
{
    return emu_malloc((void **)ret, size);
}

template <typename T> static inline cudaError_t cudaHostAlloc(T **ret, size_t size, unsigned flags)
{
    return emu_host_alloc((void **)ret, size, flags);
}

template <typename F>
static inline cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *ret, F *)
{
    ret->numRegs = 0;
    return cudaSuccess;
}

/* The most shared memory that a block may use (EMU_SHARED). */
size_t emu_shared_max(void);
cudaError_t emu_allow_shared(const void *kernel, int bytes);

static inline cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute attribute,
                                               int value)
{
    return attribute == cudaFuncAttributeMaxDynamicSharedMemorySize
               ? emu_allow_shared(kernel, value)
               : cudaErrorInvalidValue;
}

/* A launch of this kernel runs: counts it, and returns whether the device still works. */
bool emu_counts(const char *kernel);

/* How many launches of a kernel have run in this process; for tests, by dlsym(). */
extern "C" __attribute__((visibility("default"))) size_t emu_launches(const char *kernel);

/* Run it now (or when somebody waits: EMU_ASYNC), or record it if the stream is recording. */
void emu_enqueue(cudaStream_t s, std::function<void()> what);

/* Work that may not be done when it was tried (it returns false): the stream stays there, is asked
 * again by cudaEventQuery(), and waited for by whoever waits. */
void emu_enqueue_until(cudaStream_t s, std::function<bool()> what);

/* Check as a device would, then enqueue. */
void emu_launch_body(const char *name, const void *kernel, dim3 grid, dim3 block, size_t shared,
                     cudaStream_t s, std::function<void()> body);

/* The arguments are converted and copied at the launch, as on a device. */
template <typename... P, typename... A>
static inline void emu_launch(const char *name, void (*kernel)(P...), dim3 grid, dim3 block,
                              size_t shared, cudaStream_t s, A... args)
{
    std::tuple<P...> values(static_cast<P>(args)...);
    emu_launch_body(name, (const void *)kernel, grid, block, shared, s,
                    [=] { std::apply(kernel, values); });
}

#define LAUNCH(kernel, grid, block, shared, stream, ...)                                           \
    emu_launch(#kernel, kernel, grid, block, shared, stream, __VA_ARGS__)

#endif
