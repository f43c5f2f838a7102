/* The forward and the backward pass.
 *
 * Forward calls one kernel for each node, in the order of the plan. Backward goes through the nodes
 * in reverse. For each node it first goes through the activation, then calls the kernel of the
 * operation, then adds the result to a gradient that the source already has, if several nodes read
 * that source. The plan states where each gradient is (net_grad), so nothing is decided or
 * allocated here. A node whose gradient is not needed is skipped.
 *
 * Two const tables map the operation of a node to its function. */
#include "model/network/network_priv.h"

/* ---- forward ---- */

static as_status forward_linear(const struct network_run *r, size_t i)
{
    struct linear_args a = network_linear_args(r, i);
    return backend_linear_forward(r->lane, &a, network_act(network_node(r->net, i)->act),
                                  network_value_at(r, i), network_z_at(r, i), r->err);
}

static as_status forward_conv(const struct network_run *r, size_t i)
{
    struct conv_args a = network_conv_args(r, i);
    return backend_conv_forward(r->lane, &a, network_act(network_node(r->net, i)->act),
                                network_value_at(r, i), network_z_at(r, i), r->err);
}

static as_status forward_pool(const struct network_run *r, size_t i)
{
    struct pool_args a = network_pool_args(r, i);
    return backend_pool_forward(r->lane, &a, network_value_at(r, network_node(r->net, i)->from),
                                network_value_at(r, i), r->err);
}

static as_status forward_batch_norm(const struct network_run *r, size_t i)
{
    struct batch_norm_args a = network_batch_norm_args(r, i);
    size_t state = network_node(r->net, i)->state;
    struct tensor mean = network_state_at(r, state), var = network_state_at(r, state + 1);
    if (!r->pass->train)
        return backend_batch_norm_eval(r->lane, &a, mean, var, r->err);
    return backend_batch_norm_train(r->lane, &a, NETWORK_NORM_MOMENTUM, mean, var, r->err);
}

static as_status forward_add(const struct network_run *r, size_t i)
{
    const struct net_node *n = network_node(r->net, i);
    struct add_args a = {.members = r->n,
                         .n = r->pass->rows * net_shape_elements(n->out),
                         .a = network_value_at(r, n->from),
                         .b = network_value_at(r, n->with),
                         .y = network_value_at(r, i),
                         .act = network_act(n->act)};
    return backend_add(r->lane, &a, r->err);
}

static as_status forward_dropout(const struct network_run *r, size_t i)
{
    if (!network_drops(r))
        return AS_OK; /* its value is that of its source (network_value_at) */
    struct dropout_args a = network_dropout_args(
        r, i, network_value_at(r, network_node(r->net, i)->from), network_value_at(r, i));
    return backend_dropout(r->lane, &a, r->err);
}

static as_status forward_layer_norm(const struct network_run *r, size_t i)
{
    struct layer_norm_args a = network_layer_norm_args(r, i);
    return backend_layer_norm_forward(r->lane, &a, network_value_at(r, i), r->err);
}

static as_status forward_embedding(const struct network_run *r, size_t i)
{
    struct embedding_args a = network_embedding_args(r, i);
    return backend_embedding_forward(r->lane, &a, network_value_at(r, i), r->err);
}

/* Copy `width` columns between matrices of the batch's rows. */
static as_status copy_columns(const struct network_run *r, size_t width, struct tensor src,
                              size_t src_width, size_t src_at, struct tensor dst, size_t dst_width,
                              size_t dst_at)
{
    struct columns_args a = {.members = r->n,
                             .rows = r->pass->rows,
                             .width = width,
                             .src = src,
                             .src_width = src_width,
                             .src_at = src_at,
                             .dst = dst,
                             .dst_width = dst_width,
                             .dst_at = dst_at};
    return backend_columns(r->lane, &a, r->err);
}

static as_status forward_categories(const struct network_run *r, size_t i)
{
    const struct net_node *n = network_node(r->net, i);
    struct embedding_args a = network_embedding_args(r, i);
    struct tensor embedded = network_kept_at(r, i, 0), y = network_value_at(r, i);
    size_t numeric = n->in.channels, width = n->out.channels, rest = width - numeric;
    as_status st = backend_embedding_forward(r->lane, &a, embedded, r->err);
    if (st != AS_OK)
        return st;
    if (numeric > 0)
        st = copy_columns(r, numeric, network_value_at(r, n->from), numeric, 0, y, width, 0);
    if (st != AS_OK)
        return st;
    return copy_columns(r, rest, embedded, rest, 0, y, width, numeric);
}

static as_status forward_attention(const struct network_run *r, size_t i)
{
    struct attention_args a = network_attention_args(r, i);
    return backend_attention_forward(r->lane, &a, r->err);
}

typedef as_status node_pass(const struct network_run *r, size_t i);

as_status network_forward(struct network *net, struct backend *lane, size_t first, size_t n,
                          const struct network_pass *pass, struct as_err *err)
{
    static node_pass *const ops[] = {[NET_CATEGORIES] = forward_categories,
                                     [NET_LINEAR] = forward_linear,
                                     [NET_CONV] = forward_conv,
                                     [NET_POOL_MAX] = forward_pool,
                                     [NET_POOL_AVG] = forward_pool,
                                     [NET_BATCH_NORM] = forward_batch_norm,
                                     [NET_ADD] = forward_add,
                                     [NET_DROPOUT] = forward_dropout,
                                     [NET_EMBEDDING] = forward_embedding,
                                     [NET_LAYER_NORM] = forward_layer_norm,
                                     [NET_ATTENTION] = forward_attention};
    const struct network_run r = {net, lane, first, n, pass, err};
    as_status st = AS_OK;
    for (size_t i = 1; i < net->plan->n_nodes; i++) {
        st = ops[net->plan->nodes[i].op](&r, i);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

/* ---- backward ---- */

/* From the gradient with respect to the activation's output to that with respect to its input. */
static as_status backward_activation(const struct network_run *r, size_t i)
{
    const struct net_node *n = network_node(r->net, i);
    if (n->act == NET_ACT_NONE || n->op == NET_BATCH_NORM)
        return AS_OK;
    struct act_args a = {.members = r->n,
                         .n = r->pass->rows * net_shape_elements(n->out),
                         .act = network_act(n->act),
                         .kept = n->keeps_z ? network_z_at(r, i) : network_value_at(r, i),
                         .dy = network_slot_at(r, n->grad.dy),
                         .dx = network_slot_at(r, n->grad.pre)};
    return backend_act_backward(r->lane, &a, r->err);
}

static as_status backward_linear(const struct network_run *r, size_t i)
{
    const struct net_node *n = network_node(r->net, i);
    struct linear_args a = network_linear_args(r, i);
    struct linear_grads g = {.dy = network_slot_at(r, n->grad.pre),
                             .dx = network_slot_at(r, n->grad.dx),
                             .dw = network_grad_at(r, n->weight),
                             .db = network_grad_at(r, n->bias)};
    bool taken = false;
    as_status st = AS_OK;
    if (r->pass->on_factors)
        st = r->pass->on_factors(r->pass->watch_arg, r->net->plan->tensors[n->weight].offset, &a,
                                 g.dy, &taken, r->err);
    if (taken)
        g.dw = tensor_none();
    return st < 0 ? st : backend_linear_backward(r->lane, &a, &g, r->err);
}

static as_status backward_conv(const struct network_run *r, size_t i)
{
    const struct net_node *n = network_node(r->net, i);
    struct conv_args a = network_conv_args(r, i);
    struct conv_grads g = {.dy = network_slot_at(r, n->grad.pre),
                           .dx = network_slot_at(r, n->grad.dx),
                           .dw = network_grad_at(r, n->weight),
                           .db = network_grad_at(r, n->bias)};
    return backend_conv_backward(r->lane, &a, &g, r->err);
}

static as_status backward_pool(const struct network_run *r, size_t i)
{
    const struct net_node *n = network_node(r->net, i);
    struct pool_args a = network_pool_args(r, i);
    return backend_pool_backward(r->lane, &a, network_slot_at(r, n->grad.pre),
                                 network_slot_at(r, n->grad.dx), r->err);
}

static as_status backward_batch_norm(const struct network_run *r, size_t i)
{
    const struct net_node *n = network_node(r->net, i);
    struct batch_norm_args a = network_batch_norm_args(r, i);
    return backend_batch_norm_backward(
        r->lane, &a, network_slot_at(r, n->grad.pre), network_slot_at(r, n->grad.dx),
        network_grad_at(r, n->weight), network_grad_at(r, n->bias), r->err);
}

static as_status backward_layer_norm(const struct network_run *r, size_t i)
{
    const struct net_node *n = network_node(r->net, i);
    struct layer_norm_args a = network_layer_norm_args(r, i);
    return backend_layer_norm_backward(
        r->lane, &a, network_slot_at(r, n->grad.pre), network_slot_at(r, n->grad.dx),
        network_grad_at(r, n->weight), network_grad_at(r, n->bias), r->err);
}

static as_status backward_dropout(const struct network_run *r, size_t i)
{
    const struct net_node *n = network_node(r->net, i);
    size_t width = net_shape_elements(n->out);
    struct tensor dy = network_slot_at(r, n->grad.pre), dx = network_slot_at(r, n->grad.dx);
    if (!network_drops(r) && n->grad.pre == n->grad.dx)
        return AS_OK;
    if (!network_drops(r)) /* other nodes still need the slot of dy, so copy it */
        return copy_columns(r, width, dy, width, 0, dx, width, 0);
    struct dropout_args a = network_dropout_args(r, i, dy, dx);
    return backend_dropout(r->lane, &a, r->err);
}

static as_status backward_embedding(const struct network_run *r, size_t i)
{
    const struct net_node *n = network_node(r->net, i);
    struct embedding_args a = network_embedding_args(r, i);
    return backend_embedding_backward(r->lane, &a, network_slot_at(r, n->grad.pre),
                                      network_grad_at(r, n->weight), network_grad_at(r, n->bias),
                                      r->err);
}

static as_status backward_categories(const struct network_run *r, size_t i)
{
    const struct net_node *n = network_node(r->net, i);
    struct embedding_args a = network_embedding_args(r, i);
    struct tensor dy = network_kept_at(r, i, 0); /* overwrites the embedding, now unused */
    size_t numeric = n->in.channels, width = n->out.channels;
    as_status st = copy_columns(r, width - numeric, network_slot_at(r, n->grad.pre), width, numeric,
                                dy, width - numeric, 0);
    if (st < 0)
        return st;
    return backend_embedding_backward(r->lane, &a, dy, network_grad_at(r, n->weight), tensor_none(),
                                      r->err);
}

static as_status backward_attention(const struct network_run *r, size_t i)
{
    const struct net_node *n = network_node(r->net, i);
    struct attention_args a = network_attention_args(r, i);
    return backend_attention_backward(r->lane, &a, network_slot_at(r, n->grad.pre),
                                      network_slot_at(r, n->grad.dx), r->err);
}

static as_status backward_add(const struct network_run *r, size_t i)
{
    (void)r; /* the gradient of a sum is that of each part: in the plan they share one slot */
    (void)i;
    return AS_OK;
}

/* If the source already has a gradient, add the one of this node to it. */
static as_status add_gradient(const struct network_run *r, size_t source, int old, int dx, int to)
{
    if (old == NET_NO_SLOT)
        return AS_OK;
    struct add_args a = {.members = r->n,
                         .n = r->pass->rows * net_shape_elements(network_node(r->net, source)->out),
                         .a = network_slot_at(r, old),
                         .b = network_slot_at(r, dx),
                         .y = network_slot_at(r, to),
                         .act = ACT_NONE};
    return backend_add(r->lane, &a, r->err);
}

static bool has_params(net_op op)
{
    return op == NET_CATEGORIES || op == NET_LINEAR || op == NET_CONV || op == NET_BATCH_NORM ||
           op == NET_EMBEDDING || op == NET_LAYER_NORM;
}

/* A tensor belongs to one node, so its gradient is complete when that node's operations are. */
static as_status report_grads(const struct network_run *r, size_t node)
{
    const struct net_node *n = network_node(r->net, node);
    const size_t tensors[] = {n->weight, n->bias};
    as_status st = AS_OK;
    if (!r->pass->on_grads || !has_params(n->op))
        return AS_OK;
    for (size_t k = 0; st == AS_OK && k < AS_ARRAY_LEN(tensors); k++) {
        if (tensors[k] == NET_NONE)
            continue;
        const struct net_tensor *t = &r->net->plan->tensors[tensors[k]];
        st = r->pass->on_grads(r->pass->watch_arg, t->offset, t->count, r->err);
    }
    return st;
}

as_status network_backward(struct network *net, struct backend *lane, size_t first, size_t n,
                           const struct network_pass *pass, struct as_err *err)
{
    static node_pass *const ops[] = {[NET_CATEGORIES] = backward_categories,
                                     [NET_LINEAR] = backward_linear,
                                     [NET_CONV] = backward_conv,
                                     [NET_POOL_MAX] = backward_pool,
                                     [NET_POOL_AVG] = backward_pool,
                                     [NET_BATCH_NORM] = backward_batch_norm,
                                     [NET_ADD] = backward_add,
                                     [NET_DROPOUT] = backward_dropout,
                                     [NET_EMBEDDING] = backward_embedding,
                                     [NET_LAYER_NORM] = backward_layer_norm,
                                     [NET_ATTENTION] = backward_attention};
    const struct network_run r = {net, lane, first, n, pass, err};
    as_status st = AS_OK;
    for (size_t i = net->plan->n_nodes; i-- > 1;) {
        const struct net_node *node = &net->plan->nodes[i];
        if (node->grad.dy == NET_NO_SLOT)
            continue;
        st = backward_activation(&r, i);
        if (st != AS_OK)
            return st;
        st = ops[node->op](&r, i);
        if (st != AS_OK)
            return st;
        st = add_gradient(&r, node->from, node->grad.old, node->grad.dx, node->grad.sum);
        if (st != AS_OK)
            return st;
        if (node->with != NET_NONE)
            st = add_gradient(&r, node->with, node->grad.old2, node->grad.dx, node->grad.sum2);
        if (st == AS_OK)
            st = report_grads(&r, i);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}
