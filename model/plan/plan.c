/* Whole plans, and the nodes of the mlp and the linear model.
 *
 * net_plan_create() sets the sizes that do not depend on the model (outputs, rows), lets the
 * builder of the model kind add its nodes, finishes the plan (gradient slots, FLOPs) and checks its
 * size. A size error must name a field, so it is reported at `layers`, `preset` or `kind`.
 *
 * A linear model is an mlp without hidden layers. */
#include "model/plan/plan.h"

#include <stdio.h>

#include "base/json.h"
#include "model/plan/builder_priv.h"
#include "model/plan/memory.h"
#include "model/plan/plan_cnn.h"
#include "model/plan/plan_grad.h"
#include "model/plan/plan_transformer.h"

#define MAX_ACTIVATIONS ((double)((uint64_t)1 << 40)) /* bytes of one member */
#define CATEGORY_DEVIATION 0.1 /* of the start values of embedded categories (decision 1014) */

/* ---- mlp and linear ---- */

/* Add the input, with embedded categories if the document asks for them. */
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
                                     .deviation = CATEGORY_DEVIATION};
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
                   train_model_name(m));
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

static size_t count_outputs(const struct train_spec *spec, const struct net_data *d)
{
    bool one = d->task == DATASET_CLASSIFICATION && train_spec_loss(spec, d->task) == TRAIN_BCE;
    return one ? 1 : d->outputs;
}

/* Is it known only from the rows how many of them are held out? */
static bool is_counted_later(const struct train_spec *spec)
{
    return spec->holdout == TRAIN_HOLD_COLUMN || spec->holdout == TRAIN_HOLD_GROUPS ||
           spec->holdout == TRAIN_HOLD_FOLDS;
}

/* The rows that an epoch trains on, at least 1; of text, its windows. If only the cells of a column
 * show how many there are, the most that are possible: the server plans without the cells, and its
 * plan must be the trainer's. */
static size_t training_rows(const struct train_spec *spec, const struct net_data *d)
{
    if (is_counted_later(spec) && !spec->refit)
        return d->rows > 1 ? d->rows - 1 : 1;
    if (spec->refit)
        return d->rows > 0 ? d->rows : 1;
    size_t held = d->rows < 2 ? 0 : train_spec_validation_rows(spec, d->rows);
    size_t train = d->rows - held;
    if (d->kind == NET_TOKENS)
        return dataset_epoch_windows(train, (size_t)spec->model.context);
    return train > 0 ? train : 1;
}

/* The micro-batch, at most the training rows: buffers of a pass are never larger than the data. */
static size_t rows_of_pass(const struct train_spec *spec, const struct net_data *d)
{
    size_t rows = (size_t)spec->micro_batch, train = training_rows(spec, d);
    return d->rows == 0 || rows < train ? rows : train;
}

static size_t rows_of_buffers(const struct train_spec *spec, const struct net_data *d, size_t rows)
{
    bool cheap = spec->model.kind == TRAIN_MLP || spec->model.kind == TRAIN_LINEAR;
    size_t held = d->rows < 2 ? NET_HELD_ROWS : train_spec_validation_rows(spec, d->rows);
    held = held < NET_HELD_ROWS && !is_counted_later(spec) ? held : NET_HELD_ROWS;
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

static void add_layers(struct net_builder *b)
{
    const struct train_model_spec *m = &b->spec->model;
    switch (m->kind) {
    case TRAIN_MLP:
    case TRAIN_LINEAR:
        build_mlp(b);
        break;
    case TRAIN_CNN:
        net_build_cnn(b);
        break;
    case TRAIN_TRANSFORMER:
        net_build_transformer(b);
        break;
    case TRAIN_BOOSTED_TREES:
    case TRAIN_RANDOM_FOREST:
    case TRAIN_EXTRA_TREES:
    case TRAIN_KNN:
    case TRAIN_NAIVE_BAYES:
    case TRAIN_KMEANS:
        net_refuse(b, "kind", "found %s, expected a network", train_model_name(m));
        break;
    }
}

as_status net_plan_create(const struct train_spec *spec, const struct net_data *data,
                          const char *pointer, struct net_plan **ret, struct as_err *err)
{
    AS_AUTO(net_plan_freep) struct net_plan *p = as_calloc(1, sizeof *p);
    if (!p)
        return as_fail_nomem(err);
    struct net_builder b = {.p = p, .spec = spec, .data = data, .pointer = pointer, .err = err};
    p->input = data->kind;
    p->outputs = count_outputs(spec, data);
    p->tokens = 1;
    p->max_rows = rows_of_pass(spec, data);
    p->buffer_rows = rows_of_buffers(spec, data, p->max_rows);
    add_layers(&b);
    if (b.st != AS_OK)
        return b.st;
    as_status st = net_plan_finish(p, err);
    if (st != AS_OK)
        return st;
    st = check_size(&b);
    if (st != AS_OK)
        return st;
    *ret = as_steal(p);
    return AS_OK;
}
