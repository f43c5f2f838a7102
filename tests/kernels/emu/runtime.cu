/* Devices, memory, streams, events and graphs. There is one device. Every call is done when it
 * returns, unless EMU_ASYNC is set: then a stream keeps its work until somebody waits for it.
 *
 * While a stream records, launches are stored in its graph. Calls that CUDA forbids then
 * (allocation, waiting, copies) return an error and break the recording, as on a device. */
#include "tests/kernels/emu/emu.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <deque>
#include <map>
#include <memory>
#include <string>

#define POISON_MAX ((size_t)1 << 20) /* bytes of a new buffer that are filled with NaN */
#define EMU_MEMORY ((size_t)1 << 36) /* bytes of the device, if no test says another size */

struct emu_graph {
    std::vector<std::function<void()>> ops;
};

struct emu_stream {
    bool recording, broken;
    std::vector<std::function<void()>> ops;
    std::deque<std::function<bool()>> pending; /* not done yet */
};

struct emu_event {
    cudaStream_t stream;        /* NULL: never recorded */
    std::shared_ptr<bool> done; /* of the last record; those who wait for it keep it */
};

static thread_local cudaError_t last_error;
static thread_local cudaStream_t recording; /* of this thread: the mode is thread-local */

/* ---- what the tests set ---- */

static size_t number_of(const char *name, size_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL && text[0] != '\0' ? (size_t)strtoull(text, NULL, 10) : otherwise;
}

size_t emu_shared_max(void)
{
    return number_of("EMU_SHARED", 232448);
}

static bool is_async(void)
{
    static const bool yes = number_of("EMU_ASYNC", 0) != 0;
    return yes;
}

/* The error that breaks the device after so many launches; cudaSuccess: none does. */
struct fault {
    cudaError_t error;
    size_t after;
};

static struct fault fault_of_tests(void)
{
    const char *text = getenv("EMU_FAIL"), *visible = getenv("CUDA_VISIBLE_DEVICES");
    char *end = NULL;
    struct fault f = {cudaSuccess, 0};
    if (text == NULL || text[0] == '\0')
        return f;
    f.error = (cudaError_t)strtoul(text, &end, 10);
    f.after = *end == ':' ? strtoull(end + 1, &end, 10) : 0;
    if (*end == ':' && (visible == NULL || strcmp(end + 1, visible) != 0))
        f.error = cudaSuccess;
    return f;
}

static std::map<std::string, size_t> *launches = new std::map<std::string, size_t>();
static size_t all_launches;
static cudaError_t broken; /* by fault_of_tests() */

/* The device's fault, which every call returns, for as long as the test's variable is set. */
static cudaError_t fault_now(void)
{
    if (getenv("EMU_FAIL") == NULL)
        broken = cudaSuccess;
    return broken;
}

bool emu_counts(const char *kernel)
{
    const struct fault fault = fault_of_tests();
    if (fault_now() == cudaSuccess && fault.error != cudaSuccess && all_launches >= fault.after)
        broken = fault.error;
    if (broken != cudaSuccess)
        return false;
    all_launches++;
    ++(*launches)[kernel];
    return true;
}

size_t emu_launches(const char *kernel)
{
    return (*launches)[kernel];
}

/* ---- errors ---- */

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
    case cudaErrorIllegalAddress:
        return "an illegal memory access was encountered";
    case cudaErrorInvalidConfiguration:
        return "invalid configuration argument";
    case cudaErrorStreamCaptureUnsupported:
        return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
        return "operation failed due to a previous error during capture";
    case cudaErrorInvalidValue:
        return "invalid argument";
    default:
        return "uncorrectable ECC error encountered";
    }
}

cudaError_t cudaPeekAtLastError(void)
{
    return fault_now() != cudaSuccess ? broken : last_error;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t e = cudaPeekAtLastError();
    last_error = cudaSuccess;
    return e;
}

/* ---- the device ---- */

cudaError_t cudaDriverGetVersion(int *ret)
{
    *ret = (int)number_of("EMU_DRIVER", 13000);
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *ret)
{
    *ret = CUDART_VERSION;
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
    for (int i = 0; i < 16; i++)
        ret->uuid.bytes[i] = (char)(0xa0 + i);
    ret->uuid.bytes[15] = (char)(ret->uuid.bytes[15] + (char)number_of("CUDA_VISIBLE_DEVICES", 0));
    ret->totalGlobalMem = number_of("EMU_MEMORY", EMU_MEMORY);
    ret->major = 9;
    ret->sharedMemPerBlockOptin = emu_shared_max();
    return cudaSuccess;
}

/* ---- memory ---- */

static std::map<void *, size_t> *sizes = new std::map<void *, size_t>();
static size_t allocated;

cudaError_t cudaMemGetInfo(size_t *ret_free, size_t *ret_total)
{
    *ret_total = number_of("EMU_MEMORY", EMU_MEMORY);
    *ret_free = *ret_total > allocated ? *ret_total - allocated : 0;
    *ret_free = number_of("EMU_SAYS_FREE", *ret_free);
    *ret_total = *ret_total > *ret_free ? *ret_total : *ret_free;
    return fault_now();
}

cudaError_t emu_malloc(void **ret, size_t size)
{
    if (recording != NULL)
        return refused(recording);
    if (fault_now() != cudaSuccess)
        return broken;
    if (size > number_of("EMU_MEMORY", SIZE_MAX) - allocated)
        return fails(cudaErrorMemoryAllocation);
    if (posix_memalign(ret, 256, size > 0 ? size : 1) != 0)
        return fails(cudaErrorMemoryAllocation);
    memset(*ret, 0xff, size < POISON_MAX ? size : POISON_MAX);
    (*sizes)[*ret] = size;
    allocated += size;
    return cudaSuccess;
}

cudaError_t cudaFree(void *p)
{
    if (recording != NULL)
        return refused(recording);
    if (p != NULL) {
        allocated -= (*sizes)[p];
        (void)sizes->erase(p);
    }
    free(p);
    return fault_now();
}

/* Filled with NaN, as the device's memory is. */
cudaError_t emu_host_alloc(void **ret, size_t size, unsigned flags)
{
    (void)flags;
    if (recording != NULL)
        return refused(recording);
    if (fault_now() != cudaSuccess)
        return broken;
    if (posix_memalign(ret, 4096, size > 0 ? size : 1) != 0)
        return fails(cudaErrorMemoryAllocation);
    memset(*ret, 0xff, size < POISON_MAX ? size : POISON_MAX);
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *p)
{
    free(p);
    return fault_now();
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t size, cudaStream_t s)
{
    emu_enqueue(s, [=] { memset(p, value, size); });
    return fault_now();
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t size, cudaMemcpyKind kind,
                            cudaStream_t s)
{
    if (s->recording && kind != cudaMemcpyDeviceToDevice)
        return refused(s);
    emu_enqueue(s, [=] { memcpy(dst, src, size); });
    return fault_now();
}

/* ---- streams, events and graphs ---- */

/* Run what waits, until `done` (NULL: all of it); with `wait` also what is not done when it is
 * tried. Work that waits for another stream runs that one, so work is taken out before it is
 * run. */
static void run_pending(cudaStream_t s, const bool *done, bool wait)
{
    while (!s->pending.empty() && !(done != NULL && *done)) {
        std::function<bool()> op = std::move(s->pending.front());
        s->pending.pop_front();
        if (op())
            continue;
        s->pending.push_front(std::move(op));
        if (!wait)
            return;
        struct timespec pause = {0, 50000};
        (void)nanosleep(&pause, NULL);
    }
}

static void enqueue(cudaStream_t s, std::function<bool()> what)
{
    if (is_async() || !s->pending.empty() || !what())
        s->pending.push_back(std::move(what));
}

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
    run_pending(s, NULL, true);
    delete s;
    return fault_now();
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    if (s->recording)
        return refused(s);
    run_pending(s, NULL, true);
    return fault_now();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret, unsigned flags)
{
    (void)flags;
    *ret = new emu_event();
    return fault_now();
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    if (s->recording)
        return refused(s);
    std::shared_ptr<bool> done = std::make_shared<bool>(false);
    *e = {s, done};
    emu_enqueue(s, [=] { *done = true; });
    return fault_now();
}

static bool event_is_done(cudaEvent_t e)
{
    return e->stream == NULL || *e->done;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags)
{
    (void)flags;
    if (event_is_done(e))
        return fault_now();
    cudaStream_t other = e->stream;
    std::shared_ptr<bool> done = e->done;
    enqueue(s, [=] {
        run_pending(other, done.get(), false);
        return *done;
    });
    return fault_now();
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    if (!event_is_done(e))
        run_pending(e->stream, e->done.get(), true);
    return fault_now();
}

cudaError_t cudaEventQuery(cudaEvent_t e)
{
    if (!event_is_done(e))
        run_pending(e->stream, e->done.get(), false);
    return fault_now() != cudaSuccess ? broken : event_is_done(e) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    delete e;
    return fault_now();
}

void emu_enqueue(cudaStream_t s, std::function<void()> what)
{
    if (s->recording)
        s->ops.push_back(what);
    else
        enqueue(s, [what] {
            what();
            return true;
        });
}

void emu_enqueue_until(cudaStream_t s, std::function<bool()> what)
{
    enqueue(s, std::move(what));
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
        emu_enqueue(s, op);
    return fault_now();
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
