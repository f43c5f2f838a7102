/* Naive Bayes as operators. */
#ifndef ASSAY_MODEL_ONNX_BAYES_NODES_H
#define ASSAY_MODEL_ONNX_BAYES_NODES_H

#include "model/file/model_file.h"
#include "model/onnx/graph.h"
#include "model/onnx/inputs.h"

/* The predictions [rows, classes] of member `member`, whose tensor is `naive_bayes`. Its inputs are
 * numbers and categories: columns of texts have no place in a graph. The graph fails with
 * AS_E_INVAL if the model cannot be read.
 *   f  borrowed until the graph is written */
const char *onnx_bayes_add(struct onnx_graph *g, const struct model_file *f, size_t member,
                           const struct onnx_inputs *in);

#endif
