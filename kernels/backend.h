/* Numeric kernels behind one interface: three back ends, opaque buffers, one table of operations.
 *
 *   reference   plain C loops, sums in double: the oracle of the tests
 *   cpu         our own matrix products (OpenBLAS without AVX2), loops that gcc vectorises, threads
 *   cuda        cublasLt, cuBLAS and our own kernels, in a plugin (libassay-cuda.so) opened at run
 *               time
 *
 * Members. Every operation works on K >= 0 *members* at once (fused trials): K models of the same
 * shapes with hyperparameters of their own. K = 1 is the common case and costs nothing extra. A
 * tensor is (buffer, offset, stride): member k begins at element offset + k * stride. A parameter
 * arena [K, N] that holds a weight at element `o` of each member is therefore tensor_at(arena, o,
 * N). Stride 0 means that all members share the one copy; only inputs may be shared (K > 1). Inside
 * a member everything is dense and row-major.
 *
 * Letters: K members, B rows of a batch, D or I inputs, O outputs, C classes, N parameters of one
 * member. F32 and I32 are the element kinds. "[K]" is one element per member.
 *
 * The operations are declared by theme; each ops_X.c checks arguments and calls the back end's
 * table:
 *   ops_data.h    gather, augmentation, the values of the next step
 *   ops_dense.h   linear layers, activations, dropout, sums
 *   ops_conv.h    convolution, pooling, batch normalisation (images, channels last)
 *   ops_seq.h     layer normalisation, embedding, causal attention (sequences)
 *   ops_loss.h    losses with their gradients
 *   ops_optim.h   norms and clipping of gradients, optimizers, averages of weights
 *
 * Hyperparameters are F32 tensors [K] in device memory: upload them once, or again when a schedule
 * changes them. With stride 0 one value serves all members. A tensor whose buf is NULL
 * (tensor_none()) is absent; where a tensor may be absent, its comment states what that means.
 *
 * Checks. Every call checks kinds, sizes and places before it writes anything: AS_E_INVAL names the
 * operation and the tensor. Operations allocate nothing. Sizes of zero are allowed: the operation
 * does nothing, except that it writes 0 for an empty sum.
 *
 * Order. Operations of one back end run in the order of the calls. On cuda they are asynchronous: a
 * fault may be reported by a later call; buf_upload, buf_download and backend_sync wait. A fault is
 * AS_E_UNAVAILABLE (the device or its driver fails), AS_E_NOMEM, or AS_E_INTERNAL (one that our own
 * launches can cause, such as a wrong address).
 *
 * Threads: one back end and its buffers, one thread at a time. Distinct back ends may be used from
 * distinct threads.
 *
 * Determinism: equal inputs give equal bits on the same back end and machine; reductions have fixed
 * orders. Not promised: equal bits between back ends, nor between machines. Dropout masks are the
 * exception: they are equal everywhere.
 *
 * Usable from C++ (the plugin's .cu files). */
#ifndef ASSAY_KERNELS_BACKEND_H
#define ASSAY_KERNELS_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "base/status.h" /* inside extern "C": it has C linkage too */

/* ---- back ends ---- */

struct backend;

struct backend_opts {
    int threads; /* of "cpu", including the caller's thread. They run lanes, or share one large
                  * operation; 0: 1. OpenBLAS itself is set to one thread, for the whole process */
    bool bf16;   /* cuda: matrix products round factors to bfloat16 and sum in float32; weights stay
                 * float32. AS_E_UNSUPPORTED on the other back ends */
    int device;  /* ordinal of the CUDA device, among those that CUDA_VISIBLE_DEVICES shows */
};

/* Open a back end.
 *   name   "reference", "cpu", "cuda", or NULL to choose: $ASSAY_BACKEND when set and not empty,
 *          otherwise cuda when it opens, otherwise cpu. A given name is never replaced by another.
 *   opts   borrowed; NULL for the defaults
 *   ret    owned by the caller, free with backend_free() after its buffers
 * The plugin is searched for in $ASSAY_PLUGIN_DIR (if set, nowhere else), beside the executable, in
 * kernels/ of a build tree, and in the library folder of the installation: first where it lies
 * from the executable, for it may have been moved. Without $ASSAY_PLUGIN_DIR it is not loaded
 * where there is no driver, or where $CUDA_VISIBLE_DEVICES is empty or -1.
 * AS_E_INVAL        the name (or $ASSAY_BACKEND) is unknown (the message lists the known names), or
 *                   an option is out of range
 * AS_E_UNSUPPORTED  cuda: no plugin was found, or it has another version
 * AS_E_UNAVAILABLE  cuda: the plugin does not load, the driver is absent or too old (the message
 *                   says which driver is needed and which was found), no GPU is
 *                   visible, the device fails, or the plugin has no code for any device
 * AS_E_NOMEM (host or device memory), AS_E_INTERNAL */
AS_MUST_CHECK as_status backend_open(const char *name, const struct backend_opts *opts,
                                     struct backend **ret, struct as_err *err);
void backend_free(struct backend *be);
void backend_freep(struct backend **be); /* for AS_AUTO */

/* "reference", "cpu" or "cuda". */
const char *backend_name(const struct backend *be);

/* The hardware that it runs on, for logs: "AVX-512, 2 threads", "OpenBLAS Haswell, 1 thread",
 * "NVIDIA H200". View of be. */
const char *backend_device(const struct backend *be);

/* Wait until all operations called so far are done. The errors of `Order` above: an operation since
 * the last wait failed. */
AS_MUST_CHECK as_status backend_sync(struct backend *be, struct as_err *err);

/* Say that the operations of a step have been called. Waits until the device is at most four steps
 * behind, so that a host that looks at signals between steps obeys them in time. On the host it
 * does nothing. Errors as backend_sync; AS_E_CONFLICT while a graph is recorded. */
AS_MUST_CHECK as_status backend_step_end(struct backend *be, struct as_err *err);

/* The device's memory in bytes: what is free now, and all of it. Both are 0 where buffers lie in
 * the host's memory. */
AS_MUST_CHECK as_status backend_memory(struct backend *be, size_t *ret_free, size_t *ret_total,
                                       struct as_err *err);

#define BACKEND_GPU_ID_MAX 48

struct backend_gpu {
    char id[BACKEND_GPU_ID_MAX]; /* "GPU-…" or "MIG-…", as CUDA_VISIBLE_DEVICES takes it */
    size_t memory_bytes;
};

/* List the GPUs that back end cuda could open, in its order: those that CUDA_VISIBLE_DEVICES shows.
 * *ret_n is at most `most`; 0 if the driver finds none. AS_E_UNSUPPORTED and AS_E_UNAVAILABLE as
 * backend_open: no GPU of this machine can be used. */
AS_MUST_CHECK as_status backend_gpus(struct backend_gpu *ret, size_t most, size_t *ret_n,
                                     struct as_err *err);

/* ---- buffers ---- */

typedef enum buf_kind { BUF_F32, BUF_I32 } buf_kind;

struct buf;

/* n elements, set to zero, aligned to 64 bytes or more. *ret is owned by the caller: buf_free().
 * AS_E_NOMEM (host or device memory), AS_E_TOO_LARGE (n * 4 overflows). */
AS_MUST_CHECK as_status buf_create(struct backend *be, buf_kind kind, size_t n, struct buf **ret,
                                   struct as_err *err);

/* As buf_create, with the n elements in `data`. It takes `data`, which comes from malloc, even on
 * failure. On the host `data` becomes the buffer's memory (aligned as malloc does it). On a device
 * it is uploaded and freed. */
AS_MUST_CHECK as_status buf_adopt(struct backend *be, buf_kind kind, size_t n, void *data,
                                  struct buf **ret, struct as_err *err);
void buf_free(struct buf *b);
void buf_freep(struct buf **b); /* for AS_AUTO */

buf_kind buf_kind_get(const struct buf *b);
size_t buf_len(const struct buf *b); /* elements */

/* Copy n elements in: src holds n float or int32_t as the buffer's kind says; borrowed; the
 * caller may change it when the call returns. AS_E_INVAL: past the end. */
AS_MUST_CHECK as_status buf_upload(struct buf *b, size_t offset, const void *src, size_t n,
                                   struct as_err *err);

/* Copy n elements out, after all earlier operations. AS_E_INVAL: past the end. */
AS_MUST_CHECK as_status buf_download(const struct buf *b, size_t offset, void *dst, size_t n,
                                     struct as_err *err);

/* Memory of the host for numbers that travel to and from buffers: n elements of 4 bytes, zero. With
 * a device it is page-locked, so that the device copies by itself while the host goes on; elsewhere
 * it is ordinary memory. ret: backend_host_free() before the back end. AS_E_NOMEM, AS_E_TOO_LARGE;
 * AS_E_CONFLICT while a graph is recorded. */
AS_MUST_CHECK as_status backend_host_alloc(struct backend *be, size_t n, void **ret,
                                           struct as_err *err);
void backend_host_free(struct backend *be, void *p); /* NULL is fine */

/* Begin to copy n elements out, behind all operations that were called before, beside those that
 * are called later: on a device the copies have a stream of their own. Copies of one back end end
 * in the order in which they began. Until it has ended, nobody may change the elements, or use dst.
 *   dst      of backend_host_alloc(): other memory makes the host wait
 *   ret      for backend_copied()
 * AS_E_INVAL: past the end. AS_E_CONFLICT while a graph is recorded. */
AS_MUST_CHECK as_status buf_download_begin(const struct buf *b, size_t offset, void *dst, size_t n,
                                           uint64_t *ret, struct as_err *err);

/* Has this copy ended? With `wait`, the call returns when it has. Errors as backend_sync. */
AS_MUST_CHECK as_status backend_copied(struct backend *be, uint64_t copy, bool wait, bool *ret,
                                       struct as_err *err);

/* Set n elements to one value. AS_E_INVAL: past the end, or the other kind. */
AS_MUST_CHECK as_status buf_fill_f32(struct buf *b, size_t offset, size_t n, float value,
                                     struct as_err *err);
AS_MUST_CHECK as_status buf_fill_i32(struct buf *b, size_t offset, size_t n, int32_t value,
                                     struct as_err *err);

/* Copy n elements within the device; both of one back end and kind. The ranges must not overlap.
 * AS_E_INVAL otherwise. */
AS_MUST_CHECK as_status buf_copy(struct buf *dst, size_t dst_offset, const struct buf *src,
                                 size_t src_offset, size_t n, struct as_err *err);

/* The elements themselves where they lie in the host's memory, as n float or int32_t; NULL where
 * they do not. A view of b: valid until it is freed, and changed by the operations that write b. */
const void *buf_host(const struct buf *b);

/* ---- tensors: places in buffers ---- */

struct tensor {
    struct buf *buf; /* borrowed; NULL: absent */
    size_t offset;   /* of member 0, in elements */
    size_t stride;   /* from member k to k + 1, in elements; 0: shared by all members */
};

static inline struct tensor tensor_at(struct buf *b, size_t offset, size_t stride)
{
    struct tensor t = {b, offset, stride};
    return t;
}

static inline struct tensor tensor_none(void)
{
    struct tensor t = {NULL, 0, 0};
    return t;
}

static inline bool tensor_is_none(struct tensor t)
{
    return t.buf == NULL;
}

/* The tensor without its first k members. */
static inline struct tensor tensor_from(struct tensor t, size_t k)
{
    t.offset += k * t.stride;
    return t;
}

/* ---- lanes: members side by side ---- */

/* How many calls of backend_for_each run at once: the threads of cpu; 1 for the others. */
size_t backend_lanes(const struct backend *be);

typedef as_status backend_task(struct backend *lane, size_t i, void *arg, struct as_err *err);

/* Call task(lane, i, arg) for every i in [0, n), up to backend_lanes() of them at once, in the back
 * end's own threads. A task uses `lane` in place of `be`: it accepts the same buffers. Inside a
 * task operations run in the task's thread alone, and `be` itself may only create buffers. Tasks
 * that run side by side must not write memory that another task reads or writes, so each uses other
 * members. With one lane the caller's thread makes the calls, in order, with be. Which lane runs
 * which task is not fixed, and outputs must not depend on it. All tasks are run, and the error of
 * the lowest i is returned. A task must not call backend_for_each. */
AS_MUST_CHECK as_status backend_for_each(struct backend *be, size_t n, backend_task *task,
                                         void *arg, struct as_err *err);

/* ---- graphs: a sequence of operations recorded once ---- */

struct graph;

/* Until backend_graph_end(), operations are recorded and not run. Their arguments are checked once,
 * when they are recorded. The graph keeps host values (sizes, offsets, grad_scale) as they are
 * then. It borrows the memory behind host pointers (segments) until it is freed. It reads the
 * contents of buffers each time it runs. While a graph is recorded, uploads, downloads, new buffers
 * and sync are refused (AS_E_CONFLICT; a lane does not check this), and the caller must not free a
 * buffer. AS_E_UNSUPPORTED: this back end cannot record (reference); call the operations each time.
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status backend_graph_begin(struct backend *be, struct as_err *err);

/* End the recording.
 *   ret  owned by the caller; graph_free() it before the back end and the buffers that it uses
 * If the device refused an operation during the recording, this call fails too and there is no
 * graph. An operation that failed its checks is not in the graph. Call this after a failed
 * operation as well, because it ends the recording. AS_E_CONFLICT: no graph is being recorded. */
AS_MUST_CHECK as_status backend_graph_end(struct backend *be, struct graph **ret,
                                          struct as_err *err);

/* `be` is the back end that g was recorded with, or any lane of it. A graph runs in one thread at a
 * time. */
AS_MUST_CHECK as_status backend_graph_run(struct backend *be, struct graph *g, struct as_err *err);
void graph_free(struct graph *g);
void graph_freep(struct graph **g); /* for AS_AUTO */

#ifdef __cplusplus
}
#endif

#endif
