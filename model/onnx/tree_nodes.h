/* The trees of a member as nodes of a graph. */
#ifndef ASSAY_MODEL_ONNX_TREE_NODES_H
#define ASSAY_MODEL_ONNX_TREE_NODES_H

#include "model/extra-trees/extra_forest.h"
#include "model/file/model_file.h"
#include "model/onnx/graph.h"
#include "model/onnx/inputs.h"
#include "model/trees/tree_model.h"

/* The rows as trees see them (model/trees/tree_inputs.h): float [rows, inputs]. */
const char *onnx_tree_inputs(struct onnx_graph *g, const struct onnx_inputs *in,
                             const struct preprocess *fit);

/* Add member `member` of `f`, whose tensor `trees` is an XGBoost booster or extra trees. Returns
 * its predictions, float [rows, n_outputs]: probabilities, or standardised targets. The graph
 * fails with AS_E_INVAL if the trees cannot be read, AS_E_UNSUPPORTED with the name of an objective
 * that is not known.
 *   f  borrowed until the graph is written */
const char *onnx_trees_add(struct onnx_graph *g, const struct model_file *f, size_t member,
                           const struct onnx_inputs *in);

/* The same for the bytes of a booster (UBJSON), which may be hostile.
 *   o       what its outputs mean
 *   x       its inputs, float [rows, inputs] */
const char *onnx_booster_add(struct onnx_graph *g, const void *bytes, size_t len,
                             const struct tree_outputs *o, const char *x, size_t inputs);

/* The same for the bytes of extra trees of a shape, which may be hostile, too. */
const char *onnx_extra_add(struct onnx_graph *g, const void *bytes, size_t len,
                           const struct extra_shape *shape, const struct tree_outputs *o,
                           const char *x);

#endif
