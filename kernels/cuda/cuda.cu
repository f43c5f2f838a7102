/* The plugin: its entry function, opening and closing a device, buffers, and the table of
 * operations.
 *
 * All operations of a back end run on one stream of its own. Calls that allocate, wait, or move
 * data between host and device are refused while a graph is recorded, because they would break the
 * capture. Opening checks the driver, the device and the plugin's machine code first, so that a
 * machine without a usable GPU gets AS_E_UNAVAILABLE with the reason, not a failing kernel. */
#include "kernels/cuda/conv.cuh"

#include <cstdio>
#include <cstdlib>
#include <cstring>

/* The class of an error. A fault that the program itself can cause must not be blamed on the
 * device: a runner sets a device aside that is blamed. */
static as_status class_of(cudaError_t e)
{
    switch (e) {
    case cudaErrorMemoryAllocation:
        return AS_E_NOMEM;
    case cudaErrorInvalidValue:
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorInvalidKernelImage:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchOutOfResources:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
        return AS_E_INTERNAL;
    default:
        return AS_E_UNAVAILABLE;
    }
}

as_status cuda_status(cudaError_t e, const char *what, struct as_err *err)
{
    if (e == cudaSuccess)
        return AS_OK;
    return as_fail(err, class_of(e), "back end cuda: %s: %s", what, cudaGetErrorString(e));
}

as_status blas_status(cublasStatus_t s, const char *what, struct as_err *err)
{
    if (s == CUBLAS_STATUS_SUCCESS)
        return AS_OK;
    cudaError_t fault = cudaPeekAtLastError(); /* a broken device makes cuBLAS fail too */
    if (fault != cudaSuccess && class_of(fault) == AS_E_UNAVAILABLE)
        return cuda_status(fault, what, err);
    as_status st = s == CUBLAS_STATUS_ALLOC_FAILED ? AS_E_NOMEM : AS_E_INTERNAL;
    return as_fail(err, st, "back end cuda: %s: %s", what, cublasGetStatusString(s));
}

/* ---- buffers ---- */

static char *place(const struct buf *b, size_t offset)
{
    return (char *)b->data + offset * sizeof(float);
}

as_status cuda_not_recording(struct backend *be, const char *what, struct as_err *err)
{
    if (!cuda_of(be)->recording)
        return AS_OK;
    return as_fail(err, AS_E_CONFLICT, "back end cuda: %s while a graph is recorded", what);
}

static as_status cuda_alloc(struct buf *b, struct as_err *err)
{
    as_status st = cuda_not_recording(b->be, "a new buffer", err);
    if (st < 0)
        return st;
    cuda_use(b->be);
    void *data = NULL;
    cudaError_t e = cudaMalloc(&data, b->n * sizeof(float));
    if (e != cudaSuccess) {
        (void)cudaGetLastError(); /* this error does not persist: clear it */
        return cuda_status(e, "buffer", err);
    }
    e = cudaMemsetAsync(data, 0, b->n * sizeof(float), cuda_of(b->be)->stream);
    if (e != cudaSuccess) {
        (void)cudaFree(data);
        return cuda_status(e, "buffer", err);
    }
    b->data = data;
    return AS_OK;
}

static void cuda_release(struct buf *b)
{
    cuda_use(b->be);
    (void)cudaStreamSynchronize(cuda_of(b->be)->stream); /* an operation may still use it */
    (void)cudaFree(b->data);
}

/* Waits for the copy, so that the caller may change src. CUDA promises to stage pageable memory
 * before the call returns, but devices that read pageable memory themselves (HMM, ATS) may read it
 * later. Uploads happen at the beginning of an epoch, where nothing else is under way. */
static as_status cuda_upload(struct buf *b, size_t offset, const void *src, size_t n,
                             struct as_err *err)
{
    as_status st = cuda_not_recording(b->be, "upload", err);
    if (st < 0)
        return st;
    cuda_use(b->be);
    cudaError_t e = cudaMemcpyAsync(place(b, offset), src, n * sizeof(float),
                                    cudaMemcpyHostToDevice, cuda_of(b->be)->stream);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(cuda_of(b->be)->stream);
    return cuda_status(e, "upload", err);
}

static as_status cuda_sync(struct backend *be, struct as_err *err)
{
    as_status st = cuda_not_recording(be, "sync", err);
    if (st < 0)
        return st;
    cuda_use(be);
    return cuda_status(cudaStreamSynchronize(cuda_of(be)->stream), "an operation failed", err);
}

static as_status cuda_download(const struct buf *b, size_t offset, void *dst, size_t n,
                               struct as_err *err)
{
    as_status st = cuda_not_recording(b->be, "download", err);
    if (st < 0)
        return st;
    cuda_use(b->be);
    cudaError_t e = cudaMemcpyAsync(dst, place(b, offset), n * sizeof(float),
                                    cudaMemcpyDeviceToHost, cuda_of(b->be)->stream);
    st = cuda_status(e, "download", err);
    return st < 0 ? st : cuda_sync(b->be, err);
}

/* Waits until the step STEPS_AHEAD before this one has ended. */
static as_status cuda_step_end(struct backend *be, struct as_err *err)
{
    struct cuda_backend *c = cuda_of(be);
    as_status st = cuda_not_recording(be, "end of a step", err);
    if (st < 0)
        return st;
    cuda_use(be);
    cudaEvent_t end = c->step_end[c->steps++ % STEPS_AHEAD];
    cudaError_t e = cudaEventSynchronize(end); /* returns at once if it was never recorded */
    if (e == cudaSuccess)
        e = cudaEventRecord(end, c->stream);
    return cuda_status(e, "an operation failed", err);
}

static as_status cuda_memory(struct backend *be, size_t *ret_free, size_t *ret_total,
                             struct as_err *err)
{
    cuda_use(be);
    return cuda_status(cudaMemGetInfo(ret_free, ret_total), "memory", err);
}

__global__ static void fill(uint32_t *p, size_t n, uint32_t bits)
{
    FOR_ELEMENTS(i, n)
    p[i] = bits;
}

static as_status cuda_fill(struct buf *b, size_t offset, size_t n, uint32_t bits,
                           struct as_err *err)
{
    cuda_use(b->be);
    LAUNCH(fill, grid_over(n, 1), THREADS, 0, cuda_of(b->be)->stream, (uint32_t *)place(b, offset),
           n, bits);
    return cuda_launched("fill", err);
}

static as_status cuda_copy(struct buf *dst, size_t dst_offset, const struct buf *src,
                           size_t src_offset, size_t n, struct as_err *err)
{
    cuda_use(dst->be);
    cudaError_t e =
        cudaMemcpyAsync(place(dst, dst_offset), place(src, src_offset), n * sizeof(float),
                        cudaMemcpyDeviceToDevice, cuda_of(dst->be)->stream);
    return cuda_status(e, "copy", err);
}

/* ---- opening ---- */

/* Also closes a back end that is half open. */
static void cuda_close(struct backend *be)
{
    struct cuda_backend *c = cuda_of(be);
    cuda_use(be);
    cuda_copies_free(c);
    lt_close(c);
    conv_cudnn_free(c->conv_cudnn);
    if (c->blas != NULL)
        (void)cublasDestroy(c->blas);
    if (c->stream != NULL)
        (void)cudaStreamDestroy(c->stream);
    for (cudaEvent_t end : c->step_end)
        if (end != NULL)
            (void)cudaEventDestroy(end);
    (void)cudaFree(c->blas_workspace);
    (void)cudaFree(c->room);
    free(c);
}

static const struct backend_ops ops = {
    .name = "cuda",
    .close = cuda_close,
    .sync = cuda_sync,
    .step_end = cuda_step_end,
    .memory = cuda_memory,
    .alloc = cuda_alloc,
    .release = cuda_release,
    .upload = cuda_upload,
    .download = cuda_download,
    .host_alloc = cuda_host_alloc,
    .host_free = cuda_host_free,
    .download_begin = cuda_download_begin,
    .copied = cuda_copied,
    .fill = cuda_fill,
    .copy = cuda_copy,
    .gather = cuda_gather,
    .gather_bytes = cuda_gather_bytes,
    .columns = cuda_columns,
    .linear_forward = cuda_linear_forward,
    .linear_backward = cuda_linear_backward,
    .act_backward = cuda_act_backward,
    .dropout = cuda_dropout,
    .softmax_ce = cuda_softmax_ce,
    .mse = cuda_mse,
    .grad_stats = cuda_grad_stats,
    .grad_clip = cuda_grad_clip,
    .tick = cuda_tick,
    .augment = cuda_augment,
    .add = cuda_add,
    .conv_work = cuda_conv_work,
    .conv_path = cuda_conv_path,
    .conv_forward = cuda_conv_forward,
    .conv_backward = cuda_conv_backward,
    .pool_forward = cuda_pool_forward,
    .pool_backward = cuda_pool_backward,
    .batch_norm_train = cuda_batch_norm_train,
    .batch_norm_eval = cuda_batch_norm_eval,
    .batch_norm_backward = cuda_batch_norm_backward,
    .layer_norm_forward = cuda_layer_norm_forward,
    .layer_norm_backward = cuda_layer_norm_backward,
    .embedding_forward = cuda_embedding_forward,
    .embedding_backward = cuda_embedding_backward,
    .attention_work = cuda_attention_work,
    .attention_forward = cuda_attention_forward,
    .attention_backward = cuda_attention_backward,
    .huber = cuda_huber,
    .bce = cuda_bce,
    .weigh_rows = cuda_weigh_rows,
    .grad_accumulate = cuda_grad_accumulate,
    .optimize = cuda_optimize,
    .ema = cuda_ema,
    .graph_begin = cuda_graph_begin,
    .graph_end = cuda_graph_end,
    .graph_run = cuda_graph_run,
    .graph_free = cuda_graph_free,
};

/* The driver's own version, such as "550.54.15"; "" if the system does not say. */
static void read_driver_version(char ret[32])
{
    FILE *f = fopen(CUDA_DRIVER_VERSION_FILE, "r");
    ret[0] = '\0';
    if (f == NULL)
        return;
    if (fgets(ret, 32, f) == NULL)
        ret[0] = '\0';
    (void)fclose(f);
    ret[strcspn(ret, " \t\r\n")] = '\0';
}

static as_status check_driver(struct as_err *err)
{
    int driver = 0, runtime = 0;
    char version[32];
    cudaError_t e = cudaDriverGetVersion(&driver);
    if (e != cudaSuccess || driver == 0)
        return as_fail(err, AS_E_UNAVAILABLE, "back end cuda: no NVIDIA driver on this machine");
    (void)cudaRuntimeGetVersion(&runtime);
    if (driver / 1000 >= runtime / 1000)
        return AS_OK;
    read_driver_version(version);
    return as_fail(
        err, AS_E_UNAVAILABLE,
        "back end cuda: the driver is too old: found %s%sfor CUDA %d.%d, the plugin needs "
        "NVIDIA driver " CUDA_OLDEST_DRIVER " or newer (CUDA %d.0)",
        version, version[0] != '\0' ? ", which is " : "one ", driver / 1000, driver % 1000 / 10,
        runtime / 1000);
}

/* Check that the driver is there and new enough, and that the device exists. */
static as_status check_device(int device, struct as_err *err)
{
    int count = 0;
    as_status st = check_driver(err);
    if (st < 0)
        return st;
    cudaError_t e = cudaGetDeviceCount(&count);
    if (e != cudaSuccess || count == 0)
        return as_fail(err, AS_E_UNAVAILABLE, "back end cuda: no device: %s",
                       e != cudaSuccess ? cudaGetErrorString(e) : "none is visible");
    if (device >= count)
        return as_fail(err, AS_E_INVAL, "back end cuda: device is %d, but there are only %d",
                       device, count);
    return AS_OK;
}

/* Check that the plugin has machine code or PTX for this device. Any kernel's attributes show
 * it. */
static as_status check_code(const struct cudaDeviceProp *prop, struct as_err *err)
{
    struct cudaFuncAttributes attr;
    cudaError_t e = cudaFuncGetAttributes(&attr, fill);
    if (e == cudaErrorNoKernelImageForDevice || e == cudaErrorInvalidDeviceFunction)
        return as_fail(err, AS_E_UNAVAILABLE,
                       "back end cuda: the plugin has no code for %s (compute capability %d.%d)",
                       prop->name, prop->major, prop->minor);
    return cuda_status(e, "device", err);
}

static as_status open_device(struct cuda_backend *c, struct as_err *err)
{
    struct cudaDeviceProp prop;
    as_status st = cuda_status(cudaSetDevice(c->device), "device", err);
    if (st < 0 ||
        (st = cuda_status(cudaGetDeviceProperties(&prop, c->device), "device", err)) < 0 ||
        (st = check_code(&prop, err)) < 0 ||
        (st = cuda_status(cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking), "stream",
                          err)) < 0 ||
        (st = cuda_status(cudaMalloc(&c->blas_workspace, BLAS_WORKSPACE_BYTES), "workspace", err)) <
            0 ||
        (st = cuda_status(cudaMalloc(&c->room, ROOM_PAIRS * sizeof(*c->room)), "workspace", err)) <
            0)
        return st;
    for (cudaEvent_t &end : c->step_end)
        if ((st = cuda_status(cudaEventCreateWithFlags(&end, cudaEventDisableTiming), "event",
                              err)) < 0)
            return st;
    c->shared_bytes = prop.sharedMemPerBlockOptin;
    snprintf(c->base.device, sizeof(c->base.device), "%.*s", BACKEND_DEVICE_MAX - 1, prop.name);
    return AS_OK;
}

static as_status open_blas(struct cuda_backend *c, struct as_err *err)
{
    as_status st = blas_status(cublasCreate(&c->blas), "cuBLAS", err);
    /* The stream first: setting it resets the workspace. */
    if (st < 0 || (st = blas_status(cublasSetStream(c->blas, c->stream), "cuBLAS", err)) < 0)
        return st;
    return blas_status(cublasSetWorkspace(c->blas, c->blas_workspace, BLAS_WORKSPACE_BYTES),
                       "cuBLAS", err);
}

/* Read the path of convolutions: ASSAY_CUDA_CONV is own (also when absent or empty) or cudnn. */
static as_status open_conv(struct cuda_backend *c, struct as_err *err)
{
    const char *path = getenv("ASSAY_CUDA_CONV");
    if (path == NULL || path[0] == '\0' || strcmp(path, "own") == 0)
        return AS_OK;
    if (strcmp(path, "cudnn") != 0)
        return as_fail(err, AS_E_INVAL, "ASSAY_CUDA_CONV is \"%s\", expected own or cudnn", path);
    return conv_cudnn_create(&c->conv_cudnn, err);
}

static as_status cuda_open(const struct backend_opts *opts, struct backend **ret,
                           struct as_err *err)
{
    as_status st = check_device(opts->device, err);
    if (st < 0)
        return st;
    struct cuda_backend *c = (struct cuda_backend *)calloc(1, sizeof(*c));
    if (c == NULL)
        return as_fail(err, AS_E_NOMEM, "back end cuda: out of memory");
    c->base.ops = &ops;
    c->device = opts->device;
    c->compute = opts->bf16 ? CUBLAS_COMPUTE_32F_FAST_16BF : CUBLAS_COMPUTE_32F;
    st = open_device(c, err);
    if (st == AS_OK)
        st = open_blas(c, err);
    if (st == AS_OK)
        st = lt_open(c, err);
    if (st == AS_OK)
        st = open_conv(c, err);
    if (st < 0) {
        cuda_close(&c->base);
        return st;
    }
    *ret = &c->base;
    return AS_OK;
}

void cuda_format_uuid(const struct cudaDeviceProp *prop, char ret[BACKEND_GPU_ID_MAX])
{
    const char *kind = strstr(prop->name, " MIG ") != NULL ? "MIG" : "GPU";
    size_t n = (size_t)snprintf(ret, BACKEND_GPU_ID_MAX, "%s", kind);
    for (size_t i = 0; i < sizeof(prop->uuid.bytes); i++) {
        bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        n += (size_t)snprintf(ret + n, BACKEND_GPU_ID_MAX - n, "%s%02x", dash ? "-" : "",
                              (unsigned)(unsigned char)prop->uuid.bytes[i]);
    }
}

static as_status cuda_gpus(struct backend_gpu *ret, size_t most, size_t *ret_n, struct as_err *err)
{
    int count = 0;
    as_status st = check_driver(err);
    if (st < 0)
        return st;
    size_t n = cudaGetDeviceCount(&count) == cudaSuccess ? (size_t)count : 0;
    for (size_t i = 0; i < n && i < most && st == AS_OK; i++) {
        struct cudaDeviceProp prop;
        st = cuda_status(cudaGetDeviceProperties(&prop, (int)i), "device", err);
        if (st < 0)
            break;
        cuda_format_uuid(&prop, ret[i].id);
        ret[i].memory_bytes = prop.totalGlobalMem;
    }
    if (st == AS_OK)
        *ret_n = n < most ? n : most;
    return st;
}

extern "C" __attribute__((visibility("default"))) const struct backend_plugin assay_backend_plugin;
const struct backend_plugin assay_backend_plugin = {BACKEND_ABI, cuda_open, cuda_gpus};
