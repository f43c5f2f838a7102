/* Convolutional networks: the blocks of a document in their order, then a linear layer to the
 * outputs.
 *
 * The tensors of a block are named by its place: "layers.3", in a branch "layers.3.0". Stored
 * models use these names.
 *
 * A residual block adds its branch to its input. If their shapes differ, a 1x1 convolution projects
 * the input; its stride is searched for. Errors name the block in the document, or the preset,
 * whose blocks the user never wrote. */
#include "model/plan/plan_cnn.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "model/plan/builder_priv.h"

#define MAX_PROJECTION_STRIDE 256

/* The place of a block: at the top level, or in the branch of block `top`. */
struct place {
    size_t top, inner; /* inner: NET_NONE at the top level */
};

static void refuse_block(struct net_builder *b, struct place at, const char *why)
{
    char field[64];
    if (b->spec->model.preset) {
        net_refuse(b, "preset", "%s: %s", b->spec->model.preset, why);
        return;
    }
    if (b->st < 0)
        return;
    if (at.inner == NET_NONE)
        (void)snprintf(field, sizeof field, "layers/%zu", at.top);
    else
        (void)snprintf(field, sizeof field, "layers/%zu/residual/%zu", at.top, at.inner);
    char pointer[AS_ERR_POINTER_MAX];
    (void)snprintf(pointer, sizeof pointer, "%s/model/%s", b->pointer, field);
    b->st = as_fail_at(b->err, AS_E_INVAL, pointer, "%s: %s", pointer, why);
}

static void format_name(struct place at, char ret[NET_NAME_MAX])
{
    if (at.inner == NET_NONE)
        (void)snprintf(ret, NET_NAME_MAX, "layers.%zu", at.top);
    else
        (void)snprintf(ret, NET_NAME_MAX, "layers.%zu.%zu", at.top, at.inner);
}

static size_t out_len(size_t len, size_t kernel, size_t stride, size_t pad)
{
    return len + 2 * pad < kernel ? 0 : (len + 2 * pad - kernel) / stride + 1;
}

/* Set the window of a conv or pool block over `in`. If it does not fit, it refuses the block and
 * returns false. */
static bool set_window(struct net_builder *b, const struct train_block *block, struct place at,
                       struct net_node *n)
{
    char why[96];
    size_t k = (size_t)block->kernel;
    n->kernel_h = n->kernel_w = k;
    n->stride = (size_t)block->stride;
    n->pad = block->padding < 0 ? (k - 1) / 2 : (size_t)block->padding;
    n->out.height = out_len(n->in.height, k, n->stride, n->pad);
    n->out.width = out_len(n->in.width, k, n->stride, n->pad);
    if (n->out.height > 0 && n->out.width > 0)
        return true;
    (void)snprintf(why, sizeof why, "found a window of %zu x %zu over an image of %zu x %zu", k, k,
                   n->in.height, n->in.width);
    refuse_block(b, at, why);
    return false;
}

static size_t add_norm(struct net_builder *b, size_t at, net_act act, const char *of)
{
    char name[NET_NAME_MAX + 8];
    (void)snprintf(name, sizeof name, "%s.norm", of);
    if (act != NET_ACT_NONE && act != NET_ACT_RELU)
        net_refuse(b, "activation", "found %s, expected relu with batch normalisation",
                   act == NET_ACT_TANH ? "tanh" : "gelu");
    return net_add_batch_norm(b, at, act, name);
}

/* Add a convolution whose window is set, with its weights and normalisation. */
static size_t add_convolution(struct net_builder *b, struct net_node *n, bool norm, net_act act,
                              const char *name)
{
    size_t patch = n->kernel_h * n->kernel_w * (n->in.channels / n->groups);
    const struct net_tensor w = {
        .n_dims = 4,
        .dims = {n->kernel_h, n->kernel_w, n->in.channels / n->groups, n->out.channels},
        .fan_in = patch,
        .init = NET_INIT_NORMAL,
        .deviation = net_deviation(norm && act == NET_ACT_NONE ? NET_ACT_RELU : act, patch)};
    const struct net_tensor bias = {
        .n_dims = 1, .dims = {n->out.channels}, .fan_in = patch, .init = NET_INIT_ZERO};
    n->op = NET_CONV;
    n->with = NET_NONE;
    n->act = norm ? NET_ACT_NONE : act;
    n->keeps_z = n->act == NET_ACT_GELU;
    n->weight = net_add_tensor(b, &w, name, "weight");
    n->bias = norm ? NET_NONE : net_add_tensor(b, &bias, name, "bias");
    size_t at = net_add_node(b, n);
    return norm ? add_norm(b, at, act, name) : at;
}

static size_t add_conv(struct net_builder *b, const struct train_block *block, struct place at,
                       size_t from)
{
    struct net_node n = {.from = from, .in = net_out(b, from), .groups = 1};
    char name[NET_NAME_MAX], why[96];
    net_act act = block->linear ? NET_ACT_NONE : net_act_of(b->spec->model.activation);
    if (b->st < 0 || !set_window(b, block, at, &n))
        return 0;
    n.out.channels = (size_t)block->out;
    if (block->depthwise) {
        n.groups = n.in.channels;
        n.out.channels = block->out ? (size_t)block->out : n.in.channels;
        if (n.out.channels % n.groups != 0) {
            (void)snprintf(why, sizeof why,
                           "found %zu channels, expected a multiple of the %zu of the input",
                           n.out.channels, n.groups);
            refuse_block(b, at, why);
            return 0;
        }
    }
    format_name(at, name);
    return add_convolution(b, &n, block->batch_norm, act, name);
}

static size_t add_pool(struct net_builder *b, const struct train_block *block, struct place at,
                       size_t from)
{
    struct net_node n = {.op = block->kind == BLOCK_POOL_MAX ? NET_POOL_MAX : NET_POOL_AVG,
                         .from = from,
                         .with = NET_NONE,
                         .in = net_out(b, from)};
    n.out = n.in;
    if (b->st < 0)
        return 0;
    if (block->kind == BLOCK_POOL_GLOBAL) {
        n.kernel_h = n.in.height;
        n.kernel_w = n.in.width;
        n.stride = 1;
        n.out.height = n.out.width = 1;
    } else if (!set_window(b, block, at, &n)) {
        return 0;
    }
    if (n.op == NET_POOL_MAX)
        n.kept_row = net_shape_elements(n.out);
    return net_add_node(b, &n);
}

static size_t add_dense(struct net_builder *b, const struct train_block *block, struct place at,
                        size_t from)
{
    char name[NET_NAME_MAX];
    net_act act = block->linear ? NET_ACT_NONE : net_act_of(b->spec->model.activation);
    format_name(at, name);
    from = net_add_dense(b, from, (size_t)block->out, block->batch_norm ? NET_ACT_NONE : act,
                         !block->batch_norm, name);
    return block->batch_norm ? add_norm(b, from, act, name) : from;
}

static size_t add_simple(struct net_builder *b, const struct train_block *block, struct place at,
                         size_t from)
{
    switch (block->kind) {
    case BLOCK_CONV:
        return add_conv(b, block, at, from);
    case BLOCK_DENSE:
        return add_dense(b, block, at, from);
    case BLOCK_DROPOUT:
        return net_add_dropout(b, from);
    default:
        return add_pool(b, block, at, from);
    }
}

/* The stride with which a 1x1 convolution turns shape `in` into `out`; 0 if there is none. */
static size_t projection_stride(struct net_shape in, struct net_shape out)
{
    for (size_t s = 1; s <= MAX_PROJECTION_STRIDE; s++)
        if (out_len(in.height, 1, s, 0) == out.height && out_len(in.width, 1, s, 0) == out.width)
            return s;
    return 0;
}

/* The value of `x` in the shape of the branch: x itself, or a projection of it (He et al. 2016,
 * option B), which is normalised if the branch is. */
static size_t add_shortcut(struct net_builder *b, struct place at, size_t x, size_t branch,
                           bool norm)
{
    struct net_shape in = net_out(b, x), out = net_out(b, branch);
    char name[NET_NAME_MAX + 16], self[NET_NAME_MAX], why[128];
    if (b->st < 0 || memcmp(&in, &out, sizeof in) == 0)
        return x;
    size_t stride = projection_stride(in, out);
    if (stride == 0) {
        (void)snprintf(why, sizeof why,
                       "the branch makes %zu x %zu of %zu x %zu, which no 1x1 projection does",
                       out.height, out.width, in.height, in.width);
        refuse_block(b, at, why);
        return x;
    }
    struct net_node n = {.from = x,
                         .in = in,
                         .out = out,
                         .kernel_h = 1,
                         .kernel_w = 1,
                         .stride = stride,
                         .groups = 1};
    format_name(at, self);
    (void)snprintf(name, sizeof name, "%s.projection", self);
    return add_convolution(b, &n, norm, NET_ACT_NONE, name);
}

static size_t add_residual(struct net_builder *b, const struct train_block *block, size_t top,
                           size_t x)
{
    net_act act = net_act_of(b->spec->model.activation);
    size_t branch = x;
    bool norm = false;
    if (act != NET_ACT_RELU)
        net_refuse(b, "activation", "found %s, expected relu with residual blocks",
                   act == NET_ACT_TANH ? "tanh" : "gelu");
    for (size_t i = 0; i < block->inner; i++) {
        const struct train_block *inner = block + 1 + i;
        branch = add_simple(b, inner, (struct place){top, i}, branch);
        norm = norm || (inner->kind == BLOCK_CONV && inner->batch_norm);
    }
    size_t skip = add_shortcut(b, (struct place){top, NET_NONE}, x, branch, norm);
    return net_add_sum(b, branch, skip, NET_ACT_RELU);
}

void net_build_cnn(struct net_builder *b)
{
    const struct train_model_spec *m = &b->spec->model;
    const struct net_data *d = b->data;
    char name[NET_NAME_MAX];
    size_t top = 0;
    if (d->kind != NET_IMAGES) {
        net_refuse(b, "kind", "found cnn, which takes images: the data set is %s",
                   d->kind == NET_TABLE ? "a table" : "a text of tokens");
        return;
    }
    size_t at = net_add_input(b, (struct net_shape){d->height, d->width, d->channels});
    bool flat = false;
    for (size_t i = 0; i < m->n_blocks; i += 1 + m->blocks[i].inner, top++) {
        const struct train_block *block = &m->blocks[i];
        bool spatial = block->kind != BLOCK_DENSE && block->kind != BLOCK_DROPOUT;
        if (spatial && flat)
            refuse_block(b, (struct place){top, NET_NONE},
                         "the layers before it left no image, expected dense or dropout");
        flat = flat || block->kind == BLOCK_DENSE;
        at = block->kind == BLOCK_RESIDUAL
                 ? add_residual(b, block, top, at)
                 : add_simple(b, block, (struct place){top, NET_NONE}, at);
    }
    (void)snprintf(name, sizeof name, "layers.%zu", top);
    (void)net_add_dense(b, at, b->p->outputs, NET_ACT_NONE, true, name);
}
