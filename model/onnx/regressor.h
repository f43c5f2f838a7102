/* A TreeEnsembleRegressor while its trees are added, node by node. For model/onnx/ alone. */
#ifndef ASSAY_MODEL_ONNX_REGRESSOR_H
#define ASSAY_MODEL_ONNX_REGRESSOR_H

#include "model/onnx/graph.h"

struct onnx_longs {
    int64_t *v;
    size_t n, cap;
};

struct onnx_singles {
    float *v;
    size_t n, cap;
};

/* The lists that become attributes; zeroed but for the first members. */
struct onnx_regressor {
    struct onnx_graph *g; /* keeps the first failure: memory is out */
    size_t inputs, outputs;
    struct onnx_longs tree, node, feature, yes, no, missing_yes;
    struct onnx_singles value;
    const char **modes; /* as many as nodes */
    size_t n_modes, cap_modes;
    struct onnx_longs leaf_tree, leaf_node, leaf_output;
    struct onnx_singles leaf_weight;
};

void onnx_regressor_done(struct onnx_regressor *e);

struct onnx_branch {
    int64_t tree, node, feature, yes, no; /* the children by the outcome of the comparison */
    double value;
    bool missing_yes;
};

/* Add a node of a mode of the operator: "BRANCH_LT", "BRANCH_EQ", "LEAF" (a static text). */
void onnx_regressor_node(struct onnx_regressor *e, const char *mode, const struct onnx_branch *b);

/* What a leaf adds to an output. */
void onnx_regressor_leaf(struct onnx_regressor *e, int64_t tree, int64_t node, int64_t output,
                         double weight);

/* Add the operator to the graph: float [rows, outputs].
 *   x          float [rows, inputs]
 *   aggregate  of the trees: "SUM" or "AVERAGE"
 *   base       is added to each output */
const char *onnx_regressor_add(const struct onnx_regressor *e, const char *x, const char *aggregate,
                               float base);

#endif
