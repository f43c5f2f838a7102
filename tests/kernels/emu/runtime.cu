/* Devices, memory, streams and graphs. There is one device, and every call is done when it returns.
 *
 * While a stream records, launches are stored in its graph. Calls that CUDA forbids then
 * (allocation, waiting, copies) return an error and break the recording, as on a device. */
#include "tests/kernels/emu/emu.cuh"

#include <stdio.h>
#include <stdlib.h>

#define POISON_MAX ((size_t)1 << 20) /* bytes of a new buffer that are filled with NaN */

struct emu_graph {
    std::vector<std::function<void()>> ops;
};

struct emu_stream {
    bool recording, broken;
    std::vector<std::function<void()>> ops;
};

static thread_local cudaError_t last_error;
static thread_local cudaStream_t recording; /* of this thread: the mode is thread-local */

void emu_set_error(cudaError_t e)
{
    last_error = e;
}

static cudaError_t fails(cudaError_t e)
{
    last_error = e;
    return e;
}

/* For calls that are forbidden while a stream records: they break the recording. */
static cudaError_t refused(cudaStream_t s)
{
    s->broken = true;
    return fails(cudaErrorStreamCaptureUnsupported);
}

const char *cudaGetErrorString(cudaError_t e)
{
    switch (e) {
    case cudaSuccess:
        return "no error";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorInvalidConfiguration:
        return "invalid configuration argument";
    case cudaErrorStreamCaptureUnsupported:
        return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
        return "operation failed due to a previous error during capture";
    default:
        return "invalid argument";
    }
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t e = last_error;
    last_error = cudaSuccess;
    return e;
}

/* ---- the device ---- */

cudaError_t cudaDriverGetVersion(int *ret)
{
    *ret = 13000;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *ret)
{
    *ret = 13000;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *ret)
{
    *ret = 1;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    return device == 0 ? cudaSuccess : fails(cudaErrorInvalidValue);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *ret, int device)
{
    *ret = {};
    (void)snprintf(ret->name, sizeof(ret->name), "emulated device %d", device);
    ret->major = 9;
    ret->sharedMemPerBlockOptin = EMU_SHARED_MAX;
    return cudaSuccess;
}

/* ---- memory ---- */

cudaError_t emu_malloc(void **ret, size_t size)
{
    if (recording != NULL)
        return refused(recording);
    if (posix_memalign(ret, 256, size > 0 ? size : 1) != 0)
        return fails(cudaErrorMemoryAllocation);
    memset(*ret, 0xff, size < POISON_MAX ? size : POISON_MAX);
    return cudaSuccess;
}

cudaError_t cudaFree(void *p)
{
    if (recording != NULL)
        return refused(recording);
    free(p);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t size, cudaStream_t s)
{
    emu_enqueue(s, [=] { memset(p, value, size); });
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t size, cudaMemcpyKind kind,
                            cudaStream_t s)
{
    if (s->recording && kind != cudaMemcpyDeviceToDevice)
        return refused(s);
    emu_enqueue(s, [=] { memcpy(dst, src, size); });
    return cudaSuccess;
}

/* ---- streams and graphs ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret, unsigned flags)
{
    (void)flags;
    *ret = new emu_stream();
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    if (recording == s)
        recording = NULL;
    delete s;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    return s->recording ? refused(s) : cudaSuccess;
}

void emu_enqueue(cudaStream_t s, std::function<void()> what)
{
    if (s->recording)
        s->ops.push_back(what);
    else
        what();
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode)
{
    (void)mode;
    if (s->recording)
        return fails(cudaErrorInvalidValue);
    s->recording = true;
    s->broken = false;
    recording = s;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *ret)
{
    *ret = NULL;
    if (!s->recording)
        return fails(cudaErrorInvalidValue);
    s->recording = false;
    recording = NULL;
    std::vector<std::function<void()>> ops = std::move(s->ops);
    s->ops.clear();
    if (s->broken)
        return fails(cudaErrorStreamCaptureInvalidated);
    *ret = new emu_graph{std::move(ops)};
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *ret, cudaGraph_t g, unsigned long long flags)
{
    (void)flags;
    *ret = new emu_graph{g->ops};
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t g, cudaStream_t s)
{
    if (s->recording)
        return refused(s);
    for (const std::function<void()> &op : g->ops)
        op();
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t g)
{
    delete g;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t g)
{
    delete g;
    return cudaSuccess;
}
