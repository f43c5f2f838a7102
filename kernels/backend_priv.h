/* The inside of a back end, for kernels/ and the CUDA plugin (C++) only.
 *
 * A back end embeds `struct backend` as its first member and fills the table of operations. The
 * public functions (backend.c) check every argument first, so an operation need not check
 * kinds, sizes, strides, or that required tensors are present. */
#ifndef ASSAY_KERNELS_BACKEND_PRIV_H
#define ASSAY_KERNELS_BACKEND_PRIV_H

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

struct buf {
    struct backend *be;
    void *data; /* the device's own pointer; on the host for reference and cpu */
    size_t n;
    buf_kind kind;
};

/* A back end that records graphs embeds this as its graph's first member. */
struct graph {
    struct backend *be;
};

/* The names are those of the public functions. Ranges of buffers are in elements of 4 bytes. */
struct backend_ops {
    const char *name;
    void (*close)(struct backend *be);
    as_status (*sync)(struct backend *be, struct as_err *err);
    /* NULL where an operation is done when its call returns, and where the memory is the host's. */
    as_status (*step_end)(struct backend *be, struct as_err *err);
    as_status (*memory)(struct backend *be, size_t *ret_free, size_t *ret_total,
                        struct as_err *err);

    as_status (*alloc)(struct buf *b, struct as_err *err); /* b->n >= 1; sets data, zeroed */
    void (*adopt)(struct buf *b, void *data); /* instead of alloc; NULL: alloc and upload */
    void (*release)(struct buf *b);
    as_status (*upload)(struct buf *b, size_t offset, const void *src, size_t n,
                        struct as_err *err);
    as_status (*download)(const struct buf *b, size_t offset, void *dst, size_t n,
                          struct as_err *err);
    /* NULL where the memory is the host's: then a copy is done when it was begun. */
    as_status (*host_alloc)(struct backend *be, size_t bytes, void **ret, struct as_err *err);
    void (*host_free)(struct backend *be, void *p);
    as_status (*download_begin)(const struct buf *b, size_t offset, void *dst, size_t n,
                                uint64_t *ret, struct as_err *err);
    as_status (*copied)(struct backend *be, uint64_t copy, bool wait, bool *ret,
                        struct as_err *err);
    as_status (*fill)(struct buf *b, size_t offset, size_t n, uint32_t bits, struct as_err *err);
    as_status (*copy)(struct buf *dst, size_t dst_offset, const struct buf *src, size_t src_offset,
                      size_t n, struct as_err *err);

    as_status (*gather)(struct backend *be, const struct gather_args *a, struct as_err *err);
    as_status (*gather_bytes)(struct backend *be, const struct gather_bytes_args *a,
                              struct as_err *err);
    as_status (*columns)(struct backend *be, const struct columns_args *a, struct as_err *err);
    as_status (*linear_forward)(struct backend *be, const struct linear_args *a, act_kind act,
                                struct tensor y, struct tensor z, struct as_err *err);
    as_status (*linear_backward)(struct backend *be, const struct linear_args *a,
                                 const struct linear_grads *g, struct as_err *err);
    as_status (*act_backward)(struct backend *be, const struct act_args *a, struct as_err *err);
    as_status (*dropout)(struct backend *be, const struct dropout_args *a, struct as_err *err);
    as_status (*softmax_ce)(struct backend *be, const struct softmax_ce_args *a,
                            struct as_err *err);
    as_status (*mse)(struct backend *be, const struct mse_args *a, struct as_err *err);
    as_status (*grad_stats)(struct backend *be, const struct grad_stats_args *a,
                            struct as_err *err);
    as_status (*grad_clip)(struct backend *be, const struct grad_clip_args *a, struct as_err *err);
    as_status (*tick)(struct backend *be, const struct tick_args *a, struct as_err *err);
    as_status (*augment)(struct backend *be, const struct augment_args *a, struct as_err *err);
    as_status (*add)(struct backend *be, const struct add_args *a, struct as_err *err);
    size_t (*conv_work)(const struct backend *be, const struct conv_args *a);
    const char *(*conv_path)(const struct backend *be); /* NULL: "own" */
    as_status (*conv_forward)(struct backend *be, const struct conv_args *a, act_kind act,
                              struct tensor y, struct tensor z, struct as_err *err);
    as_status (*conv_backward)(struct backend *be, const struct conv_args *a,
                               const struct conv_grads *g, struct as_err *err);
    as_status (*pool_forward)(struct backend *be, const struct pool_args *a, struct tensor x,
                              struct tensor y, struct as_err *err);
    as_status (*pool_backward)(struct backend *be, const struct pool_args *a, struct tensor dy,
                               struct tensor dx, struct as_err *err);
    as_status (*batch_norm_train)(struct backend *be, const struct batch_norm_args *a,
                                  float momentum, struct tensor running_mean,
                                  struct tensor running_var, struct as_err *err);
    as_status (*batch_norm_eval)(struct backend *be, const struct batch_norm_args *a,
                                 struct tensor running_mean, struct tensor running_var,
                                 struct as_err *err);
    as_status (*batch_norm_backward)(struct backend *be, const struct batch_norm_args *a,
                                     struct tensor dy, struct tensor dx, struct tensor dgamma,
                                     struct tensor dbeta, struct as_err *err);
    as_status (*layer_norm_forward)(struct backend *be, const struct layer_norm_args *a,
                                    struct tensor y, struct as_err *err);
    as_status (*layer_norm_backward)(struct backend *be, const struct layer_norm_args *a,
                                     struct tensor dy, struct tensor dx, struct tensor dgamma,
                                     struct tensor dbeta, struct as_err *err);
    as_status (*embedding_forward)(struct backend *be, const struct embedding_args *a,
                                   struct tensor y, struct as_err *err);
    as_status (*embedding_backward)(struct backend *be, const struct embedding_args *a,
                                    struct tensor dy, struct tensor dtable,
                                    struct tensor dpositions, struct as_err *err);
    size_t (*attention_work)(const struct backend *be, const struct attention_args *a);
    as_status (*attention_forward)(struct backend *be, const struct attention_args *a,
                                   struct as_err *err);
    as_status (*attention_backward)(struct backend *be, const struct attention_args *a,
                                    struct tensor dout, struct tensor dqkv, struct as_err *err);
    as_status (*huber)(struct backend *be, const struct huber_args *a, struct as_err *err);
    as_status (*bce)(struct backend *be, const struct bce_args *a, struct as_err *err);
    as_status (*weigh_rows)(struct backend *be, const struct weigh_rows_args *a,
                            struct as_err *err);
    as_status (*grad_accumulate)(struct backend *be, const struct grad_accumulate_args *a,
                                 struct as_err *err);
    as_status (*optimize)(struct backend *be, const struct opt_args *a, struct as_err *err);
    as_status (*ema)(struct backend *be, const struct ema_args *a, struct as_err *err);

    /* NULL on a back end that runs one task at a time, or that cannot record. */
    size_t (*lanes)(const struct backend *be);
    as_status (*for_each)(struct backend *be, size_t n, backend_task *task, void *arg,
                          struct as_err *err);
    as_status (*graph_begin)(struct backend *be, struct as_err *err);
    as_status (*graph_end)(struct backend *be, struct graph **ret, struct as_err *err);
    as_status (*graph_run)(struct backend *be, struct graph *g, struct as_err *err);
    void (*graph_free)(struct graph *g);
};

#define BACKEND_DEVICE_MAX 96

struct backend {
    const struct backend_ops *ops;
    struct backend *owner; /* of a lane: the back end that it belongs to; NULL otherwise */
    char device[BACKEND_DEVICE_MAX];
};

/* The function that opens a back end: *ret is owned by the caller, closed with ops->close. opts is
 * never NULL. */
as_status reference_open(const struct backend_opts *opts, struct backend **ret, struct as_err *err);
as_status cpu_open(const struct backend_opts *opts, struct backend **ret, struct as_err *err);

/* The owner of the buffers that it uses: the back end itself, or the one that a lane belongs to. */
static inline const struct backend *backend_owner(const struct backend *be)
{
    return be->owner != NULL ? be->owner : be;
}

/* Member k of a tensor; NULL when the tensor is absent. The pointer is the device's. */
static inline float *tensor_f32(struct tensor t, size_t k)
{
    return t.buf == NULL ? NULL : (float *)t.buf->data + t.offset + k * t.stride;
}

static inline int32_t *tensor_i32(struct tensor t, size_t k)
{
    return t.buf == NULL ? NULL : (int32_t *)t.buf->data + t.offset + k * t.stride;
}

/* The plugin's one symbol. `abi` guards against a plugin of another build: raise it whenever this
 * header or the structs of backend.h change. */
#define BACKEND_ABI 8
#define BACKEND_PLUGIN_SYMBOL "assay_backend_plugin"

struct backend_plugin {
    unsigned abi;
    as_status (*open)(const struct backend_opts *opts, struct backend **ret, struct as_err *err);
    as_status (*gpus)(struct backend_gpu *ret, size_t most, size_t *ret_n, struct as_err *err);
};

#ifdef __cplusplus
}
#endif

#endif
