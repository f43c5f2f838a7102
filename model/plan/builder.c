/* Building a plan: functions that the builders of all model kinds share.
 *
 * Nodes and tensors are added in order, and each function returns the number of the node that it
 * added, which the next one reads. The builder keeps the first failure (`st`), and later calls do
 * nothing: so a builder of a model is a list of calls without a check after each.
 *
 * The order of the tensors fixes their offsets, and with them the layout of stored models. The n-th
 * tensor with drawn values uses the n-th stream of random numbers. */
#include "model/plan/builder_priv.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/json.h"

void net_refuse(struct net_builder *b, const char *field, const char *fmt, ...)
{
    char model[AS_ERR_POINTER_MAX], at[AS_ERR_POINTER_MAX], why[160];
    va_list args;
    if (b->st < 0)
        return;
    va_start(args, fmt);
    (void)vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    json_pointer_child(b->pointer, "model", model);
    json_pointer_child(model, field, at);
    b->st = as_fail_at(b->err, AS_E_INVAL, at, "%s: %s", at, why);
}

struct net_shape net_out(const struct net_builder *b, size_t node)
{
    return b->st < 0 ? (struct net_shape){0} : b->p->nodes[node].out;
}

net_act net_act_of(train_activation a)
{
    static const net_act acts[] = {
        [TRAIN_RELU] = NET_ACT_RELU, [TRAIN_TANH] = NET_ACT_TANH, [TRAIN_GELU] = NET_ACT_GELU};
    return acts[a];
}

double net_deviation(net_act act, size_t fan_in)
{
    bool rectified = act == NET_ACT_RELU || act == NET_ACT_GELU;
    return sqrt((rectified ? 2.0 : 1.0) / (double)fan_in);
}

size_t net_add_node(struct net_builder *b, const struct net_node *node)
{
    struct net_plan *p = b->p;
    if (b->st == AS_OK)
        b->st = as_reserve_one(&p->nodes, p->n_nodes, &b->node_cap, sizeof *p->nodes, b->err);
    if (b->st < 0)
        return 0;
    p->nodes[p->n_nodes] = *node;
    return p->n_nodes++;
}

static void complete_tensor(struct net_tensor *t, const char *name, const char *part, size_t offset)
{
    (void)snprintf(t->name, sizeof t->name, "%s.%s", name, part);
    t->offset = offset;
    t->count = 1;
    for (size_t i = 0; i < t->n_dims; i++)
        t->count *= t->dims[i];
}

size_t net_add_tensor(struct net_builder *b, const struct net_tensor *t, const char *name,
                      const char *part)
{
    struct net_plan *p = b->p;
    if (b->st == AS_OK)
        b->st =
            as_reserve_one(&p->tensors, p->n_tensors, &b->tensor_cap, sizeof *p->tensors, b->err);
    if (b->st < 0)
        return 0;
    struct net_tensor *to = &p->tensors[p->n_tensors];
    *to = *t;
    complete_tensor(to, name, part, p->n_params);
    to->stream = t->init == NET_INIT_NORMAL ? b->n_normal++ : 0;
    p->n_params += to->count;
    return p->n_tensors++;
}

static void add_state(struct net_builder *b, const char *name, const char *part, size_t n,
                      net_init init)
{
    struct net_plan *p = b->p;
    if (b->st == AS_OK)
        b->st = as_reserve_one(&p->states, p->n_states, &b->state_cap, sizeof *p->states, b->err);
    if (b->st < 0)
        return;
    struct net_tensor *to = &p->states[p->n_states++];
    *to = (struct net_tensor){.n_dims = 1, .dims = {n}, .init = init};
    complete_tensor(to, name, part, p->n_state);
    p->n_state += n;
}

/* Add a vector of parameters: biases, gains. */
static size_t add_vector(struct net_builder *b, const char *name, const char *part, size_t n,
                         net_init init)
{
    const struct net_tensor t = {.n_dims = 1, .dims = {n}, .fan_in = n, .init = init};
    return net_add_tensor(b, &t, name, part);
}

size_t net_add_input(struct net_builder *b, struct net_shape shape)
{
    const struct net_node n = {.op = NET_INPUT, .from = NET_NONE, .with = NET_NONE, .out = shape};
    return net_add_node(b, &n);
}

static size_t add_product(struct net_builder *b, const struct net_node *node, bool bias,
                          double deviation, const char *name)
{
    struct net_node n = *node;
    size_t in = n.in.channels, out = n.out.channels;
    const struct net_tensor w = {.n_dims = 2,
                                 .dims = {in, out},
                                 .fan_in = in,
                                 .init = NET_INIT_NORMAL,
                                 .deviation = deviation};
    n.op = NET_LINEAR;
    n.with = NET_NONE;
    n.keeps_z = n.act == NET_ACT_GELU;
    n.weight = net_add_tensor(b, &w, name, "weight");
    n.bias = bias ? add_vector(b, name, "bias", out, NET_INIT_ZERO) : NET_NONE;
    return net_add_node(b, &n);
}

size_t net_add_linear(struct net_builder *b, size_t from, size_t out, net_act act, bool bias,
                      double deviation, const char *name)
{
    struct net_shape in = net_out(b, from);
    const struct net_node n = {
        .from = from, .in = in, .out = {in.height, in.width, out}, .act = act};
    return add_product(b, &n, bias, deviation, name);
}

size_t net_add_dense(struct net_builder *b, size_t from, size_t out, net_act act, bool bias,
                     const char *name)
{
    size_t in = net_shape_elements(net_out(b, from));
    const struct net_node n = {.from = from, .in = {1, 1, in}, .out = {1, 1, out}, .act = act};
    return add_product(b, &n, bias, net_deviation(act, in), name);
}

size_t net_add_batch_norm(struct net_builder *b, size_t from, net_act act, const char *name)
{
    struct net_shape s = net_out(b, from);
    struct net_node n = {
        .op = NET_BATCH_NORM, .from = from, .with = NET_NONE, .in = s, .out = s, .act = act};
    n.kept_member = 2 * s.channels;
    n.weight = add_vector(b, name, "weight", s.channels, NET_INIT_ONE);
    n.bias = add_vector(b, name, "bias", s.channels, NET_INIT_ZERO);
    n.state = b->p->n_states;
    add_state(b, name, "running_mean", s.channels, NET_INIT_ZERO);
    add_state(b, name, "running_var", s.channels, NET_INIT_ONE);
    return net_add_node(b, &n);
}

size_t net_add_layer_norm(struct net_builder *b, size_t from, const char *name)
{
    struct net_shape s = net_out(b, from);
    struct net_node n = {.op = NET_LAYER_NORM, .from = from, .with = NET_NONE, .in = s, .out = s};
    n.kept_row = 2 * s.height * s.width;
    n.weight = add_vector(b, name, "weight", s.channels, NET_INIT_ONE);
    n.bias = add_vector(b, name, "bias", s.channels, NET_INIT_ZERO);
    return net_add_node(b, &n);
}

size_t net_add_sum(struct net_builder *b, size_t from, size_t with, net_act act)
{
    struct net_shape s = net_out(b, from);
    const struct net_node n = {
        .op = NET_ADD, .from = from, .with = with, .in = s, .out = s, .act = act};
    return net_add_node(b, &n);
}

size_t net_add_dropout(struct net_builder *b, size_t from)
{
    struct net_shape s = net_out(b, from);
    if (!b->spec->model.dropping)
        return from;
    const struct net_node n = {.op = NET_DROPOUT,
                               .from = from,
                               .with = NET_NONE,
                               .in = s,
                               .out = s,
                               .layer = b->n_dropout++};
    return net_add_node(b, &n);
}
