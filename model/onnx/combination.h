/* From the predictions of members to those of the model, as model/combine/ computes them. */
#ifndef ASSAY_MODEL_ONNX_COMBINATION_H
#define ASSAY_MODEL_ONNX_COMBINATION_H

#include "model/file/model_file.h"
#include "model/onnx/graph.h"
#include "model/onnx/inputs.h"

/* What one input of the combination predicts, float [rows, outputs], from its members' predictions:
 * for the members of a further layer. */
const char *onnx_input_predictions(struct onnx_graph *g, const struct model_file *f, size_t input,
                                   const char *const *predictions);

/* Combine the predictions of all members of f, float [rows, outputs] each, as f says. Everything is
 * computed in double, and the result is float.
 *   in  the inputs of the graph; a combination by a column looks at one of them */
const char *onnx_combine(struct onnx_graph *g, const struct model_file *f,
                         const struct onnx_inputs *in, const char *const *predictions);

#endif
