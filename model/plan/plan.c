/* Building plans: nodes and tensors in order, the mlp and the linear model; memory. */
#include "model/plan/plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "model/plan/plan_priv.h"

#define MAX_ACTIVATIONS ((double)((uint64_t)1 << 40)) /* bytes of one member */

void net_plan_free(struct net_plan *p)
{
    if (!p)
        return;
    free(p->nodes);
    free(p->tensors);
    free(p->states);
    free(p->slots);
    free(p);
}

/* ---- the builder ---- */

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

static void complete(struct net_tensor *t, const char *name, const char *part, size_t offset)
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
    complete(to, name, part, p->n_params);
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
    complete(to, name, part, p->n_state);
    p->n_state += n;
}

/* A vector of parameters beside the weight: biases, gains. */
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

/* ---- mlp and linear ---- */

/* The batch, with embedded categories where they are wanted. */
static size_t add_features(struct net_builder *b)
{
    const struct net_data *d = b->data;
    size_t width = (size_t)b->spec->model.embedding;
    if (d->kind == NET_IMAGES)
        return net_add_input(b, (struct net_shape){d->height, d->width, d->channels});
    if (d->n_categories == 0 || width == 0)
        return net_add_input(b, (struct net_shape){1, 1, d->numeric + d->category_slots});
    const struct net_tensor table = {.n_dims = 2,
                                     .dims = {d->category_slots, width},
                                     .fan_in = 1,
                                     .init = NET_INIT_NORMAL,
                                     .deviation = 1}; /* as the standardised columns beside it */
    struct net_node n = {.op = NET_CATEGORIES,
                         .from = net_add_input(b, (struct net_shape){1, 1, d->numeric}),
                         .with = NET_NONE,
                         .in = {1, 1, d->numeric},
                         .out = {1, 1, d->numeric + d->n_categories * width},
                         .bias = NET_NONE};
    n.kept_row = d->n_categories * width;
    n.weight = net_add_tensor(b, &table, "categories", "weight");
    b->p->n_categories = d->n_categories;
    b->p->embedding = width;
    return net_add_node(b, &n);
}

static size_t add_hidden(struct net_builder *b, size_t at, size_t i, net_act act)
{
    const struct train_model_spec *m = &b->spec->model;
    char name[NET_NAME_MAX], norm[NET_NAME_MAX];
    size_t width = (size_t)m->layers[i];
    (void)snprintf(name, sizeof name, "layers.%zu", i);
    (void)snprintf(norm, sizeof norm, "layers.%zu.norm", i);
    at = net_add_dense(b, at, width, m->batch_norm ? NET_ACT_NONE : act, !m->batch_norm, name);
    if (m->batch_norm)
        at = net_add_batch_norm(b, at, act, norm);
    return net_add_dropout(b, at);
}

static void build_mlp(struct net_builder *b)
{
    const struct train_model_spec *m = &b->spec->model;
    net_act act = net_act_of(m->activation);
    char name[NET_NAME_MAX];
    if (b->data->kind == NET_TOKENS) {
        net_refuse(b, "kind", "found %s, expected transformer: the data set is a text of tokens",
                   m->logistic               ? "logistic"
                   : m->kind == TRAIN_LINEAR ? "linear"
                                             : "mlp");
        return;
    }
    if (m->n_layers > 0 && m->batch_norm && act != NET_ACT_RELU)
        net_refuse(b, "activation", "found %s, expected relu with batch normalisation",
                   act == NET_ACT_TANH ? "tanh" : "gelu");
    size_t at = add_features(b);
    for (size_t i = 0; i < m->n_layers; i++)
        at = add_hidden(b, at, i, act);
    (void)snprintf(name, sizeof name, "layers.%zu", m->n_layers);
    (void)net_add_dense(b, at, b->p->outputs, NET_ACT_NONE, true, name);
    if (m->batch_norm)
        return;
    b->p->n_hidden = m->n_layers;
    for (size_t i = 0; i < m->n_layers; i++)
        b->p->hidden[i] = (size_t)m->layers[i];
}

/* ---- whole plans ---- */

static size_t outputs_of(const struct train_spec *spec, const struct net_data *d)
{
    bool one = d->task == DATASET_CLASSIFICATION && train_spec_loss(spec, d->task) == TRAIN_BCE;
    return one ? 1 : d->outputs;
}

static size_t rows_of(const struct train_spec *spec, const struct net_data *d)
{
    size_t rows = (size_t)spec->micro_batch;
    if (d->kind == NET_TOKENS || d->rows < 2)
        return rows;
    size_t train = d->rows - train_spec_validation_rows(spec, d->rows);
    return rows < train ? rows : train;
}

static size_t buffer_rows_of(const struct train_spec *spec, const struct net_data *d, size_t rows)
{
    bool cheap = spec->model.kind == TRAIN_MLP || spec->model.kind == TRAIN_LINEAR;
    size_t held = d->rows < 2 ? NET_HELD_ROWS : train_spec_validation_rows(spec, d->rows);
    held = held < NET_HELD_ROWS ? held : NET_HELD_ROWS;
    return cheap && held > rows ? held : rows;
}

static as_status check_size(const struct net_builder *b)
{
    static const char *const fields[] = {[TRAIN_MLP] = "layers", [TRAIN_CNN] = "layers"};
    const struct train_model_spec *m = &b->spec->model;
    const struct net_plan *p = b->p;
    char model[AS_ERR_POINTER_MAX], at[AS_ERR_POINTER_MAX];
    const char *field = m->kind == TRAIN_MLP || m->kind == TRAIN_CNN ? fields[m->kind] : "kind";
    json_pointer_child(b->pointer, "model", model);
    json_pointer_child(model, m->kind == TRAIN_CNN && m->preset ? "preset" : field, at);
    if (p->n_params > TRAIN_MAX_PARAMETERS)
        return as_fail_at(b->err, AS_E_TOO_LARGE, at,
                          "%s: the model has %zu parameters, expected at most %zu", at, p->n_params,
                          TRAIN_MAX_PARAMETERS);
    double bytes = net_activation_bytes(p, (double)p->buffer_rows);
    if (bytes > MAX_ACTIVATIONS)
        return as_fail_at(b->err, AS_E_TOO_LARGE, at,
                          "%s: a batch of %zu rows needs %.3g bytes, expected at most %.3g", at,
                          p->max_rows, bytes, MAX_ACTIVATIONS);
    return AS_OK;
}

as_status net_plan_create(const struct train_spec *spec, const struct net_data *data,
                          const char *pointer, struct net_plan **ret, struct as_err *err)
{
    AS_AUTO(net_plan_freep) struct net_plan *p = as_calloc(1, sizeof *p);
    if (!p)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    struct net_builder b = {.p = p, .spec = spec, .data = data, .pointer = pointer, .err = err};
    p->input = data->kind;
    p->outputs = outputs_of(spec, data);
    p->tokens = 1;
    p->max_rows = rows_of(spec, data);
    p->buffer_rows = buffer_rows_of(spec, data, p->max_rows);
    if (spec->model.kind == TRAIN_CNN)
        net_build_cnn(&b);
    else if (spec->model.kind == TRAIN_TRANSFORMER)
        net_build_transformer(&b);
    else
        build_mlp(&b);
    as_status st = b.st;
    if (st == AS_OK)
        st = net_plan_finish(p, err);
    if (st == AS_OK)
        st = check_size(&b);
    if (st == AS_OK)
        *ret = as_steal(p);
    return st;
}
