/* A graph is a list of calls whose arguments were checked when it was recorded: running it makes
 * those calls and does nothing else. This matters for small models: computing and checking the
 * arguments of a step took as long as a layer.
 *
 * While a back end (or a lane) records, its table is the one at the end of this file. The
 * operations of that table append the call to the graph instead of making it. A lane's buffers
 * belong to its owner, so calls that move data are refused only where the back end itself
 * records. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kernels/cpu/cpu.h"
#include "kernels/host_buf.h"

/* The arguments of an operation besides its struct of arguments. */
struct extra {
    struct tensor t[4];
    act_kind act;
    float number;
    bool flag;
};

typedef as_status again(struct backend *be, const struct extra *x, const void *args,
                        struct as_err *err);

/* The struct of arguments follows it. */
struct call {
    again *again;
    struct extra extra;
    size_t args_bytes; /* a multiple of 8 */
};

struct cpu_graph {
    struct graph base; /* must be first: a struct graph * points to one of these */
    unsigned char *calls;
    size_t bytes, capacity;
    bool out_of_memory;
};

static void graph_done(struct cpu_graph *g)
{
    free(g->calls);
    free(g);
}

/* ---- recording ---- */

static bool make_room(struct cpu_graph *g, size_t bytes)
{
    if (bytes <= g->capacity - g->bytes)
        return true;
    size_t capacity = 2 * g->capacity + bytes;
    unsigned char *calls = realloc(g->calls, capacity);
    g->out_of_memory = g->out_of_memory || calls == NULL;
    if (calls == NULL)
        return false;
    g->calls = calls;
    g->capacity = capacity;
    return true;
}

static as_status record_call(struct backend *be, again *what, const struct extra *x,
                             const void *args, size_t args_bytes)
{
    struct cpu_graph *g = ((struct cpu_side *)be)->record;
    struct call c = {.again = what, .args_bytes = (args_bytes + 7) / 8 * 8};
    if (x != NULL)
        c.extra = *x;
    if (!make_room(g, sizeof(c) + c.args_bytes))
        return AS_OK; /* backend_graph_end() returns the error */
    memcpy(g->calls + g->bytes, &c, sizeof(c));
    memcpy(g->calls + g->bytes + sizeof(c), args, args_bytes);
    g->bytes += sizeof(c) + c.args_bytes;
    return AS_OK;
}

/* ---- operations: how each is recorded, and called again ---- */

#define AGAIN(name, ...)                                                                           \
    static as_status again_##name(struct backend *be, const struct extra *x, const void *args,     \
                                  struct as_err *err)                                              \
    {                                                                                              \
        (void)x;                                                                                   \
        return cpu_##name(be, args, __VA_ARGS__);                                                  \
    }

/* Operations that need only their struct of arguments. */
#define PLAIN_OF(name, type)                                                                       \
    AGAIN(name, err)                                                                               \
    static as_status note_##name(struct backend *be, const struct type *a, struct as_err *err)     \
    {                                                                                              \
        (void)err;                                                                                 \
        return record_call(be, again_##name, NULL, a, sizeof(*a));                                 \
    }
#define PLAIN(name) PLAIN_OF(name, name##_args)

PLAIN(gather)
PLAIN(gather_bytes)
PLAIN(columns)
PLAIN(dropout)
PLAIN(softmax_ce)
PLAIN(mse)
PLAIN(grad_stats)
PLAIN(grad_clip)
PLAIN(tick)
PLAIN(augment)
PLAIN(add)
PLAIN(huber)
PLAIN(bce)
PLAIN(weigh_rows)
PLAIN(grad_accumulate)
PLAIN(ema)
PLAIN_OF(act_backward, act_args)
PLAIN_OF(attention_forward, attention_args)
PLAIN_OF(optimize, opt_args)

/* Operations with a struct of arguments, then tensors; params declares them in the table's
 * order. */
#define TENSORS(name, type, params, packed, ...)                                                   \
    AGAIN(name, __VA_ARGS__, err)                                                                  \
    static as_status note_##name params                                                            \
    {                                                                                              \
        (void)err;                                                                                 \
        const struct extra x = {.t = packed};                                                      \
        return record_call(be, again_##name, &x, a, sizeof(struct type));                          \
    }
#define LIST(...)                                                                                  \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

TENSORS(pool_forward, pool_args,
        (struct backend * be, const struct pool_args *a, struct tensor in, struct tensor y,
         struct as_err *err),
        LIST(in, y), x->t[0], x->t[1])
TENSORS(pool_backward, pool_args,
        (struct backend * be, const struct pool_args *a, struct tensor dy, struct tensor dx,
         struct as_err *err),
        LIST(dy, dx), x->t[0], x->t[1])
TENSORS(batch_norm_eval, batch_norm_args,
        (struct backend * be, const struct batch_norm_args *a, struct tensor mean,
         struct tensor var, struct as_err *err),
        LIST(mean, var), x->t[0], x->t[1])
TENSORS(batch_norm_backward, batch_norm_args,
        (struct backend * be, const struct batch_norm_args *a, struct tensor dy, struct tensor dx,
         struct tensor dgamma, struct tensor dbeta, struct as_err *err),
        LIST(dy, dx, dgamma, dbeta), x->t[0], x->t[1], x->t[2], x->t[3])
TENSORS(layer_norm_forward, layer_norm_args,
        (struct backend * be, const struct layer_norm_args *a, struct tensor y, struct as_err *err),
        LIST(y), x->t[0])
TENSORS(layer_norm_backward, layer_norm_args,
        (struct backend * be, const struct layer_norm_args *a, struct tensor dy, struct tensor dx,
         struct tensor dgamma, struct tensor dbeta, struct as_err *err),
        LIST(dy, dx, dgamma, dbeta), x->t[0], x->t[1], x->t[2], x->t[3])
TENSORS(embedding_forward, embedding_args,
        (struct backend * be, const struct embedding_args *a, struct tensor y, struct as_err *err),
        LIST(y), x->t[0])
TENSORS(embedding_backward, embedding_args,
        (struct backend * be, const struct embedding_args *a, struct tensor dy,
         struct tensor dtable, struct tensor dpositions, struct as_err *err),
        LIST(dy, dtable, dpositions), x->t[0], x->t[1], x->t[2])
TENSORS(attention_backward, attention_args,
        (struct backend * be, const struct attention_args *a, struct tensor dout,
         struct tensor dqkv, struct as_err *err),
        LIST(dout, dqkv), x->t[0], x->t[1])

AGAIN(batch_norm_train, x->number, x->t[0], x->t[1], err)
static as_status note_batch_norm_train(struct backend *be, const struct batch_norm_args *a,
                                       float momentum, struct tensor mean, struct tensor var,
                                       struct as_err *err)
{
    (void)err;
    const struct extra x = {.t = {mean, var}, .number = momentum};
    return record_call(be, again_batch_norm_train, &x, a, sizeof(*a));
}

/* Layers with weights: forward with an activation and its output, backward with gradients. */
#define LAYER(name)                                                                                \
    AGAIN(name##_forward, x->act, x->t[0], x->t[1], err)                                           \
    static as_status note_##name##_forward(struct backend *be, const struct name##_args *a,        \
                                           act_kind act, struct tensor y, struct tensor z,         \
                                           struct as_err *err)                                     \
    {                                                                                              \
        (void)err;                                                                                 \
        const struct extra x = {.t = {y, z}, .act = act};                                          \
        return record_call(be, again_##name##_forward, &x, a, sizeof(*a));                         \
    }

LAYER(linear)
LAYER(conv)

AGAIN(linear_backward, &(const struct linear_grads){x->t[0], x->t[1], x->t[2], x->t[3], x->flag},
      err)
static as_status note_linear_backward(struct backend *be, const struct linear_args *a,
                                      const struct linear_grads *g, struct as_err *err)
{
    (void)err;
    const struct extra x = {.t = {g->dy, g->dx, g->dw, g->db}, .flag = g->accumulate};
    return record_call(be, again_linear_backward, &x, a, sizeof(*a));
}

AGAIN(conv_backward, &(const struct conv_grads){x->t[0], x->t[1], x->t[2], x->t[3]}, err)
static as_status note_conv_backward(struct backend *be, const struct conv_args *a,
                                    const struct conv_grads *g, struct as_err *err)
{
    (void)err;
    const struct extra x = {.t = {g->dy, g->dx, g->dw, g->db}};
    return record_call(be, again_conv_backward, &x, a, sizeof(*a));
}

/* ---- calls that are refused while recording ---- */

static as_status refuse_while_recording(const char *what, struct as_err *err)
{
    return as_fail(err, AS_E_CONFLICT, "%s while a graph is recorded", what);
}

static as_status refuse_sync(struct backend *be, struct as_err *err)
{
    (void)be;
    return refuse_while_recording("sync", err);
}

static as_status refuse_alloc(struct buf *b, struct as_err *err)
{
    (void)b;
    return refuse_while_recording("a new buffer", err);
}

static as_status refuse_upload(struct buf *b, size_t offset, const void *src, size_t n,
                               struct as_err *err)
{
    (void)b, (void)offset, (void)src, (void)n;
    return refuse_while_recording("upload", err);
}

static as_status refuse_download(const struct buf *b, size_t offset, void *dst, size_t n,
                                 struct as_err *err)
{
    (void)b, (void)offset, (void)dst, (void)n;
    return refuse_while_recording("download", err);
}

static as_status refuse_fill(struct buf *b, size_t offset, size_t n, uint32_t bits,
                             struct as_err *err)
{
    (void)b, (void)offset, (void)n, (void)bits;
    return refuse_while_recording("fill", err);
}

static as_status refuse_copy(struct buf *dst, size_t dst_offset, const struct buf *src,
                             size_t src_offset, size_t n, struct as_err *err)
{
    (void)dst, (void)dst_offset, (void)src, (void)src_offset, (void)n;
    return refuse_while_recording("copy", err);
}

static as_status refuse_for_each(struct backend *be, size_t n, backend_task *task, void *arg,
                                 struct as_err *err)
{
    (void)be, (void)n, (void)task, (void)arg;
    return refuse_while_recording("for each", err);
}

static as_status refuse_begin(struct backend *be, struct as_err *err)
{
    (void)be;
    return as_fail(err, AS_E_CONFLICT, "graph: one is being recorded already");
}

static as_status refuse_run(struct backend *be, struct graph *g, struct as_err *err)
{
    (void)be, (void)g;
    return as_fail(err, AS_E_CONFLICT, "graph: run while another is recorded");
}

#define NOTED(name) .name = note_##name

static const struct backend_ops recording_ops = {
    .name = CPU_NAME,
    .close = cpu_close,
    .sync = refuse_sync,
    .alloc = refuse_alloc,
    .release = host_buf_release,
    .upload = refuse_upload,
    .download = refuse_download,
    .fill = refuse_fill,
    .copy = refuse_copy,
    .lanes = cpu_lanes,
    .for_each = refuse_for_each,
    .graph_begin = refuse_begin,
    .graph_end = cpu_graph_end,
    .graph_run = refuse_run,
    .graph_free = cpu_graph_free,
    .conv_work = cpu_conv_work,
    .attention_work = cpu_attention_work,
    NOTED(gather),
    NOTED(gather_bytes),
    NOTED(columns),
    NOTED(linear_forward),
    NOTED(linear_backward),
    NOTED(act_backward),
    NOTED(dropout),
    NOTED(softmax_ce),
    NOTED(mse),
    NOTED(grad_stats),
    NOTED(grad_clip),
    NOTED(tick),
    NOTED(augment),
    NOTED(add),
    NOTED(conv_forward),
    NOTED(conv_backward),
    NOTED(pool_forward),
    NOTED(pool_backward),
    NOTED(batch_norm_train),
    NOTED(batch_norm_eval),
    NOTED(batch_norm_backward),
    NOTED(layer_norm_forward),
    NOTED(layer_norm_backward),
    NOTED(embedding_forward),
    NOTED(embedding_backward),
    NOTED(attention_forward),
    NOTED(attention_backward),
    NOTED(huber),
    NOTED(bce),
    NOTED(weigh_rows),
    NOTED(grad_accumulate),
    NOTED(optimize),
    NOTED(ema),
};

/* ---- graphs ---- */

as_status cpu_graph_begin(struct backend *be, struct as_err *err)
{
    struct cpu_graph *g = as_calloc(1, sizeof(*g));
    if (g == NULL)
        return as_fail(err, AS_E_NOMEM, "graph: out of memory");
    g->base.be = be->owner != NULL ? be->owner : be;
    ((struct cpu_side *)be)->record = g;
    be->ops = &recording_ops;
    return AS_OK;
}

as_status cpu_graph_end(struct backend *be, struct graph **ret, struct as_err *err)
{
    struct cpu_side *side = (struct cpu_side *)be;
    struct cpu_graph *g = side->record;
    if (g == NULL)
        return as_fail(err, AS_E_CONFLICT, "graph: none is being recorded");
    side->record = NULL;
    be->ops = &cpu_ops;
    if (g->out_of_memory) {
        graph_done(g);
        return as_fail(err, AS_E_NOMEM, "graph: out of memory");
    }
    *ret = &g->base;
    return AS_OK;
}

as_status cpu_graph_run(struct backend *be, struct graph *g, struct as_err *err)
{
    const struct cpu_graph *own = (const struct cpu_graph *)g;
    if (g->be != backend_owner(be))
        return as_fail(err, AS_E_INVAL, "graph: it is of another back end");
    for (size_t at = 0; at < own->bytes;) {
        const struct call *c = (const struct call *)(const void *)(own->calls + at);
        as_status st = c->again(be, &c->extra, c + 1, err);
        if (st != AS_OK)
            return st;
        at += sizeof(*c) + c->args_bytes;
    }
    return AS_OK;
}

void cpu_graph_free(struct graph *g)
{
    graph_done((struct cpu_graph *)g);
}
