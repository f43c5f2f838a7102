/* cuDNN 9 through its graph interface (cudnnBackend*): the library, opened at run time; plans of
 * single convolutions; running them.
 *
 * Nothing here needs a device except a handle and dnn_run: plans may be made for a device that a
 * text describes. That is how tests/kernels/test_cudnn_plans.c asks the real library on a machine
 * without a GPU. */
#ifndef ASSAY_KERNELS_CUDA_CUDNN_CUH
#define ASSAY_KERNELS_CUDA_CUDNN_CUH

#include <cuda_runtime.h>
#include <cudnn_graph.h>

#include "kernels/cuda/conv.cuh"

/* Device memory that a convolution may use besides its tensors: one such piece for each back end,
 * for all members and layers in turn. An engine that needs more is not used. */
#define DNN_WORKSPACE_BYTES ((size_t)512 << 20)

/* The functions that we call, with the types of the header. */
struct dnn_api {
    void *library;
    size_t version; /* 91900 is 9.19.0 */
    decltype(&cudnnCreate) create;
    decltype(&cudnnDestroy) destroy;
    decltype(&cudnnSetStream) set_stream;
    decltype(&cudnnGetErrorString) error_string;
    decltype(&cudnnBackendCreateDescriptor) create_descriptor;
    decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor;
    decltype(&cudnnBackendSetAttribute) set_attribute;
    decltype(&cudnnBackendGetAttribute) get_attribute;
    decltype(&cudnnBackendFinalize) finalize;
    decltype(&cudnnBackendExecute) execute;
};

/* Open the library: $ASSAY_CUDNN when set and not empty, otherwise libcudnn.so.9 where the loader
 * finds it. It stays loaded for the life of the process.
 *   ret   owned by the caller, nothing to free; untouched on failure
 * AS_E_UNAVAILABLE  it does not open, is not of version 9, or lacks a function; the text says
 * which. */
as_status dnn_load(struct dnn_api *ret, struct as_err *err);

/* The device that plans are made for: a handle (of a real device), or a described device. */
struct dnn_where {
    const struct dnn_api *api;
    cudnnHandle_t handle;            /* NULL: described */
    cudnnBackendDescriptor_t device; /* used when handle is NULL */
};

/* One convolution of one member. x and dx [B, H, W, C], y and dy [B, OH, OW, O], and the weight in
 * the order of cuDNN: [O, KH, KW, C]. All float32, products summed in float32. */
struct dnn_conv {
    conv_op op;
    int64_t batch, height, width, channels, out, out_h, out_w;
    int64_t kernel_h, kernel_w, stride, pad;
    bool tensor_cores; /* the factors are rounded to TF32 (10 bits); otherwise all is float32 */
    bool operator==(const dnn_conv &) const = default;
};

/* Tensors begin at multiples of this. cuDNN 9.19 also plans float32 for multiples of 4 bytes, but
 * on an H200 such a plan failed with a misaligned address. */
#define DNN_ALIGNMENT ((size_t)16)
#define DNN_PLAN_PARTS 16

/* An engine for one dnn_conv, with the descriptors that it refers to. {} is none. */
struct dnn_plan {
    cudnnBackendDescriptor_t parts[DNN_PLAN_PARTS];
    size_t n_parts;
    cudnnBackendDescriptor_t plan; /* one of the parts */
    int64_t engine;                /* cuDNN's number for it */
    size_t workspace;              /* bytes that it needs */
};

/* Choose an engine: the first of cuDNN's list (heuristic mode A, then its fall-backs) that gives
 * the same bits each time, rounds to no fewer bits than required, is not compiled at run time
 * and needs at most `most` bytes. Nothing is timed: the choice depends on c, the kind of device and
 * the version of the library.
 *   ret   owned by the caller, free with dnn_plan_done(); untouched on failure
 * AS_E_UNSUPPORTED  no engine qualifies
 * AS_E_INTERNAL     cuDNN failed, or rejects the description */
as_status dnn_plan_make(const struct dnn_where *w, const struct dnn_conv *c, size_t most,
                        struct dnn_plan *ret, struct as_err *err);
void dnn_plan_done(const struct dnn_api *api, struct dnn_plan *p);

/* Enqueue a plan on the handle's stream. x, w, y are on the device, in the layout of dnn_conv;
 * CONV_FORWARD writes y, CONV_DX x, CONV_DW w. `workspace` has p->workspace bytes. May be recorded
 * in a graph. */
as_status dnn_run(const struct dnn_where *w, const struct dnn_plan *p, void *x, void *weight,
                  void *y, void *workspace, struct as_err *err);

/* A failed call of cuDNN as AS_E_INTERNAL; `what` is named. */
as_status dnn_status(const struct dnn_api *api, cudnnStatus_t s, const char *what,
                     struct as_err *err);

#endif
