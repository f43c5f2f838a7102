/* The rows that members of a further layer see. */
#ifndef ASSAY_MODEL_ONNX_STACKED_H
#define ASSAY_MODEL_ONNX_STACKED_H

#include "model/file/model_file.h"
#include "model/onnx/graph.h"
#include "model/onnx/inputs.h"

/* The inputs of the graph with what other inputs of the combination predict behind their numbers.
 *   in           the inputs of the graph
 *   predictions  of the members of the layers before
 *   ret          its arrays belong to the graph */
void onnx_stack_rows(struct onnx_graph *g, const struct model_file *f,
                     const struct model_stack *stack, const struct onnx_inputs *in,
                     const char *const *predictions, struct onnx_inputs *ret);

#endif
