/* The nodes of a plan (model/plan/net.h) as operators of ONNX, one function for each operation.
 *
 * Images are [height, width, channels] in Assay and [channels, height, width] in ONNX. The input
 * is brought into ONNX's order when the first operation on images reads it, and a product over all
 * of an image turns it back, because the rows of its weight are in Assay's order. So only the
 * weights of convolutions are reordered, here, once.
 *
 * Batch normalisation stays an operator of its own: runtimes fold it into the convolution before it
 * with their own rules. Dropout does nothing when a model predicts, so it has no operator. */
#include "model/onnx/layers.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define NORM_EPS 1e-5f /* of both normalisations, as in model/network */

typedef enum layout {
    LAYOUT_FLAT,     /* [rows, elements] */
    LAYOUT_LAST,     /* [rows, height, width, channels] */
    LAYOUT_FIRST,    /* [rows, channels, height, width] */
    LAYOUT_SEQUENCE, /* [rows, tokens, channels] */
} layout;

struct value {
    const char *name;
    layout layout;
};

struct layers {
    struct onnx_graph *g;
    const struct model_file *file;
    size_t member;
    const struct net_plan *plan;
    const struct onnx_encoded *in;
    struct value *values; /* [n_nodes] */
};

/* ---- weights ---- */

static const void *tensor_data(const struct layers *l, const struct net_tensor *t)
{
    const struct safetensors_tensor *stored = model_file_find(l->file, l->member, t->name);
    if (stored && stored->type == SAFETENSORS_F32 && stored->size_bytes == t->count * sizeof(float))
        return stored->data;
    if (!stored)
        onnx_graph_fail(l->g, AS_E_INVAL, "member %zu: found no tensor %s, expected %zu float32",
                        l->member, t->name, t->count);
    else
        onnx_graph_fail(l->g, AS_E_INVAL, "member %zu: tensor %s has %zu bytes, expected %zu",
                        l->member, t->name, stored->size_bytes, t->count * sizeof(float));
    return NULL;
}

static const char *add_weights(const struct layers *l, const struct net_tensor *t)
{
    int64_t dims[ONNX_MAX_DIMS];
    const void *data = tensor_data(l, t);
    for (size_t i = 0; i < t->n_dims; i++)
        dims[i] = (int64_t)t->dims[i];
    return data ? onnx_graph_constant(l->g, t->name, ONNX_FLOAT, dims, t->n_dims, data) : NULL;
}

static const char *param(const struct layers *l, size_t tensor)
{
    return add_weights(l, &l->plan->tensors[tensor]);
}

/* [KH, KW, C, O] to [O, C, KH, KW]. */
static const char *conv_weights(const struct layers *l, const struct net_tensor *t)
{
    const char *data = tensor_data(l, t);
    size_t area = t->dims[0] * t->dims[1], in = t->dims[2], out = t->dims[3];
    const int64_t dims[] = {(int64_t)out, (int64_t)in, (int64_t)t->dims[0], (int64_t)t->dims[1]};
    char *turned = data ? onnx_graph_memory(l->g, t->count, sizeof(float)) : NULL;
    if (!turned)
        return NULL;
    for (size_t p = 0; p < area; p++)
        for (size_t c = 0; c < in; c++)
            for (size_t o = 0; o < out; o++) /* memcpy: data of a file may be unaligned */
                memcpy(turned + ((o * in + c) * area + p) * sizeof(float),
                       data + ((p * in + c) * out + o) * sizeof(float), sizeof(float));
    return onnx_graph_constant(l->g, t->name, ONNX_FLOAT, dims, 4, turned);
}

/* ---- layouts ---- */

/* The value of a node as [rows, elements], the elements in Assay's order. */
static const char *flat(const struct layers *l, size_t node)
{
    const struct value *v = &l->values[node];
    struct net_shape s = l->plan->nodes[node].out;
    const char *name = v->name;
    if (v->layout == LAYOUT_FLAT)
        return name;
    if (v->layout == LAYOUT_FIRST && s.height * s.width > 1)
        name = onnx_graph_transpose(l->g, name, (int64_t[]){0, 2, 3, 1}, 4);
    return onnx_graph_unary(l->g, "Flatten", name);
}

/* The value of a node as [rows, channels, height, width]; it stays so for later nodes. */
static const char *channels_first(const struct layers *l, size_t node)
{
    struct value *v = &l->values[node];
    if (v->layout == LAYOUT_LAST) {
        v->name = onnx_graph_transpose(l->g, v->name, (int64_t[]){0, 3, 1, 2}, 4);
    } else if (v->layout == LAYOUT_FLAT) { /* 1 x 1 places */
        const char *axes = onnx_graph_ints(l->g, "axes", (int64_t[]){2, 3}, 2);
        v->name = onnx_graph_binary(l->g, "Unsqueeze", v->name, axes);
    }
    v->layout = LAYOUT_FIRST;
    return v->name;
}

/* ---- activations ---- */

/* z / 2 * (1 + erf(z / sqrt 2)) */
static const char *gelu(struct onnx_graph *g, const char *z)
{
    const char *t =
        onnx_graph_binary(g, "Mul", z, onnx_graph_scalar(g, "sqrt_half", (float)M_SQRT1_2));
    t = onnx_graph_unary(g, "Erf", t);
    t = onnx_graph_binary(g, "Add", t, onnx_graph_scalar(g, "one", 1));
    z = onnx_graph_binary(g, "Mul", z, onnx_graph_scalar(g, "half", 0.5f));
    return onnx_graph_binary(g, "Mul", z, t);
}

static const char *activate(struct onnx_graph *g, const char *z, net_act act)
{
    switch (act) {
    case NET_ACT_NONE:
        return z;
    case NET_ACT_RELU:
        return onnx_graph_unary(g, "Relu", z);
    case NET_ACT_TANH:
        return onnx_graph_unary(g, "Tanh", z);
    case NET_ACT_GELU:
        return gelu(g, z);
    }
    return z;
}

/* ---- operations ---- */

static void set(struct layers *l, size_t node, const char *name, layout as)
{
    const char *y = activate(l->g, name, l->plan->nodes[node].act);
    l->values[node] = (struct value){y, as};
}

static void add_input(struct layers *l, size_t i)
{
    struct net_shape s = l->plan->nodes[i].out;
    bool image = l->plan->input == NET_IMAGES;
    l->values[i] = (struct value){l->plan->input == NET_TOKENS ? l->in->codes : l->in->x,
                                  image ? LAYOUT_LAST : LAYOUT_FLAT};
    if (!l->values[i].name && net_shape_elements(s) > 0)
        onnx_graph_fail(l->g, AS_E_INVAL,
                        "member %zu: its rows have no numbers, expected %zu inputs", l->member,
                        net_shape_elements(s));
}

static void add_categories(struct layers *l, size_t i)
{
    const struct net_node *n = &l->plan->nodes[i];
    const char *table = param(l, n->weight);
    const char *rows =
        onnx_graph_add(l->g, &(struct onnx_node){.op = "Gather", ONNX_IN(table, l->in->codes)});
    rows = onnx_graph_unary(l->g, "Flatten", rows); /* [rows, columns, width] */
    const char *both[] = {l->values[n->from].name, rows};
    bool numbers = n->in.channels > 0;
    set(l, i, onnx_graph_concat(l->g, numbers ? both : both + 1, numbers ? 2 : 1, 1), LAYOUT_FLAT);
}

static void add_linear(struct layers *l, size_t i)
{
    const struct net_node *n = &l->plan->nodes[i];
    const char *w = param(l, n->weight), *b = n->bias == NET_NONE ? NULL : param(l, n->bias);
    if (l->values[n->from].layout == LAYOUT_SEQUENCE) {
        const char *y = onnx_graph_binary(l->g, "MatMul", l->values[n->from].name, w);
        set(l, i, b ? onnx_graph_binary(l->g, "Add", y, b) : y, LAYOUT_SEQUENCE);
        return;
    }
    struct onnx_node gemm = {.op = "Gemm", ONNX_IN(flat(l, n->from), w, b)};
    gemm.n_in = b ? 3 : 2;
    set(l, i, onnx_graph_add(l->g, &gemm), LAYOUT_FLAT);
}

static void add_conv(struct layers *l, size_t i)
{
    const struct net_node *n = &l->plan->nodes[i];
    const int64_t kernel[] = {(int64_t)n->kernel_h, (int64_t)n->kernel_w};
    const int64_t strides[] = {(int64_t)n->stride, (int64_t)n->stride};
    const int64_t pad = (int64_t)n->pad, pads[] = {pad, pad, pad, pad};
    const char *x = channels_first(l, n->from), *w = conv_weights(l, &l->plan->tensors[n->weight]);
    const char *b = n->bias == NET_NONE ? NULL : param(l, n->bias);
    struct onnx_node conv = {
        .op = "Conv",
        ONNX_IN(x, w, b),
        ONNX_ATTRS(onnx_ints("kernel_shape", kernel, 2), onnx_ints("strides", strides, 2),
                   onnx_ints("pads", pads, 4), onnx_int("group", (int64_t)n->groups))};
    conv.n_in = b ? 3 : 2;
    set(l, i, onnx_graph_add(l->g, &conv), LAYOUT_FIRST);
}

/* In an average padding counts as 0 (kernels/ops_conv.h). */
static void add_pool(struct layers *l, size_t i)
{
    const struct net_node *n = &l->plan->nodes[i];
    const int64_t kernel[] = {(int64_t)n->kernel_h, (int64_t)n->kernel_w};
    const int64_t strides[] = {(int64_t)n->stride, (int64_t)n->stride};
    const int64_t pad = (int64_t)n->pad, pads[] = {pad, pad, pad, pad};
    bool max = n->op == NET_POOL_MAX;
    struct onnx_node pool = {
        .op = max ? "MaxPool" : "AveragePool",
        ONNX_IN(channels_first(l, n->from)),
        ONNX_ATTRS(onnx_ints("kernel_shape", kernel, 2), onnx_ints("strides", strides, 2),
                   onnx_ints("pads", pads, 4), onnx_int("count_include_pad", 1))};
    pool.n_attrs -= max; /* only an average has the last attribute */
    set(l, i, onnx_graph_add(l->g, &pool), LAYOUT_FIRST);
}

static void add_batch_norm(struct layers *l, size_t i)
{
    const struct net_node *n = &l->plan->nodes[i];
    const struct net_tensor *states = &l->plan->states[n->state];
    bool image = l->values[n->from].layout != LAYOUT_FLAT;
    const char *x = image ? channels_first(l, n->from) : l->values[n->from].name;
    const struct onnx_attr eps = {.name = "epsilon", .kind = ONNX_ATTR_FLOAT, .f = NORM_EPS};
    const char *y = onnx_graph_add(
        l->g, &(struct onnx_node){.op = "BatchNormalization",
                                  ONNX_IN(x, param(l, n->weight), param(l, n->bias),
                                          add_weights(l, &states[0]), add_weights(l, &states[1])),
                                  .attrs = &eps,
                                  .n_attrs = 1});
    set(l, i, y, image ? LAYOUT_FIRST : LAYOUT_FLAT);
}

static void add_sum(struct layers *l, size_t i)
{
    const struct net_node *n = &l->plan->nodes[i];
    layout from = l->values[n->from].layout, with = l->values[n->with].layout;
    const char *a = l->values[n->from].name, *b = l->values[n->with].name;
    layout to = from;
    if (from == LAYOUT_FLAT || with == LAYOUT_FLAT) {
        a = flat(l, n->from);
        b = flat(l, n->with);
        to = LAYOUT_FLAT;
    } else if (from != LAYOUT_SEQUENCE) {
        a = channels_first(l, n->from);
        b = channels_first(l, n->with);
        to = LAYOUT_FIRST;
    }
    set(l, i, onnx_graph_binary(l->g, "Add", a, b), to);
}

static void add_dropout(struct layers *l, size_t i)
{
    l->values[i] = l->values[l->plan->nodes[i].from];
}

/* ---- sequences ---- */

static void add_embedding(struct layers *l, size_t i)
{
    const struct net_node *n = &l->plan->nodes[i];
    const char *table = param(l, n->weight);
    const char *y =
        onnx_graph_add(l->g, &(struct onnx_node){.op = "Gather", ONNX_IN(table, l->in->codes)});
    set(l, i, onnx_graph_binary(l->g, "Add", y, param(l, n->bias)), LAYOUT_SEQUENCE);
}

static void add_layer_norm(struct layers *l, size_t i)
{
    const struct net_node *n = &l->plan->nodes[i];
    const struct onnx_attr eps = {.name = "epsilon", .kind = ONNX_ATTR_FLOAT, .f = NORM_EPS};
    const char *y =
        onnx_graph_add(l->g, &(struct onnx_node){.op = "LayerNormalization",
                                                 ONNX_IN(l->values[n->from].name,
                                                         param(l, n->weight), param(l, n->bias)),
                                                 .attrs = &eps,
                                                 .n_attrs = 1});
    set(l, i, y, LAYOUT_SEQUENCE);
}

/* Part `which` (queries, keys, values) of [rows, T, 3, H, D], its axes in this order. */
static const char *attention_part(const struct layers *l, const char *qkv, int64_t which,
                                  const int64_t order[4])
{
    int64_t *index = onnx_graph_memory(l->g, 1, sizeof *index);
    if (!index)
        return NULL;
    *index = which;
    const char *at = onnx_graph_constant(l->g, "part", ONNX_INT64, NULL, 0, index);
    const char *part = onnx_graph_add(
        l->g,
        &(struct onnx_node){.op = "Gather", ONNX_IN(qkv, at), ONNX_ATTRS(onnx_int("axis", 2))});
    return onnx_graph_transpose(l->g, part, order, 4);
}

/* [T, T]: what hides the tokens that come later. */
static const char *causal_mask(const struct layers *l, size_t seq)
{
    float *mask = onnx_graph_memory(l->g, seq * seq, sizeof *mask);
    for (size_t t = 0; mask && t < seq; t++)
        for (size_t s = t + 1; s < seq; s++)
            mask[t * seq + s] = -FLT_MAX;
    return onnx_graph_constant(l->g, "causal", ONNX_FLOAT, (int64_t[]){(int64_t)seq, (int64_t)seq},
                               2, mask);
}

static void add_attention(struct layers *l, size_t i)
{
    const struct net_node *n = &l->plan->nodes[i];
    struct onnx_graph *g = l->g;
    int64_t seq = (int64_t)n->out.width, heads = (int64_t)n->heads;
    int64_t width = (int64_t)n->out.channels, dim = width / heads;
    const int64_t parts[] = {0, seq, 3, heads, dim}, whole[] = {0, seq, width}; /* 0: all rows */
    const char *qkv = onnx_graph_binary(g, "Reshape", l->values[n->from].name,
                                        onnx_graph_ints(g, "parts", parts, 5));
    const char *q = attention_part(l, qkv, 0, (int64_t[]){0, 2, 1, 3});
    const char *k = attention_part(l, qkv, 1, (int64_t[]){0, 2, 3, 1});
    const char *v = attention_part(l, qkv, 2, (int64_t[]){0, 2, 1, 3});
    const char *scores = onnx_graph_binary(g, "MatMul", q, k); /* [rows, H, T, T] */
    scores =
        onnx_graph_binary(g, "Mul", scores, onnx_graph_scalar(g, "scale", 1 / sqrtf((float)dim)));
    scores = onnx_graph_binary(g, "Add", scores, causal_mask(l, n->out.width));
    scores = onnx_graph_add(
        g, &(struct onnx_node){.op = "Softmax", ONNX_IN(scores), ONNX_ATTRS(onnx_int("axis", -1))});
    const char *y = onnx_graph_binary(g, "MatMul", scores, v);
    y = onnx_graph_transpose(g, y, (int64_t[]){0, 2, 1, 3}, 4);
    y = onnx_graph_binary(g, "Reshape", y, onnx_graph_ints(g, "whole", whole, 3));
    set(l, i, y, LAYOUT_SEQUENCE);
}

typedef void node_fn(struct layers *l, size_t i);

const char *onnx_layers_add(struct onnx_graph *g, const struct model_file *f, size_t member,
                            const struct net_plan *plan, const struct onnx_encoded *in)
{
    static node_fn *const ops[] = {
        [NET_INPUT] = add_input,           [NET_CATEGORIES] = add_categories,
        [NET_LINEAR] = add_linear,         [NET_CONV] = add_conv,
        [NET_POOL_MAX] = add_pool,         [NET_POOL_AVG] = add_pool,
        [NET_BATCH_NORM] = add_batch_norm, [NET_ADD] = add_sum,
        [NET_DROPOUT] = add_dropout,       [NET_EMBEDDING] = add_embedding,
        [NET_LAYER_NORM] = add_layer_norm, [NET_ATTENTION] = add_attention};
    struct layers l = {g, f, member, plan, in, NULL};
    l.values = onnx_graph_memory(g, plan->n_nodes, sizeof *l.values);
    for (size_t i = 0; l.values && i < plan->n_nodes; i++)
        ops[plan->nodes[i].op](&l, i);
    return l.values ? l.values[plan->n_nodes - 1].name : NULL;
}
