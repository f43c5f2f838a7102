/* XGBoost's trees and extra trees as TreeEnsembleRegressor.
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
#include "model/onnx/regressor.h"
#include "model/trees/ubjson.h"
#include "model/trees/extra_shape.h"
#include "model/trees/tree_model.h"

/* ---- one tree ---- */

/* Views of the booster: arrays with a value for each node, checked to have as many. */
struct tree {
    int64_t id, output;
    size_t n;
    const struct ubjson *left, *right, *condition, *feature, *kind, *default_left;
    const struct ubjson *set_node, *set_begin, *set_size, *members;
    int64_t next; /* the first number that no node of this tree has yet */
};

static bool tree_read(struct onnx_regressor *e, const struct ubjson *v, struct tree *t)
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
static size_t set_of(struct onnx_regressor *e, const struct tree *t, size_t node, size_t *ret_begin)
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

static void put_set(struct onnx_regressor *e, struct tree *t, const struct onnx_branch *split,
                    size_t node)
{
    size_t begin = 0, n = set_of(e, t, node, &begin);
    struct onnx_branch b = *split;
    int64_t left = split->yes, right = split->no;
    b.yes = right;
    b.missing_yes = !split->missing_yes; /* the default is left: no */
    b.value = -1;                        /* of an empty set: no category */
    for (size_t k = 0; k < n || k == 0; k++) {
        if (n > 0)
            b.value = ubjson_number(t->members, begin + k);
        b.no = k + 1 < n ? t->next++ : left;
        onnx_regressor_node(e, "BRANCH_EQ", &b);
        b.node = b.no;
    }
}

/* Add a node; false if it is a leaf. */
static bool put_tree_node(struct onnx_regressor *e, struct tree *t, size_t node, double left,
                          double right)
{
    double feature = ubjson_number(t->feature, node), condition = ubjson_number(t->condition, node);
    struct onnx_branch b = {.tree = t->id, .node = (int64_t)node};
    if (left < 0) {
        onnx_regressor_node(e, "LEAF", &b);
        onnx_regressor_leaf(e, t->id, (int64_t)node, t->output, condition);
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
        onnx_regressor_node(e, "BRANCH_LT", &b);
    return true;
}

/* Nodes that cannot be reached from the root were pruned. */
static void put_tree(struct onnx_regressor *e, struct tree *t)
{
    AS_AUTO(as_freep) size_t *stack = as_calloc(t->n + 1, sizeof *stack);
    AS_AUTO(as_freep) bool *seen = as_calloc(t->n, sizeof *seen);
    size_t n = 1; /* the root is node 0 */
    if (!stack || !seen) {
        onnx_graph_fail(e->g, AS_E_NOMEM, "out of memory for the trees");
        return;
    }
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

static void read_trees(struct onnx_regressor *e, const struct ubjson *booster)
{
    const struct ubjson *model =
        ubjson_get(ubjson_get(ubjson_get(booster, "learner"), "gradient_booster"), "model");
    const struct ubjson *trees = ubjson_get(model, "trees"),
                        *outputs = ubjson_get(model, "tree_info");
    if (!trees || trees->kind != UBJSON_LIST || ubjson_count(outputs) != trees->n) {
        onnx_graph_fail(e->g, AS_E_INVAL, "the tensor trees has no list of trees");
        return;
    }
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

/* ---- inputs and outputs ---- */

/* The inputs of trees (model/trees/tree_inputs.h): numbers as they are, then categories. */
const char *onnx_tree_inputs(struct onnx_graph *g, const struct onnx_inputs *in,
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

/* What model/trees makes of the outputs (tree_outputs_apply). */
static const char *tree_outputs(struct onnx_graph *g, const struct tree_outputs *o, const char *p)
{
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
    AS_AUTO(onnx_regressor_done)
    struct onnx_regressor e = {.g = g, .inputs = inputs, .outputs = o->raw};
    const struct ubjson *learner = ubjson_get(booster, "learner");
    const struct ubjson *name = ubjson_get(ubjson_get(learner, "objective"), "name");
    const char *objective = name && name->kind == UBJSON_TEXT ? name->text : "(none)";
    float base = base_of(g, learner, objective);
    if (onnx_graph_status(g, NULL) != AS_OK)
        return NULL;
    read_trees(&e, booster);
    const char *p = onnx_regressor_add(&e, x, "SUM", base);
    if (strncmp(objective, "multi:", 6) == 0)
        p = onnx_in_double(g, "Softmax", p);
    else if (strstr(objective, ":logistic"))
        p = onnx_in_double(g, "Sigmoid", p);
    return tree_outputs(g, o, p);
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

/* ---- extra trees ---- */

/* A set of categories goes left: a chain of equality nodes whose true branches are the left child.
 * The numbers of the chain's further nodes are those from `next` on. */
static void put_extra_set(struct onnx_regressor *e, const struct extra_forest *f,
                          const struct onnx_branch *split, uint32_t set, uint32_t codes,
                          int64_t *next)
{
    struct onnx_branch b = *split;
    uint32_t left = 0;
    for (uint32_t c = 0; c < codes; c++)
        left += f->words[set + c / 32] >> c % 32 & 1;
    b.value = -1; /* of an empty set: no category */
    for (uint32_t c = 0; c < codes && left > 0; c++) {
        if (!(f->words[set + c / 32] >> c % 32 & 1))
            continue;
        b.value = (double)c;
        b.no = --left > 0 ? (*next)++ : split->no;
        onnx_regressor_node(e, "BRANCH_EQ", &b);
        b.node = b.no;
    }
    if (b.value < 0)
        onnx_regressor_node(e, "BRANCH_EQ", &b);
}

static void put_extra_leaf(struct onnx_regressor *e, const struct extra_forest *f, int64_t tree,
                           int64_t node, uint32_t row)
{
    const float *v = f->values + (size_t)row * f->outputs;
    bool any = false;
    onnx_regressor_node(e, "LEAF", &(struct onnx_branch){.tree = tree, .node = node});
    for (size_t o = 0; o < f->outputs; o++)
        if (v[o] > 0 || v[o] < 0 || (o + 1 == f->outputs && !any)) {
            onnx_regressor_leaf(e, tree, node, (int64_t)o, (double)v[o]);
            any = true;
        }
}

static void put_extra_tree(struct onnx_regressor *e, const struct extra_forest *f, size_t tree,
                           const uint32_t *codes)
{
    size_t begin = f->roots[tree], end = tree + 1 < f->n_trees ? f->roots[tree + 1] : f->n_nodes;
    int64_t next = (int64_t)(end - begin);
    for (size_t i = begin; i < end && onnx_graph_status(e->g, NULL) == AS_OK; i++) {
        const struct extra_node *n = &f->nodes[i];
        uint32_t input = n->split & EXTRA_INPUT;
        const struct onnx_branch b = {.tree = (int64_t)tree,
                                      .node = (int64_t)(i - begin),
                                      .feature = input,
                                      .yes = (int64_t)(n->left - begin),
                                      .no = (int64_t)(n->left - begin) + 1,
                                      .value = (double)n->at.threshold,
                                      .missing_yes = (n->split & EXTRA_MISSING_LEFT) != 0};
        if (n->split & EXTRA_LEAF)
            put_extra_leaf(e, f, (int64_t)tree, b.node, n->left);
        else if (n->split & EXTRA_CATEGORY)
            put_extra_set(e, f, &b, n->at.set, codes[input], &next);
        else
            onnx_regressor_node(e, "BRANCH_LT", &b);
    }
}

const char *onnx_extra_add(struct onnx_graph *g, const void *bytes, size_t len,
                           const struct extra_shape *shape, const struct tree_outputs *o,
                           const char *x)
{
    AS_AUTO(extra_forest_done) struct extra_forest f = {0};
    AS_AUTO(onnx_regressor_done)
    struct onnx_regressor e = {.g = g, .inputs = shape->inputs, .outputs = shape->outputs};
    struct as_err err = {0};
    as_status st = extra_forest_read(bytes, len, shape, &f, &err);
    if (st != AS_OK) {
        onnx_graph_fail(g, st, "the tensor trees: %s", err.msg);
        return NULL;
    }
    for (size_t t = 0; t < f.n_trees; t++)
        put_extra_tree(&e, &f, t, shape->codes);
    return tree_outputs(g, o, onnx_regressor_add(&e, x, "AVERAGE", 0));
}

static const char *add_extra(struct onnx_graph *g, const struct safetensors_tensor *trees,
                             const struct model_member *m, const struct tree_outputs *o,
                             const char *x)
{
    struct extra_shape shape;
    AS_AUTO(as_freep) uint32_t *codes = NULL;
    struct as_err err = {0};
    as_status st = extra_shape_of(m->info, o->raw, &shape, &codes, &err);
    if (st == AS_OK)
        return onnx_extra_add(g, trees->data, trees->size_bytes, &shape, o, x);
    onnx_graph_fail(g, st, "%s", err.msg);
    return NULL;
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
    const char *x = onnx_tree_inputs(g, in, m->fit);
    if (m->spec->model.kind == TRAIN_EXTRA_TREES)
        return add_extra(g, trees, m, &o, x);
    return onnx_booster_add(g, trees->data, trees->size_bytes, &o, x, in->info->n_features);
}
