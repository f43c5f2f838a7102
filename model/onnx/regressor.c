/* The attributes of a TreeEnsembleRegressor while its trees are added. */
#include "model/onnx/regressor.h"

#include <stdlib.h>

void onnx_regressor_done(struct onnx_regressor *e)
{
    struct onnx_longs *lists[] = {&e->tree,      &e->node,      &e->feature,
                                  &e->yes,       &e->no,        &e->missing_yes,
                                  &e->leaf_tree, &e->leaf_node, &e->leaf_output};
    for (size_t i = 0; i < AS_ARRAY_LEN(lists); i++)
        free(lists[i]->v);
    free(e->value.v);
    free(e->leaf_weight.v);
    free(e->modes);
}

static void put(struct onnx_graph *g, struct onnx_longs *l, int64_t v)
{
    if (as_reserve_one(&l->v, l->n, &l->cap, sizeof *l->v, NULL) != AS_OK)
        onnx_graph_fail(g, AS_E_NOMEM, "out of memory for the trees");
    else
        l->v[l->n++] = v;
}

static void put_float(struct onnx_graph *g, struct onnx_singles *l, double v)
{
    if (as_reserve_one(&l->v, l->n, &l->cap, sizeof *l->v, NULL) != AS_OK)
        onnx_graph_fail(g, AS_E_NOMEM, "out of memory for the trees");
    else
        l->v[l->n++] = (float)v;
}

void onnx_regressor_node(struct onnx_regressor *e, const char *mode, const struct onnx_branch *b)
{
    put(e->g, &e->tree, b->tree);
    put(e->g, &e->node, b->node);
    put(e->g, &e->feature, b->feature);
    put(e->g, &e->yes, b->yes);
    put(e->g, &e->no, b->no);
    put(e->g, &e->missing_yes, b->missing_yes);
    put_float(e->g, &e->value, b->value);
    if (as_reserve_one(&e->modes, e->n_modes, &e->cap_modes, sizeof *e->modes, NULL) != AS_OK)
        onnx_graph_fail(e->g, AS_E_NOMEM, "out of memory for the trees");
    else
        e->modes[e->n_modes++] = mode;
}

void onnx_regressor_leaf(struct onnx_regressor *e, int64_t tree, int64_t node, int64_t output,
                         double weight)
{
    put(e->g, &e->leaf_tree, tree);
    put(e->g, &e->leaf_node, node);
    put(e->g, &e->leaf_output, output);
    put_float(e->g, &e->leaf_weight, weight);
}

static struct onnx_attr text_attr(const char *name, const char *const *text)
{
    return (struct onnx_attr){.name = name, .kind = ONNX_ATTR_STRING, .strings = text};
}

static struct onnx_attr ints_attr(const char *name, const struct onnx_longs *l)
{
    return onnx_ints(name, l->v, l->n);
}

static struct onnx_attr floats_attr(const char *name, const float *v, size_t n)
{
    return (struct onnx_attr){.name = name, .kind = ONNX_ATTR_FLOATS, .floats = v, .n = n};
}

const char *onnx_regressor_add(const struct onnx_regressor *e, const char *x, const char *aggregate,
                               float base)
{
    static const char *const none[] = {"NONE"};
    float *bases = onnx_graph_memory(e->g, e->outputs, sizeof *bases);
    for (size_t i = 0; bases && i < e->outputs; i++)
        bases[i] = base;
    if (!bases)
        return NULL;
    return onnx_graph_add(
        e->g,
        &(struct onnx_node){
            .op = "TreeEnsembleRegressor",
            .ml = true,
            ONNX_IN(x),
            ONNX_ATTRS(
                onnx_int("n_targets", (int64_t)e->outputs),
                text_attr("aggregate_function", &aggregate), text_attr("post_transform", none),
                floats_attr("base_values", bases, e->outputs), ints_attr("nodes_treeids", &e->tree),
                ints_attr("nodes_nodeids", &e->node), ints_attr("nodes_featureids", &e->feature),
                ints_attr("nodes_truenodeids", &e->yes), ints_attr("nodes_falsenodeids", &e->no),
                ints_attr("nodes_missing_value_tracks_true", &e->missing_yes),
                floats_attr("nodes_values", e->value.v, e->value.n),
                {.name = "nodes_modes",
                 .kind = ONNX_ATTR_STRINGS,
                 .strings = e->modes,
                 .n = e->n_modes},
                ints_attr("target_treeids", &e->leaf_tree),
                ints_attr("target_nodeids", &e->leaf_node),
                ints_attr("target_ids", &e->leaf_output),
                floats_attr("target_weights", e->leaf_weight.v, e->leaf_weight.n))});
}
