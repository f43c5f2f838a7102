/* Numeric kernels behind one interface: three back ends, opaque buffers, one table of operations.
 *
 *   reference   plain C loops, sums in double: the oracle of the tests
 *   cpu         OpenBLAS and loops that gcc vectorises
 *   cuda        cuBLAS and own kernels, in a plugin (libassay-cuda.so) opened at run time
 *
 * Members. Every operation works on K >= 0 *members* at once (fused trials): K models of the
 * same shapes with hyperparameters of their own. K = 1 is the common case and costs
 * nothing extra. A tensor is (buffer, offset, stride): member k begins at element offset + k *
 * stride. A parameter arena [K, N] that holds a weight at element `o` of each member is therefore
 * tensor_at(arena, o, N). Stride 0 means that all members share the one copy; only inputs may be
 * shared (K > 1). Inside a member everything is dense and row-major.
 *
 * Letters: K members, B rows of a batch, D or I inputs, O outputs, C classes, N parameters of one
 * member. F32 and I32 are the element kinds. "[K]" is one element per member.
 *
 * The operations are declared by theme; each ops_X.c checks arguments and calls the back end's table:
 *   ops_data.h    gather, augmentation, the clock of a step
 *   ops_dense.h   linear layers, activations, dropout, sums
 *   ops_conv.h    convolution, pooling, batch normalisation (images, channels last)
 *   ops_seq.h     layer normalisation, embedding, causal attention (sequences)
 *   ops_loss.h    losses with their gradients, softmax
 *   ops_optim.h   gradients as a whole, optimizers, averages of weights
 *
 * Hyperparameters are F32 tensors [K] in device memory: upload them once, or again when a schedule
 * changes them. With stride 0 one value serves all members. A tensor whose buf is NULL
 * (tensor_none()) is absent; where that is allowed, its meaning is stated.
 *
 * Checks. Every call checks kinds, sizes and places before anything is touched: AS_E_INVAL names
 * the operation and the tensor. Operations allocate nothing. Sizes of zero are fine: they do
 * nothing, except that sums over nothing are written as 0.
 *
 * Order. Operations of one back end run in the order of the calls. On cuda they are asynchronous: a
 * fault of the device (AS_E_INTERNAL, or AS_E_NOMEM) may be reported by a later call; buf_download
 * and backend_sync wait.
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

#include "base/status.h" /* within: it has C linkage too */

/* ---- back ends ---- */

struct backend;

struct backend_opts {
    int threads; /* of "cpu", the caller's counted: its lanes, and those that share one large
                  * operation; 0: 1. OpenBLAS itself is set to one thread, for the whole process */
    bool bf16;  /* cuda: products of matrices take bfloat16 factors and sum in float32; weights stay
                 * float32. AS_E_UNSUPPORTED elsewhere */
    int device; /* ordinal of the CUDA device, among those that CUDA_VISIBLE_DEVICES shows */
};

/* Open a back end.
 *   name   "reference", "cpu", "cuda", or NULL to choose: $ASSAY_BACKEND when set and not empty,
 *          otherwise cuda when it opens, otherwise cpu. A name that is given is never replaced.
 *   opts   borrowed; NULL for the defaults
 *   ret    owned by the caller, free with backend_free() after its buffers
 * The plugin is looked for in $ASSAY_PLUGIN_DIR (then nowhere else), beside the executable, in
 * kernels/ of a build tree, and in the install folder. Without $ASSAY_PLUGIN_DIR it is not loaded
 * where there is no driver, or where $CUDA_VISIBLE_DEVICES is empty or -1.
 * AS_E_INVAL        the name (or $ASSAY_BACKEND) is not known; the message lists those that are.
 *                   Or an option is out of range
 * AS_E_UNSUPPORTED  cuda: no plugin there, or one of another version
 * AS_E_UNAVAILABLE  cuda: the plugin does not load, there is no driver or an older one, no device
 *                   that it has code for
 * AS_E_NOMEM, AS_E_INTERNAL (the device fails) */
AS_MUST_CHECK as_status backend_open(const char *name, const struct backend_opts *opts,
                                     struct backend **ret, struct as_err *err);
void backend_free(struct backend *be);
void backend_freep(struct backend **be); /* for AS_AUTO */

/* "reference", "cpu" or "cuda". */
const char *backend_name(const struct backend *be);

/* What it runs on, for logs: "AVX-512, 2 threads", "OpenBLAS Haswell, 1 thread", "NVIDIA H200".
 * View of be.
 */
const char *backend_device(const struct backend *be);

/* Wait until all that was asked is done. AS_E_INTERNAL: an operation since the last wait failed. */
AS_MUST_CHECK as_status backend_sync(struct backend *be, struct as_err *err);

/* ---- buffers ---- */

typedef enum buf_kind { BUF_F32, BUF_I32 } buf_kind;

struct buf;

/* n elements, set to zero, aligned to 64 bytes or more. *ret is owned by the caller: buf_free().
 * AS_E_NOMEM (also: of the device), AS_E_TOO_LARGE (n * 4 overflows). */
AS_MUST_CHECK as_status buf_create(struct backend *be, buf_kind kind, size_t n, struct buf **ret,
                                   struct as_err *err);

/* As buf_create, with n elements that lie in `data`: memory of malloc, taken, on failure too. On
 * the host it becomes the buffer itself (aligned as malloc does it), elsewhere it is uploaded and
 * freed. */
AS_MUST_CHECK as_status buf_adopt(struct backend *be, buf_kind kind, size_t n, void *data,
                                  struct buf **ret, struct as_err *err);
void buf_free(struct buf *b);
void buf_freep(struct buf **b); /* for AS_AUTO */

buf_kind buf_kind_get(const struct buf *b);
size_t buf_len(const struct buf *b); /* elements */

/* Copy n elements in: src holds n float or int32_t as the buffer's kind says; borrowed, and free to
 * change when the call returns. AS_E_INVAL: past the end. */
AS_MUST_CHECK as_status buf_upload(struct buf *b, size_t offset, const void *src, size_t n,
                                   struct as_err *err);

/* Copy n elements out, after everything asked before. AS_E_INVAL: past the end. */
AS_MUST_CHECK as_status buf_download(const struct buf *b, size_t offset, void *dst, size_t n,
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

/* The same place for members from k on. */
static inline struct tensor tensor_from(struct tensor t, size_t k)
{
    t.offset += k * t.stride;
    return t;
}

/* ---- lanes: members side by side ---- */

/* How many calls of backend_for_each run at once: the threads of cpu; 1 for the others. */
size_t backend_lanes(const struct backend *be);

typedef as_status backend_task(struct backend *lane, size_t i, void *arg, struct as_err *err);

/* Call task(lane, i, arg) for every i in [0, n), up to backend_lanes() of them at once in threads
 * of the back end's own. `lane` stands for `be` in that call: it takes the same buffers; within a
 * task operations run in the task's thread alone, and `be` itself is used for new buffers only.
 * Tasks that run side by side must not write what another reads or writes (so: other members). With
 * one lane the calls are made here, in order, with be. Which lane takes which task is not fixed;
 * results must not depend on it. All tasks are run; the error of the lowest i is returned. Not to
 * be nested. */
AS_MUST_CHECK as_status backend_for_each(struct backend *be, size_t n, backend_task *task,
                                         void *arg, struct as_err *err);

/* ---- graphs: a sequence of operations recorded once ---- */

struct graph;

/* Record what the operations called until backend_graph_end() would do, instead of doing it. Their
 * arguments are checked then, once. Host values among them (sizes, offsets, grad_scale) are fixed
 * in the record, what lies behind host pointers (segments) is borrowed until the graph is freed;
 * what lies in buffers is read anew each time it runs. No uploads, downloads, new buffers or sync
 * in between (AS_E_CONFLICT; a lane does not notice), and no buffer is freed. AS_E_UNSUPPORTED:
 * this back end records nothing (reference): call the operations each time. AS_E_NOMEM. */
AS_MUST_CHECK as_status backend_graph_begin(struct backend *be, struct as_err *err);

/* *ret is owned by the caller: graph_free() before the back end and the buffers used. After the
 * device refused an operation in between, this fails too and nothing is recorded; one that failed
 * its checks is not in the record. To be called after a failed operation as well: it ends the
 * record. AS_E_CONFLICT: none is being recorded. */
AS_MUST_CHECK as_status backend_graph_end(struct backend *be, struct graph **ret,
                                          struct as_err *err);

/* `be` may be any lane of the back end that g was recorded with, and of that itself. A graph runs
 * in one thread at a time. */
AS_MUST_CHECK as_status backend_graph_run(struct backend *be, struct graph *g, struct as_err *err);
void graph_free(struct graph *g);
void graph_freep(struct graph **g); /* for AS_AUTO */

#ifdef __cplusplus
}
#endif

#endif
