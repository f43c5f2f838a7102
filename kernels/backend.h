/* Numeric kernels behind one interface: three back ends, opaque buffers, one table of operations.
 *
 *   reference   plain C loops, sums in double: the oracle of the tests
 *   cpu         OpenBLAS and loops that gcc vectorises
 *   cuda        cuBLAS and own kernels, in a plugin (libassay-cuda.so) opened at run time
 *
 * Members. Every operation works on K >= 0 *members* at once (fused trials, TRAINING.md 4): K
 * models of the same shapes with hyperparameters of their own. K = 1 is the common case and costs
 * nothing extra. A tensor is (buffer, offset, stride): member k begins at element offset + k *
 * stride. A parameter arena [K, N] that holds a weight at element `o` of each member is therefore
 * tensor_at(arena, o, N). Stride 0 means that all members share the one copy; only inputs may be
 * shared (K > 1). Inside a member everything is dense and row-major.
 *
 * Letters: K members, B rows of a batch, D or I inputs, O outputs, C classes, N parameters of one
 * member. F32 and I32 are the element kinds. "[K]" is one element per member.
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
    int threads; /* BLAS threads of "cpu"; 0: 1. The setting is the whole process's. */
    int device;  /* ordinal of the CUDA device, among those that CUDA_VISIBLE_DEVICES shows */
};

/* Open a back end.
 *   name   "reference", "cpu", "cuda", or NULL to choose: $ASSAY_BACKEND when set and not empty,
 *          otherwise cuda when it opens, otherwise cpu. A name that is given is never replaced.
 *   opts   borrowed; NULL for the defaults
 *   ret    owned by the caller, free with backend_free() after its buffers
 * The plugin is looked for in $ASSAY_PLUGIN_DIR (then nowhere else), beside the executable, in
 * kernels/ beside the executable's folder (a build tree), and in the install folder.
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

/* What it runs on, for logs: "OpenBLAS 0.3.21 SapphireRapids, 1 thread", "NVIDIA H200". View of be.
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

/* ---- gather: rows of a data set into a batch ---- */

struct gather_args {
    size_t members, rows, batch, width; /* K, rows of src, B, D */
    struct tensor src;                  /* [K or shared, rows, D], F32 or I32 */
    struct tensor index;                /* [K or shared, B], I32, each in [0, rows) */
    struct tensor dst;                  /* [K, B, D], of src's kind; must not overlap src */
};

/* dst[k, r, :] = src[k, index[k, r], :]. With src, index and K = 1 shared the batch is read by all
 * members through stride 0. An index out of range fills its row with NaN (I32: -1), so that the
 * fault shows in the loss; nothing is read outside src. */
AS_MUST_CHECK as_status backend_gather(struct backend *be, const struct gather_args *a,
                                       struct as_err *err);

/* ---- linear layers ---- */

/* none: z. relu: max(z, 0), NaN stays NaN. tanh. gelu: z * (1 + erf(z / sqrt 2)) / 2, the exact
 * form (Hendrycks and Gimpel 2016), not the tanh approximation. */
typedef enum act_kind { ACT_NONE, ACT_RELU, ACT_TANH, ACT_GELU } act_kind;

/* Whether backend_act_backward needs the activation's *input* z (gelu) or its *output* (others). */
static inline bool act_keeps_input(act_kind act)
{
    return act == ACT_GELU;
}

struct linear_args {
    size_t members, batch, in, out; /* K, B, I, O */
    struct tensor x;                /* [K or shared, B, I] */
    struct tensor w;                /* [K or shared, I, O] */
    struct tensor b;                /* [K or shared, O]; absent: no bias */
};

/* y[k] = act(x[k] w[k] + b[k]).
 *   y   [K, B, O]; must not overlap the inputs
 *   z   [K, B, O]: receives x w + b, before the activation; absent: not kept. Needed for the
 *       backward pass of gelu. z may be y only when act is ACT_NONE. */
AS_MUST_CHECK as_status backend_linear_forward(struct backend *be, const struct linear_args *a,
                                               act_kind act, struct tensor y, struct tensor z,
                                               struct as_err *err);

struct linear_grads {
    struct tensor dy; /* [K, B, O]: gradient by z = x w + b (so after backend_act_backward) */
    struct tensor dx; /* [K, B, I]: dy w^T; absent: not wanted. Always overwritten */
    struct tensor dw; /* [K, I, O]: x^T dy; absent: not wanted */
    struct tensor db; /* [K, O]: sum of dy over the rows; absent: not wanted */
    bool accumulate;  /* dw and db are added to instead of overwritten */
};

/* The gradients of backend_linear_forward. `a` as in the forward call (b is not read). The outputs
 * must not overlap the inputs or one another. */
AS_MUST_CHECK as_status backend_linear_backward(struct backend *be, const struct linear_args *a,
                                                const struct linear_grads *g, struct as_err *err);

struct act_args {
    size_t members, n; /* n elements of each member */
    act_kind act;
    struct tensor kept; /* [K, n]: the activation's output, or its input where act_keeps_input() */
    struct tensor dy;   /* [K, n]: gradient by the activation's output */
    struct tensor dx;   /* [K, n]: gradient by its input; may be dy (in place) */
};

/* dx = dy * act'(z). relu'(0) = 0. */
AS_MUST_CHECK as_status backend_act_backward(struct backend *be, const struct act_args *a,
                                             struct as_err *err);

/* ---- dropout ---- */

struct dropout_args {
    size_t members, n;  /* n elements of each member, row-major [B, width] */
    struct tensor x;    /* [K or shared, n] */
    struct tensor y;    /* [K, n]; may be x (in place) */
    struct tensor rate; /* [K]: share of elements dropped. <= 0 or NaN: none; >= 1: all */
    struct tensor seed; /* [K, 2], I32: low word, high word of the member's 64-bit seed */
    struct tensor
        step;       /* [K], I32: the member's step counter (the optimizer's own may be passed) */
    uint32_t layer; /* < 2^24: which dropout of the model */
};

/* y = x * keep / (1 - rate), where keep depends only on (seed, step, layer, element): no mask is
 * stored, and the backward pass is the same call on the gradient (same step!).
 *
 * Element i of member k is kept when word i mod 4 of philox4x32(key = seed[k],
 * hi = step[k] << 32 | layer << 8 | DROPOUT_PURPOSE, lo = i / 4) is >= rate[k] * 2^32, truncated.
 * The same bits on every back end. In place over an activation's output is safe for the backward
 * pass of none and relu, not of tanh. */
#define DROPOUT_PURPOSE 0xD0u
AS_MUST_CHECK as_status backend_dropout(struct backend *be, const struct dropout_args *a,
                                        struct as_err *err);

/* ---- losses ---- */

/* Where a loss leaves its figures. With `accumulate` false these are overwritten, so weight = 1
 * gives the batch's mean; with weight = B and accumulate, loss sums over the rows of an epoch and
 * needs no wait per step. */
struct loss_out {
    struct tensor row_loss; /* [K, B], F32: each row's loss. Required: it is also the workspace */
    struct tensor loss;     /* [K], F32: weight * mean of row_loss (added when accumulate) */
    float weight;
    bool accumulate;
};

struct softmax_ce_args {
    size_t members, batch, classes; /* K, B, C; C >= 1 */
    struct tensor logits;           /* [K, B, C] */
    struct tensor labels;           /* [K or shared, B], I32, each in [0, C) */
    struct tensor smoothing;        /* [K]: label smoothing s in [0, 1]; absent: 0 */
    struct tensor dlogits;          /* [K, B, C]; may be logits (in place); absent: forward only */
    float grad_scale;               /* dlogits = grad_scale / B * (softmax - target); usually 1 */
    struct tensor row_class; /* [K, B], I32: argmax of the logits, the first of equals; -1 when
                              * one is NaN. Required */
    struct tensor correct;   /* [K], I32: rows where row_class is the label (added when
                              * out.accumulate) */
    struct loss_out out;
};

/* Softmax cross-entropy, forward and backward in one pass. target = (1 - s) onehot + s / C, as
 * PyTorch's. A label out of range makes its row's loss and gradient NaN. */
AS_MUST_CHECK as_status backend_softmax_ce(struct backend *be, const struct softmax_ce_args *a,
                                           struct as_err *err);

struct mse_args {
    size_t members, batch, outputs; /* K, B, O */
    struct tensor pred;             /* [K, B, O] */
    struct tensor target;           /* [K or shared, B, O] */
    struct tensor dpred;            /* [K, B, O]; may be pred (in place); absent: forward only */
    float grad_scale;    /* dpred = grad_scale * 2 / (B O) * (pred - target); usually 1 */
    struct loss_out out; /* row_loss: mean over the O outputs */
};

/* Mean squared error over rows and outputs, forward and backward. */
AS_MUST_CHECK as_status backend_mse(struct backend *be, const struct mse_args *a,
                                    struct as_err *err);

struct softmax_args {
    size_t members, batch, classes;
    struct tensor logits; /* [K, B, C] */
    struct tensor probs;  /* [K, B, C]; may be logits (in place) */
};

/* Softmax over the classes, for predictions. */
AS_MUST_CHECK as_status backend_softmax(struct backend *be, const struct softmax_args *a,
                                        struct as_err *err);

/* ---- gradients as a whole ---- */

struct grad_stats_args {
    size_t members, n;     /* K, N */
    struct tensor grads;   /* [K, N] */
    struct tensor sq_norm; /* [K], F32: sum of squares (summed in double) */
    struct tensor finite;  /* [K], I32: 1 when every element is finite, else 0 */
    struct tensor active;  /* [K], I32: set to 0 where not finite, otherwise left; absent: none */
};

AS_MUST_CHECK as_status backend_grad_stats(struct backend *be, const struct grad_stats_args *a,
                                           struct as_err *err);

struct grad_clip_args {
    size_t members, n;
    struct tensor grads;    /* [K, N], in place */
    struct tensor sq_norm;  /* [K], from backend_grad_stats */
    struct tensor max_norm; /* [K]; <= 0 or NaN: that member is not clipped */
};

/* grads[k] *= min(1, max_norm / (norm + 1e-6)), as PyTorch's clip_grad_norm_. A member whose norm
 * is not finite is left as it is. */
AS_MUST_CHECK as_status backend_grad_clip(struct backend *be, const struct grad_clip_args *a,
                                          struct as_err *err);

/* ---- optimizers over an arena [K, N] ---- */

/* What both optimizers share. A member whose `active` is 0 is untouched: parameters, moments and
 * step counter. An active member's step counter goes up by one. */
struct opt_arena {
    size_t members, n;          /* K, N */
    struct tensor params;       /* [K, N], in place */
    struct tensor grads;        /* [K, N], read only */
    struct tensor lr;           /* [K] */
    struct tensor weight_decay; /* [K]; absent: 0 */
    struct tensor active;       /* [K], I32; absent: all */
    struct tensor step;         /* [K], I32: steps done so far, in place */
};

struct sgd_args {
    struct opt_arena arena;
    struct tensor velocity; /* [K, N], zero before the first step; in place */
    struct tensor momentum; /* [K]; absent: 0 */
    struct tensor nesterov; /* [K], I32: non-zero for Nesterov's form; absent: none */
};

/* torch.optim.SGD: g += wd p (coupled); v = momentum v + g; g = nesterov ? g + momentum v : v;
 * p -= lr g. */
AS_MUST_CHECK as_status backend_sgd(struct backend *be, const struct sgd_args *a,
                                    struct as_err *err);

struct adamw_args {
    struct opt_arena arena;
    struct tensor m, v;              /* [K, N], zero before the first step; in place */
    struct tensor beta1, beta2, eps; /* [K] */
};

/* torch.optim.AdamW (Loshchilov and Hutter 2019), t = step + 1: p *= 1 - lr wd (decoupled);
 * m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2;
 * p -= lr / (1 - b1^t) * m / (sqrt(v / (1 - b2^t)) + eps). */
AS_MUST_CHECK as_status backend_adamw(struct backend *be, const struct adamw_args *a,
                                      struct as_err *err);

#ifdef __cplusplus
}
#endif

#endif
