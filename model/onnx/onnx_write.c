/* A graph is made in the order in which a row goes through it: inputs, preprocessing, the network
 * of each member, their predictions, the combination of them, the outputs. Members whose
 * preprocessing is equal share its nodes, as do most members of an ensemble over one sweep.
 *
 * Kinds of members are a table, by the kind of the train document's model. */
#include "model/onnx/onnx_write.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "model/onnx/bayes_nodes.h"
#include "model/onnx/combination.h"
#include "model/onnx/encode.h"
#include "model/onnx/graph.h"
#include "model/onnx/inputs.h"
#include "model/onnx/kmeans_nodes.h"
#include "model/onnx/layers.h"
#include "model/onnx/neighbour_nodes.h"
#include "model/onnx/predictions.h"
#include "model/onnx/stacked.h"
#include "model/onnx/tree_nodes.h"
#include "model/plan/plan.h"

struct exporter {
    struct onnx_graph *g;
    const struct model_file *file;
    const struct dataset_info *info;
    struct onnx_inputs inputs;
    struct onnx_inputs *stacked; /* [stacks] what members of further layers see */
    size_t n;
    struct onnx_encoded *encoded; /* [n] */
    const char **predictions;     /* [n] */
};

/* ---- members ---- */

/* Which stack a member sees, or MODEL_NO_STACK; and what it sees. */
static size_t stack_of(const struct exporter *e, size_t member)
{
    return model_file_combine(e->file)->stack[model_file_member(e->file, member)->input];
}

static const struct onnx_inputs *inputs_of(const struct exporter *e, size_t member)
{
    size_t s = stack_of(e, member);
    return s == MODEL_NO_STACK ? &e->inputs : &e->stacked[s];
}

/* The plan of a member's network, which must read what its preprocessing gives: a file may be
 * composed of parts that do not belong together. */
static as_status member_plan(const struct exporter *e, size_t i, struct net_plan **ret,
                             struct as_err *err)
{
    char pointer[AS_ERR_POINTER_MAX];
    const struct model_member *m = model_file_member(e->file, i);
    const struct net_data data = net_data_of(m->info, m->spec);
    AS_AUTO(net_plan_freep) struct net_plan *plan = NULL;
    (void)snprintf(pointer, sizeof pointer, "/members/%zu/train", i);
    as_status st = net_plan_create(m->spec, &data, pointer, &plan, err);
    if (st != AS_OK)
        return st;
    size_t has = preprocess_inputs(m->fit, m->info), reads = net_shape_elements(plan->nodes[0].out);
    if (data.kind != NET_TOKENS && (reads != has || plan->n_categories != m->fit->n_codes))
        return as_fail(err, AS_E_INVAL,
                       "/members/%zu: its model has %zu inputs, its preprocessing gives %zu", i,
                       reads, has);
    *ret = as_steal(plan);
    return AS_OK;
}

/* Encode the rows for member i, or find an earlier member for which they are encoded alike. */
static void encode_member(struct exporter *e, size_t i)
{
    const struct onnx_inputs *in = inputs_of(e, i);
    const struct preprocess *fit = model_file_member(e->file, i)->fit;
    for (size_t j = 0; j < e->n; j++)
        if (e->encoded[j].is_made && stack_of(e, j) == stack_of(e, i) &&
            onnx_encodes_alike(in->info, fit, model_file_member(e->file, j)->fit)) {
            e->encoded[i] = e->encoded[j];
            return;
        }
    onnx_encode(e->g, in, fit, &e->encoded[i]);
}

/* The predictions of a network; of text its logits. */
static const char *export_network(struct exporter *e, size_t i)
{
    encode_member(e, i);
    struct as_err err = {0};
    AS_AUTO(net_plan_freep) struct net_plan *plan = NULL;
    as_status st = member_plan(e, i, &plan, &err);
    if (st != AS_OK) {
        onnx_graph_fail(e->g, st, "%s", err.msg);
        return NULL;
    }
    const char *outputs = onnx_layers_add(e->g, e->file, i, plan, &e->encoded[i]);
    return e->info->input == DATASET_TOKEN_TEXT
               ? outputs
               : onnx_member_predictions(e->g, model_file_member(e->file, i), outputs);
}

static const char *export_trees(struct exporter *e, size_t i)
{
    const char *p = onnx_trees_add(e->g, e->file, i, inputs_of(e, i));
    return model_file_member(e->file, i)->info->task == DATASET_REGRESSION
               ? onnx_own_unit(e->g, model_file_member(e->file, i)->fit, p)
               : p;
}

static const char *export_kmeans(struct exporter *e, size_t i)
{
    encode_member(e, i);
    return onnx_kmeans_add(e->g, e->file, i, &e->encoded[i]);
}

static const char *export_neighbours(struct exporter *e, size_t i)
{
    encode_member(e, i);
    const char *p = onnx_neighbours_add(e->g, e->file, i, e->encoded[i].x);
    return model_file_member(e->file, i)->info->task == DATASET_REGRESSION
               ? onnx_own_unit(e->g, model_file_member(e->file, i)->fit, p)
               : p;
}

static const char *export_bayes(struct exporter *e, size_t i)
{
    return onnx_bayes_add(e->g, e->file, i, inputs_of(e, i));
}

typedef const char *member_fn(struct exporter *e, size_t i);

/* How a kind of model is exported: its row is at its number. */
static member_fn *const kinds[] = {
    [TRAIN_MLP] = export_network,         [TRAIN_LINEAR] = export_network,
    [TRAIN_CNN] = export_network,         [TRAIN_TRANSFORMER] = export_network,
    [TRAIN_BOOSTED_TREES] = export_trees, [TRAIN_RANDOM_FOREST] = export_trees,
    [TRAIN_EXTRA_TREES] = export_trees,   [TRAIN_KNN] = export_neighbours,
    [TRAIN_KMEANS] = export_kmeans,       [TRAIN_NAIVE_BAYES] = export_bayes,
};

static void export_member(struct exporter *e, size_t i)
{
    const struct model_member *m = model_file_member(e->file, i);
    size_t kind = (size_t)m->spec->model.kind;
    onnx_graph_scope(e->g, onnx_graph_text(e->g, "members/%zu", i));
    if (kind >= AS_ARRAY_LEN(kinds) || !kinds[kind]) {
        onnx_graph_fail(e->g, AS_E_UNSUPPORTED,
                        "member %zu: a model of this kind cannot be exported to ONNX", i);
        return;
    }
    e->predictions[i] = kinds[kind](e, i);
}

/* The members of one layer, after those that they see. Returns whether there is a deeper one. */
static bool export_layer(struct exporter *e, size_t depth)
{
    const struct model_combine *c = model_file_combine(e->file);
    bool deeper = false;
    for (size_t s = 0; s < c->n_stacks; s++)
        for (size_t k = 0; k < c->n_inputs; k++)
            if (c->stack[k] == s && c->depth[k] == depth && !e->stacked[s].info) {
                onnx_graph_scope(e->g, onnx_graph_text(e->g, "stacks/%zu", s));
                onnx_stack_rows(e->g, e->file, &c->stacks[s], &e->inputs, e->predictions,
                                &e->stacked[s]);
            }
    for (size_t i = 0; i < e->n; i++) {
        size_t own = c->depth[model_file_member(e->file, i)->input];
        deeper = deeper || own > depth;
        if (own == depth)
            export_member(e, i);
    }
    return deeper;
}

/* ---- the whole ---- */

/* Only numbers and categories: no operator parses a date, or cuts a text into words and hashes
 * them. */
static as_status check_columns(const struct model_file *f, struct as_err *err)
{
    const struct dataset_info *info = model_file_data(f);
    for (size_t c = 0; info->columns && c < info->n_features; c = dataset_next_column(info, c))
        if (info->columns[c].part != DATASET_CELL)
            return as_fail(err, AS_E_UNSUPPORTED,
                           "column '%.80s' holds %s, expected numbers or categories: ONNX has no "
                           "operators for others; predict with assay predict or assay-serve, or "
                           "train without it",
                           info->columns[c].name,
                           info->columns[c].part == DATASET_HASHED ? "texts" : "dates");
    return AS_OK;
}

static as_status check_model(const struct model_file *f, struct as_err *err)
{
    if (model_file_data(f)->input == DATASET_TOKEN_TEXT && model_file_n_members(f) > 1)
        return as_fail(err, AS_E_UNSUPPORTED,
                       "an ensemble of %zu members over text cannot be exported to ONNX, expected "
                       "one member",
                       model_file_n_members(f));
    return check_columns(f, err);
}

/* What the manifest says about the model, as properties that runtimes show. */
static void add_properties(struct exporter *e)
{
    static const char *const fields[] = {"metrics", "measured_on", "lineage"};
    for (size_t i = 0; i < AS_ARRAY_LEN(fields); i++) {
        const json_t *field = json_object_get(model_file_manifest(e->file), fields[i]);
        AS_AUTO(as_freep) char *text = field ? json_format(field) : NULL;
        const char *key = onnx_graph_text(e->g, "assay.%s", fields[i]);
        if (field && !text)
            onnx_graph_fail(e->g, AS_E_NOMEM, "out of memory");
        else if (text && key)
            onnx_graph_property(e->g, key, json_is_string(field) ? json_string_value(field) : text);
    }
}

static void export_model(struct exporter *e)
{
    const struct model_member *first = model_file_member(e->file, 0);
    size_t context = (size_t)first->spec->model.context;
    onnx_inputs_add(e->g, e->info, context, &e->inputs);
    e->encoded = onnx_graph_memory(e->g, e->n, sizeof *e->encoded);
    e->predictions = onnx_graph_memory(e->g, e->n, sizeof *e->predictions);
    e->stacked =
        onnx_graph_memory(e->g, model_file_combine(e->file)->n_stacks + 1, sizeof *e->stacked);
    for (size_t depth = 0; e->predictions && e->stacked && export_layer(e, depth);)
        depth++;
    onnx_graph_scope(e->g, "");
    if (!e->predictions)
        return;
    if (e->info->input == DATASET_TOKEN_TEXT)
        onnx_logits_add(e->g, e->info, context, e->predictions[0]);
    else
        onnx_outputs_add(e->g, e->file, onnx_combine(e->g, e->file, &e->inputs, e->predictions),
                         e->inputs.check);
    add_properties(e);
}

bool onnx_is_built(void)
{
    return true;
}

as_status onnx_write(const struct model_file *f, const char *path, struct as_err *err)
{
    AS_AUTO(onnx_graph_freep) struct onnx_graph *g = NULL;
    as_status st = check_model(f, err);
    if (st == AS_OK)
        st = onnx_graph_create(&g, err);
    if (st != AS_OK)
        return st;
    struct exporter e = {
        .g = g, .file = f, .info = model_file_data(f), .n = model_file_n_members(f)};
    export_model(&e);
    return onnx_graph_write(g, path, err);
}
