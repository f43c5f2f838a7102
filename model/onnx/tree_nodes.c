/* XGBoost's trees as TreeEnsembleRegressor.
 *
 * A split of numbers is BRANCH_LT: the true branch is the left child. A split of categories has a
 * set, whose members go right (XGBoost's Decision()): a chain of BRANCH_EQ nodes, one for each
 * member, whose true branches are all the right child, as converters of LightGBM write them.
 * Missing values are NaN and follow the node's default.
 *
 * The regressor gives sums of leaves; what XGBoost's objective makes of them (a sigmoid, a
 * softmax), and what model/trees makes of a forest's, are nodes after it. */
#include "model/onnx/tree_nodes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/onnx/encode.h"
#include "model/onnx/predictions.h"
#include "model/onnx/ubjson.h"
#include "model/trees/tree_model.h"

/* ---- the regressor's attributes ---- */

struct ints {
    int64_t *v;
    size_t n, cap;
};

struct floats {
    float *v;
    size_t n, cap;
};

struct ensemble {
    struct onnx_graph *g;
    size_t inputs, outputs;
    struct ints tree, node, feature, yes, no, missing_yes;
    struct floats value;
    const char **modes; /* as many as nodes */
    size_t n_modes, cap_modes;
    struct ints leaf_tree, leaf_node, leaf_output;
    struct floats leaf_weight;
};

static void ensemble_done(struct ensemble *e)
{
    struct ints *ints[] = {&e->tree,        &e->node,      &e->feature,   &e->yes,        &e->no,
                           &e->missing_yes, &e->leaf_tree, &e->leaf_node, &e->leaf_output};
    for (size_t i = 0; i < AS_ARRAY_LEN(ints); i++)
        free(ints[i]->v);
    free(e->value.v);
    free(e->leaf_weight.v);
    free(e->modes);
}

static void put(struct onnx_graph *g, struct ints *l, int64_t v)
{
    if (as_reserve_one(&l->v, l->n, &l->cap, sizeof *l->v, NULL) != AS_OK)
        onnx_graph_fail(g, AS_E_NOMEM, "out of memory for the trees");
    else
        l->v[l->n++] = v;
}

static void put_float(struct onnx_graph *g, struct floats *l, double v)
{
    if (as_reserve_one(&l->v, l->n, &l->cap, sizeof *l->v, NULL) != AS_OK)
        onnx_graph_fail(g, AS_E_NOMEM, "out of memory for the trees");
    else
        l->v[l->n++] = (float)v;
}

struct branch {
    int64_t tree, node, feature, yes, no;
    double value;
    bool missing_yes;
};

static void put_node(struct ensemble *e, const char *mode, const struct branch *b)
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

/* ---- one tree ---- */

/* Views of the booster: arrays with a value for each node, checked to have as many. */
struct tree {
    int64_t id, output;
    size_t n;
    const struct ubjson *left, *right, *condition, *feature, *kind, *default_left;
    const struct ubjson *set_node, *set_begin, *set_size, *members;
    int64_t next; /* the first number that no node of this tree has yet */
};

static bool tree_read(struct ensemble *e, const struct ubjson *v, struct tree *t)
{
    const struct {
        const char *name;
        const struct ubjson **to;
    } arrays[] = {{"left_children", &t->left},
                  {"right_children", &t->right},
                  {"split_conditions", &t->condition},
                  {"split_indices", &t->feature},
                  {"split_type", &t->kind},
                  {"default_left", &t->default_left}};
    t->n = ubjson_count(ubjson_get(v, "left_children"));
    for (size_t i = 0; i < AS_ARRAY_LEN(arrays); i++) {
        *arrays[i].to = ubjson_get(v, arrays[i].name);
        if (t->n == 0 || ubjson_count(*arrays[i].to) != t->n)
            onnx_graph_fail(e->g, AS_E_INVAL, "tree %lld: %s has %zu values, expected %zu",
                            (long long)t->id, arrays[i].name, ubjson_count(*arrays[i].to), t->n);
    }
    t->set_node = ubjson_get(v, "categories_nodes");
    t->set_begin = ubjson_get(v, "categories_segments");
    t->set_size = ubjson_get(v, "categories_sizes");
    t->members = ubjson_get(v, "categories");
    size_t sets = ubjson_count(t->set_node);
    if (ubjson_count(t->set_begin) != sets || ubjson_count(t->set_size) != sets)
        onnx_graph_fail(e->g, AS_E_INVAL, "tree %lld: its sets of categories do not agree",
                        (long long)t->id);
    t->next = (int64_t)t->n;
    return onnx_graph_status(e->g, NULL) == AS_OK;
}

/* Where the members of a node's set begin, and how many they are; 0: none. */
static size_t set_of(struct ensemble *e, const struct tree *t, size_t node, size_t *ret_begin)
{
    size_t low = 0, high = ubjson_count(t->set_node); /* sorted by node */
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (ubjson_number(t->set_node, mid) < (double)node)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == ubjson_count(t->set_node) || ubjson_number(t->set_node, low) > (double)node)
        return 0;
    double begin = ubjson_number(t->set_begin, low), size = ubjson_number(t->set_size, low);
    if (!(begin >= 0 && size >= 0 && begin + size <= (double)ubjson_count(t->members))) {
        onnx_graph_fail(e->g, AS_E_INVAL, "tree %lld: a set of categories is out of range",
                        (long long)t->id);
        return 0;
    }
    *ret_begin = (size_t)begin;
    return (size_t)size;
}

static void put_set(struct ensemble *e, struct tree *t, const struct branch *split, size_t node)
{
    size_t begin = 0, n = set_of(e, t, node, &begin);
    struct branch b = *split;
    int64_t left = split->yes, right = split->no;
    b.yes = right;
    b.missing_yes = !split->missing_yes; /* the default is left: no */
    b.value = -1;                        /* of an empty set: no category */
    for (size_t k = 0; k < n || k == 0; k++) {
        if (n > 0)
            b.value = ubjson_number(t->members, begin + k);
        b.no = k + 1 < n ? t->next++ : left;
        put_node(e, "BRANCH_EQ", &b);
        b.node = b.no;
    }
}

/* Add a node; false if it is a leaf. */
static bool put_tree_node(struct ensemble *e, struct tree *t, size_t node, double left,
                          double right)
{
    double feature = ubjson_number(t->feature, node), condition = ubjson_number(t->condition, node);
    struct branch b = {.tree = t->id, .node = (int64_t)node};
    if (left < 0) {
        put_node(e, "LEAF", &b);
        put(e->g, &e->leaf_tree, t->id);
        put(e->g, &e->leaf_node, (int64_t)node);
        put(e->g, &e->leaf_output, t->output);
        put_float(e->g, &e->leaf_weight, condition);
        return false;
    }
    if (!(feature >= 0 && feature < (double)e->inputs && left < (double)t->n && right >= 0 &&
          right < (double)t->n)) {
        onnx_graph_fail(e->g, AS_E_INVAL, "tree %lld: node %zu points out of range",
                        (long long)t->id, node);
        return false;
    }
    b.feature = (int64_t)feature;
    b.yes = (int64_t)left;
    b.no = (int64_t)right;
    b.missing_yes = ubjson_number(t->default_left, node) > 0;
    b.value = condition;
    if (ubjson_number(t->kind, node) > 0)
        put_set(e, t, &b, node);
    else
        put_node(e, "BRANCH_LT", &b);
    return true;
}

/* Nodes that cannot be reached from the root were pruned. */
static void put_tree(struct ensemble *e, struct tree *t)
{
    AS_AUTO(as_freep) size_t *stack = as_calloc(t->n + 1, sizeof *stack);
    AS_AUTO(as_freep) bool *seen = as_calloc(t->n, sizeof *seen);
    size_t n = 1; /* the root is node 0 */
    if (!stack || !seen)
        onnx_graph_fail(e->g, AS_E_NOMEM, "out of memory for the trees");
    while (n > 0 && onnx_graph_status(e->g, NULL) == AS_OK) {
        size_t node = stack[--n];
        double left = ubjson_number(t->left, node), right = ubjson_number(t->right, node);
        if (seen[node])
            onnx_graph_fail(e->g, AS_E_INVAL, "tree %lld: node %zu has two parents",
                            (long long)t->id, node);
        seen[node] = true;
        if (!put_tree_node(e, t, node, left, right) || n + 2 > t->n + 1)
            continue;
        stack[n++] = (size_t)right;
        stack[n++] = (size_t)left;
    }
}

/* ---- the booster ---- */

static void read_trees(struct ensemble *e, const struct ubjson *booster)
{
    const struct ubjson *model =
        ubjson_get(ubjson_get(ubjson_get(booster, "learner"), "gradient_booster"), "model");
    const struct ubjson *trees = ubjson_get(model, "trees"),
                        *outputs = ubjson_get(model, "tree_info");
    if (!trees || trees->kind != UBJSON_LIST || ubjson_count(outputs) != trees->n)
        onnx_graph_fail(e->g, AS_E_INVAL, "the tensor trees has no list of trees");
    for (size_t i = 0; onnx_graph_status(e->g, NULL) == AS_OK && i < trees->n; i++) {
        double output = ubjson_number(outputs, i);
        struct tree t = {.id = (int64_t)i};
        if (!(output >= 0 && output < (double)e->outputs))
            onnx_graph_fail(e->g, AS_E_INVAL, "tree %zu is for output %g, expected below %zu", i,
                            output, e->outputs);
        else if (tree_read(e, &trees->items[i], &t)) {
            t.output = (int64_t)output;
            put_tree(e, &t);
        }
    }
}

static struct onnx_attr text_attr(const char *name, const char *const *text)
{
    return (struct onnx_attr){.name = name, .kind = ONNX_ATTR_STRING, .strings = text};
}

static struct onnx_attr ints_attr(const char *name, const struct ints *l)
{
    return onnx_ints(name, l->v, l->n);
}

static struct onnx_attr floats_attr(const char *name, const float *v, size_t n)
{
    return (struct onnx_attr){.name = name, .kind = ONNX_ATTR_FLOATS, .floats = v, .n = n};
}

static const char *add_regressor(const struct ensemble *e, const char *x, float base)
{
    static const char *const sum[] = {"SUM"}, *const none[] = {"NONE"};
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
                onnx_int("n_targets", (int64_t)e->outputs), text_attr("aggregate_function", sum),
                text_attr("post_transform", none), floats_attr("base_values", bases, e->outputs),
                ints_attr("nodes_treeids", &e->tree), ints_attr("nodes_nodeids", &e->node),
                ints_attr("nodes_featureids", &e->feature), ints_attr("nodes_truenodeids", &e->yes),
                ints_attr("nodes_falsenodeids", &e->no),
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

/* ---- inputs and outputs ---- */

/* The inputs of trees (model/trees/tree_inputs.h): numbers as they are, then categories. */
static const char *tree_inputs(struct onnx_graph *g, const struct onnx_inputs *in,
                               const struct preprocess *fit)
{
    if (in->pixels)
        return onnx_graph_unary(g, "Flatten", in->pixels);
    if (!in->texts)
        return in->numbers;
    const char *indices = onnx_encode_indices(g, in, fit);
    const char *both[] = {in->numbers, indices};
    return in->numbers ? onnx_graph_concat(g, both, 2, 1) : indices;
}

static const char *clip(struct onnx_graph *g, const char *p)
{
    return onnx_graph_add(g, &(struct onnx_node){.op = "Clip",
                                                 ONNX_IN(p, onnx_graph_scalar(g, "zero", 0),
                                                         onnx_graph_scalar(g, "one", 1))});
}

/* Shares of several classes: divided by their sum, or equal if that is 0. */
static const char *share_out(struct onnx_graph *g, const char *p, size_t n)
{
    const char *sum =
        onnx_graph_binary(g, "ReduceSum", p, onnx_graph_ints(g, "axes", (int64_t[]){1}, 1));
    const char *any = onnx_graph_binary(g, "Greater", sum, onnx_graph_scalar(g, "zero", 0));
    const char *even = onnx_graph_scalar(g, "even", 1 / (float)n);
    p = onnx_graph_binary(g, "Div", p, sum);
    return onnx_graph_add(g, &(struct onnx_node){.op = "Where", ONNX_IN(any, p, even)});
}

static const char *tree_outputs(struct onnx_graph *g, const struct tree_outputs *o,
                                const char *objective, const char *p)
{
    if (strncmp(objective, "multi:", 6) == 0)
        p = onnx_in_double(g, "Softmax", p);
    else if (strstr(objective, ":logistic"))
        p = onnx_in_double(g, "Sigmoid", p);
    if (o->forest && (o->classes || o->shares)) /* the cast: ONNX 1.12 infers no type of trees */
        p = clip(g, onnx_graph_cast(g, p, ONNX_FLOAT));
    if (o->raw < o->values)
        return onnx_both_classes(g, p);
    return o->forest && o->classes ? share_out(g, p, o->values) : p;
}

/* The base score as a sum of leaves. */
static float base_of(struct onnx_graph *g, const struct ubjson *learner, const char *objective)
{
    static const char *const known[] = {"binary:logistic", "reg:logistic", "multi:softprob",
                                        "reg:squarederror", "reg:pseudohubererror"};
    const struct ubjson *text =
        ubjson_get(ubjson_get(learner, "learner_model_param"), "base_score");
    double base = text && text->kind == UBJSON_TEXT ? strtod(text->text, NULL) : (double)NAN;
    size_t i = 0;
    while (i < AS_ARRAY_LEN(known) && strcmp(known[i], objective) != 0)
        i++;
    if (i == AS_ARRAY_LEN(known))
        onnx_graph_fail(g, AS_E_UNSUPPORTED,
                        "trees with the objective %s cannot be exported to ONNX", objective);
    if (i < 2)
        base = log(base / (1 - base));
    if (!isfinite(base))
        onnx_graph_fail(g, AS_E_INVAL, "the tensor trees has no base score that is usable");
    return (float)base;
}

static const char *add_booster(struct onnx_graph *g, const struct ubjson *booster,
                               const struct tree_outputs *o, const char *x, size_t inputs)
{
    AS_AUTO(ensemble_done) struct ensemble e = {.g = g, .inputs = inputs, .outputs = o->raw};
    const struct ubjson *learner = ubjson_get(booster, "learner");
    const struct ubjson *name = ubjson_get(ubjson_get(learner, "objective"), "name");
    const char *objective = name && name->kind == UBJSON_TEXT ? name->text : "(none)";
    float base = base_of(g, learner, objective);
    if (onnx_graph_status(g, NULL) != AS_OK)
        return NULL;
    read_trees(&e, booster);
    return tree_outputs(g, o, objective, add_regressor(&e, x, base));
}

const char *onnx_booster_add(struct onnx_graph *g, const void *bytes, size_t len,
                             const struct tree_outputs *o, const char *x, size_t inputs)
{
    const struct ubjson *booster = NULL;
    AS_AUTO(arena_done) struct arena memory = {0};
    struct as_err err = {0};
    as_status st = ubjson_parse(&memory, bytes, len, &booster, &err);
    if (st != AS_OK) {
        onnx_graph_fail(g, st, "the tensor trees: %s", err.msg);
        return NULL;
    }
    return add_booster(g, booster, o, x, inputs);
}

const char *onnx_trees_add(struct onnx_graph *g, const struct model_file *f, size_t member,
                           const struct onnx_inputs *in)
{
    const struct model_member *m = model_file_member(f, member);
    const struct safetensors_tensor *trees = model_file_find(f, member, "trees");
    const struct tree_outputs o = tree_outputs_of(m->spec, m->info);
    if (!trees || trees->type != SAFETENSORS_U8) {
        onnx_graph_fail(g, AS_E_INVAL, "member %zu: found no tensor trees of bytes", member);
        return NULL;
    }
    return onnx_booster_add(g, trees->data, trees->size_bytes, &o, tree_inputs(g, in, m->fit),
                            in->info->n_features);
}
