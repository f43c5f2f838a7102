/* Where the tensors of a pass lie, and the arguments that both directions of an operation share. */
#include "model/network/network_priv.h"

act_kind model_act(net_act act)
{
    static const act_kind acts[] = {[NET_ACT_NONE] = ACT_NONE,
                                    [NET_ACT_RELU] = ACT_RELU,
                                    [NET_ACT_TANH] = ACT_TANH,
                                    [NET_ACT_GELU] = ACT_GELU};
    return acts[act];
}

/* `per_member` elements of each slot in `b`, of which the tensor begins at `at`. */
static struct tensor in_range(const struct model_run *r, struct buf *b, size_t per_member,
                              size_t at)
{
    return b ? tensor_at(b, r->first * per_member + at, per_member) : tensor_none();
}

static size_t value_len(const struct model_run *r, size_t node)
{
    return net_shape_elements(model_node(r->m, node)->out) * r->m->max_rows;
}

struct tensor model_value_at(const struct model_run *r, size_t node)
{
    const struct net_node *n = model_node(r->m, node);
    if (n->op == NET_INPUT)
        return tensor_from(r->pass->x, r->first);
    if (n->op == NET_DROPOUT && (n->in_place || !model_drops(r)))
        return model_value_at(r, n->from);
    return in_range(r, r->m->values[node].y, value_len(r, node), 0);
}

struct tensor model_z_at(const struct model_run *r, size_t node)
{
    return in_range(r, r->m->values[node].z, value_len(r, node), 0);
}

struct tensor model_kept_at(const struct model_run *r, size_t node, size_t at)
{
    const struct net_node *n = model_node(r->m, node);
    return in_range(r, r->m->values[node].kept, n->kept_row * r->m->max_rows + n->kept_member, at);
}

struct tensor model_param_at(const struct model_run *r, size_t tensor)
{
    if (tensor == NET_NONE)
        return tensor_none();
    struct buf *b = r->pass->params ? r->pass->params : r->m->params;
    return in_range(r, b, r->m->plan->n_params, r->m->plan->tensors[tensor].offset);
}

struct tensor model_grad_at(const struct model_run *r, size_t tensor)
{
    if (tensor == NET_NONE)
        return tensor_none();
    return in_range(r, r->m->grads, r->m->plan->n_params, r->m->plan->tensors[tensor].offset);
}

struct tensor model_state_at(const struct model_run *r, size_t state)
{
    return in_range(r, r->m->state, r->m->plan->n_state, r->m->plan->states[state].offset);
}

struct tensor model_slot_at(const struct model_run *r, int slot)
{
    if (slot == NET_OUTPUT_SLOT)
        return tensor_from(model_outputs(r->m), r->first);
    if (slot < 0)
        return tensor_none();
    return in_range(r, r->m->gradients[slot], r->m->plan->slots[slot] * r->m->max_rows, 0);
}

struct tensor model_work_at(const struct model_run *r)
{
    return in_range(r, r->m->work, r->m->work_len, 0);
}

struct linear_args model_linear_args(const struct model_run *r, size_t node)
{
    const struct net_node *n = model_node(r->m, node);
    return (struct linear_args){.members = r->n,
                                .batch = r->pass->rows * model_places(n),
                                .in = n->in.channels,
                                .out = n->out.channels,
                                .x = model_value_at(r, n->from),
                                .w = model_param_at(r, n->weight),
                                .b = model_param_at(r, n->bias)};
}

struct conv_args model_conv_args(const struct model_run *r, size_t node)
{
    const struct net_node *n = model_node(r->m, node);
    return (struct conv_args){.members = r->n,
                              .batch = r->pass->rows,
                              .height = n->in.height,
                              .width = n->in.width,
                              .channels = n->in.channels,
                              .out = n->out.channels,
                              .kernel_h = n->kernel_h,
                              .kernel_w = n->kernel_w,
                              .stride = n->stride,
                              .pad = n->pad,
                              .groups = n->groups,
                              .x = model_value_at(r, n->from),
                              .w = model_param_at(r, n->weight),
                              .b = model_param_at(r, n->bias),
                              .work = model_work_at(r)};
}

struct pool_args model_pool_args(const struct model_run *r, size_t node)
{
    const struct net_node *n = model_node(r->m, node);
    return (struct pool_args){.members = r->n,
                              .batch = r->pass->rows,
                              .height = n->in.height,
                              .width = n->in.width,
                              .channels = n->in.channels,
                              .kernel_h = n->kernel_h,
                              .kernel_w = n->kernel_w,
                              .stride = n->stride,
                              .pad = n->pad,
                              .kind = n->op == NET_POOL_MAX ? POOL_MAX : POOL_AVG,
                              .index = model_kept_at(r, node, 0)};
}

struct batch_norm_args model_batch_norm_args(const struct model_run *r, size_t node)
{
    const struct net_node *n = model_node(r->m, node);
    return (struct batch_norm_args){.members = r->n,
                                    .rows = r->pass->rows * model_places(n),
                                    .channels = n->out.channels,
                                    .x = model_value_at(r, n->from),
                                    .gamma = model_param_at(r, n->weight),
                                    .beta = model_param_at(r, n->bias),
                                    .mean = model_kept_at(r, node, 0),
                                    .inv_std = model_kept_at(r, node, n->out.channels),
                                    .eps = MODEL_NORM_EPS,
                                    .act = model_act(n->act),
                                    .y = model_value_at(r, node)};
}

struct layer_norm_args model_layer_norm_args(const struct model_run *r, size_t node)
{
    const struct net_node *n = model_node(r->m, node);
    size_t most = r->m->max_rows * model_places(n);
    return (struct layer_norm_args){.members = r->n,
                                    .rows = r->pass->rows * model_places(n),
                                    .width = n->out.channels,
                                    .x = model_value_at(r, n->from),
                                    .gamma = model_param_at(r, n->weight),
                                    .beta = model_param_at(r, n->bias),
                                    .mean = model_kept_at(r, node, 0),
                                    .inv_std = model_kept_at(r, node, most),
                                    .eps = MODEL_NORM_EPS};
}

/* Tokens with positions, or the codes of a table's columns without. */
struct embedding_args model_embedding_args(const struct model_run *r, size_t node)
{
    const struct net_node *n = model_node(r->m, node);
    const struct net_tensor *table = &r->m->plan->tensors[n->weight];
    bool columns = n->op == NET_CATEGORIES;
    return (struct embedding_args){.members = r->n,
                                   .batch = r->pass->rows,
                                   .seq = columns ? r->m->plan->n_categories : n->out.width,
                                   .vocab = table->dims[0],
                                   .width = table->dims[1],
                                   .tokens = tensor_from(r->pass->codes, r->first),
                                   .table = model_param_at(r, n->weight),
                                   .positions = model_param_at(r, n->bias)};
}

struct attention_args model_attention_args(const struct model_run *r, size_t node)
{
    const struct net_node *n = model_node(r->m, node);
    return (struct attention_args){.members = r->n,
                                   .batch = r->pass->rows,
                                   .heads = n->heads,
                                   .seq = n->out.width,
                                   .head_dim = n->out.channels / n->heads,
                                   .qkv = model_value_at(r, n->from),
                                   .out = model_value_at(r, node),
                                   .lse = model_kept_at(r, node, 0),
                                   .work = model_work_at(r)};
}

struct dropout_args model_dropout_args(const struct model_run *r, size_t node, struct tensor from,
                                       struct tensor to)
{
    const struct net_node *n = model_node(r->m, node);
    return (struct dropout_args){.members = r->n,
                                 .rows = r->pass->rows * model_places(n),
                                 .width = n->out.channels,
                                 .x = from,
                                 .y = to,
                                 .rate = tensor_from(r->pass->rate, r->first),
                                 .seed = tensor_from(r->pass->seed, r->first),
                                 .step = tensor_from(r->pass->step, r->first),
                                 .layer = n->layer};
}
