/* A decoder-only transformer (Radford et al. 2019, GPT-2): learned positions, pre-norm blocks
 * x + attention(ln(x)), x + mlp(ln(x)), a last normalisation, and a head that does not share the
 * weights of the embedding. Weights are normal with deviation 0.02; those that write into the
 * residual stream are divided by sqrt(2 depth). */
#include "model/plan/plan_transformer.h"

#include <math.h>
#include <stdio.h>

#include "model/plan/builder_priv.h"

#define DEVIATION 0.02
#define MLP_FACTOR 4

static size_t add_embedding(struct net_builder *b)
{
    const struct train_model_spec *m = &b->spec->model;
    size_t width = (size_t)m->width, context = (size_t)m->context;
    const struct net_tensor tokens = {.n_dims = 2,
                                      .dims = {b->data->vocab, width},
                                      .fan_in = 1,
                                      .init = NET_INIT_NORMAL,
                                      .deviation = DEVIATION};
    const struct net_tensor places = {.n_dims = 2,
                                      .dims = {context, width},
                                      .fan_in = 1,
                                      .init = NET_INIT_NORMAL,
                                      .deviation = DEVIATION};
    struct net_node n = {.op = NET_EMBEDDING,
                         .from = net_add_input(b, (struct net_shape){1, context, 1}),
                         .with = NET_NONE,
                         .in = {1, context, 1},
                         .out = {1, context, width}};
    n.weight = net_add_tensor(b, &tokens, "embedding", "tokens");
    n.bias = net_add_tensor(b, &places, "embedding", "positions");
    return net_add_dropout(b, net_add_node(b, &n));
}

static size_t add_attention(struct net_builder *b, size_t from, size_t heads)
{
    struct net_shape s = net_out(b, from);
    const struct net_node n = {.op = NET_ATTENTION,
                               .from = from,
                               .with = NET_NONE,
                               .in = s,
                               .out = {1, s.width, s.channels / 3},
                               .heads = heads,
                               .kept_row = heads * s.width};
    return net_add_node(b, &n);
}

static const char *format_name(char buf[NET_NAME_MAX], size_t block, const char *name)
{
    (void)snprintf(buf, NET_NAME_MAX, "blocks.%zu.%s", block, name);
    return buf;
}

static size_t add_block(struct net_builder *b, size_t at, size_t i)
{
    const struct train_model_spec *m = &b->spec->model;
    size_t width = (size_t)m->width, x = at;
    double into_stream = DEVIATION / sqrt(2 * (double)m->depth);
    char name[NET_NAME_MAX];
    at = net_add_layer_norm(b, x, format_name(name, i, "norm1"));
    at = net_add_linear(b, at, 3 * width, NET_ACT_NONE, true, DEVIATION,
                        format_name(name, i, "qkv"));
    at = add_attention(b, at, (size_t)m->heads);
    at = net_add_linear(b, at, width, NET_ACT_NONE, true, into_stream,
                        format_name(name, i, "projection"));
    x = net_add_sum(b, net_add_dropout(b, at), x, NET_ACT_NONE);
    at = net_add_layer_norm(b, x, format_name(name, i, "norm2"));
    at = net_add_linear(b, at, MLP_FACTOR * width, NET_ACT_GELU, true, DEVIATION,
                        format_name(name, i, "mlp.0"));
    at = net_add_linear(b, at, width, NET_ACT_NONE, true, into_stream,
                        format_name(name, i, "mlp.1"));
    return net_add_sum(b, net_add_dropout(b, at), x, NET_ACT_NONE);
}

void net_build_transformer(struct net_builder *b)
{
    const struct train_model_spec *m = &b->spec->model;
    if (b->data->kind != NET_TOKENS) {
        net_refuse(b, "kind", "found transformer, which takes tokens: the data set is %s",
                   b->data->kind == NET_IMAGES ? "images" : "a table");
        return;
    }
    if (m->width % m->heads != 0) {
        net_refuse(b, "heads", "found %d, expected a divisor of the width %d", (int)m->heads,
                   (int)m->width);
        return;
    }
    b->p->tokens = (size_t)m->context;
    size_t at = add_embedding(b);
    for (size_t i = 0; i < (size_t)m->depth; i++)
        at = add_block(b, at, i);
    at = net_add_layer_norm(b, at, "norm");
    (void)net_add_linear(b, at, b->data->vocab, NET_ACT_NONE, false, DEVIATION, "head");
}
