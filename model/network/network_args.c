/* The places of the tensors of a pass, and the arguments that the forward and backward call of an
 * operation share.
 *
 * Every tensor begins at the first slot of the range, with the elements of one slot as its stride.
 * Only this file knows how buffers are laid out; the passes ask it for tensors by node.
 *
 * A dropout node may have no value of its own: in place, or when nothing is dropped, its value is
 * that of its source. network_value_at() follows the chain, so no other code has this case. */
#include "model/network/network_priv.h"

act_kind network_act(net_act act)
{
    static const act_kind acts[] = {[NET_ACT_NONE] = ACT_NONE,
                                    [NET_ACT_RELU] = ACT_RELU,
                                    [NET_ACT_TANH] = ACT_TANH,
                                    [NET_ACT_GELU] = ACT_GELU};
    return acts[act];
}

/* The tensor that begins at element `at` of each slot of `b`, which has `per_member` elements for
 * each slot. */
static struct tensor tensor_in_range(const struct network_run *r, struct buf *b, size_t per_member,
                                     size_t at)
{
    return b ? tensor_at(b, r->first * per_member + at, per_member) : tensor_none();
}

static size_t value_len(const struct network_run *r, size_t node)
{
    return net_shape_elements(network_node(r->net, node)->out) * r->net->max_rows;
}

struct tensor network_value_at(const struct network_run *r, size_t node)
{
    const struct net_node *n = network_node(r->net, node);
    if (n->op == NET_INPUT)
        return tensor_from(r->pass->x, r->first);
    if (n->op == NET_DROPOUT && (n->in_place || !network_drops(r)))
        return network_value_at(r, n->from);
    return tensor_in_range(r, r->net->values[node].y, value_len(r, node), 0);
}

struct tensor network_z_at(const struct network_run *r, size_t node)
{
    return tensor_in_range(r, r->net->values[node].z, value_len(r, node), 0);
}

struct tensor network_kept_at(const struct network_run *r, size_t node, size_t at)
{
    const struct net_node *n = network_node(r->net, node);
    return tensor_in_range(r, r->net->values[node].kept,
                           n->kept_row * r->net->max_rows + n->kept_member, at);
}

struct tensor network_param_at(const struct network_run *r, size_t tensor)
{
    if (tensor == NET_NONE)
        return tensor_none();
    struct buf *b = r->pass->params ? r->pass->params : r->net->params;
    return tensor_in_range(r, b, r->net->plan->n_params, r->net->plan->tensors[tensor].offset);
}

struct tensor network_grad_at(const struct network_run *r, size_t tensor)
{
    if (tensor == NET_NONE)
        return tensor_none();
    return tensor_in_range(r, r->net->grads, r->net->plan->n_params,
                           r->net->plan->tensors[tensor].offset);
}

struct tensor network_state_at(const struct network_run *r, size_t state)
{
    return tensor_in_range(r, r->net->state, r->net->plan->n_state,
                           r->net->plan->states[state].offset);
}

struct tensor network_slot_at(const struct network_run *r, int slot)
{
    if (slot == NET_OUTPUT_SLOT)
        return network_outputs(r->net, r->first);
    if (slot < 0)
        return tensor_none();
    return tensor_in_range(r, r->net->gradients[slot], r->net->plan->slots[slot] * r->net->max_rows,
                           0);
}

struct tensor network_work_at(const struct network_run *r)
{
    return tensor_in_range(r, r->net->work, r->net->work_len, 0);
}

struct linear_args network_linear_args(const struct network_run *r, size_t node)
{
    const struct net_node *n = network_node(r->net, node);
    return (struct linear_args){.members = r->n,
                                .batch = r->pass->rows * network_places(n),
                                .in = n->in.channels,
                                .out = n->out.channels,
                                .x = network_value_at(r, n->from),
                                .w = network_param_at(r, n->weight),
                                .b = network_param_at(r, n->bias)};
}

struct conv_args network_conv_sizes(const struct net_node *n, size_t members, size_t rows)
{
    return (struct conv_args){.members = members,
                              .batch = rows,
                              .height = n->in.height,
                              .width = n->in.width,
                              .channels = n->in.channels,
                              .out = n->out.channels,
                              .kernel_h = n->kernel_h,
                              .kernel_w = n->kernel_w,
                              .stride = n->stride,
                              .pad = n->pad,
                              .groups = n->groups};
}

struct conv_args network_conv_args(const struct network_run *r, size_t node)
{
    const struct net_node *n = network_node(r->net, node);
    struct conv_args a = network_conv_sizes(n, r->n, r->pass->rows);
    a.x = network_value_at(r, n->from);
    a.w = network_param_at(r, n->weight);
    a.b = network_param_at(r, n->bias);
    a.work = network_work_at(r);
    return a;
}

struct pool_args network_pool_args(const struct network_run *r, size_t node)
{
    const struct net_node *n = network_node(r->net, node);
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
                              .index = network_kept_at(r, node, 0)};
}

struct batch_norm_args network_batch_norm_args(const struct network_run *r, size_t node)
{
    const struct net_node *n = network_node(r->net, node);
    return (struct batch_norm_args){.members = r->n,
                                    .rows = r->pass->rows * network_places(n),
                                    .channels = n->out.channels,
                                    .x = network_value_at(r, n->from),
                                    .gamma = network_param_at(r, n->weight),
                                    .beta = network_param_at(r, n->bias),
                                    .mean = network_kept_at(r, node, 0),
                                    .inv_std = network_kept_at(r, node, n->out.channels),
                                    .eps = NETWORK_NORM_EPS,
                                    .act = network_act(n->act),
                                    .y = network_value_at(r, node)};
}

struct layer_norm_args network_layer_norm_args(const struct network_run *r, size_t node)
{
    const struct net_node *n = network_node(r->net, node);
    size_t most = r->net->max_rows * network_places(n);
    return (struct layer_norm_args){.members = r->n,
                                    .rows = r->pass->rows * network_places(n),
                                    .width = n->out.channels,
                                    .x = network_value_at(r, n->from),
                                    .gamma = network_param_at(r, n->weight),
                                    .beta = network_param_at(r, n->bias),
                                    .mean = network_kept_at(r, node, 0),
                                    .inv_std = network_kept_at(r, node, most),
                                    .eps = NETWORK_NORM_EPS};
}

/* For tokens, with positions; or for the codes of a table's columns, without. */
struct embedding_args network_embedding_args(const struct network_run *r, size_t node)
{
    const struct net_node *n = network_node(r->net, node);
    const struct net_tensor *table = &r->net->plan->tensors[n->weight];
    bool columns = n->op == NET_CATEGORIES;
    return (struct embedding_args){.members = r->n,
                                   .batch = r->pass->rows,
                                   .seq = columns ? r->net->plan->n_categories : n->out.width,
                                   .vocab = table->dims[0],
                                   .width = table->dims[1],
                                   .tokens = tensor_from(r->pass->codes, r->first),
                                   .table = network_param_at(r, n->weight),
                                   .positions = network_param_at(r, n->bias)};
}

struct attention_args network_attention_sizes(const struct net_node *n, size_t members, size_t rows)
{
    return (struct attention_args){.members = members,
                                   .batch = rows,
                                   .heads = n->heads,
                                   .seq = n->out.width,
                                   .head_dim = n->out.channels / n->heads};
}

struct attention_args network_attention_args(const struct network_run *r, size_t node)
{
    const struct net_node *n = network_node(r->net, node);
    struct attention_args a = network_attention_sizes(n, r->n, r->pass->rows);
    a.qkv = network_value_at(r, n->from);
    a.out = network_value_at(r, node);
    a.lse = network_kept_at(r, node, 0);
    a.work = network_work_at(r);
    return a;
}

struct dropout_args network_dropout_args(const struct network_run *r, size_t node,
                                         struct tensor from, struct tensor to)
{
    const struct net_node *n = network_node(r->net, node);
    return (struct dropout_args){.members = r->n,
                                 .rows = r->pass->rows * network_places(n),
                                 .width = n->out.channels,
                                 .x = from,
                                 .y = to,
                                 .rate = tensor_from(r->pass->rate, r->first),
                                 .seed = tensor_from(r->pass->seed, r->first),
                                 .step = tensor_from(r->pass->step, r->first),
                                 .layer = n->layer};
}
