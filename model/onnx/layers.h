/* The network of a member as nodes of a graph. */
#ifndef ASSAY_MODEL_ONNX_LAYERS_H
#define ASSAY_MODEL_ONNX_LAYERS_H

#include "model/file/model_file.h"
#include "model/onnx/encode.h"
#include "model/onnx/graph.h"
#include "model/plan/net.h"

/* Add the nodes of a plan with the weights of member `member` of `f`.
 *   f     borrowed until the graph is written
 *   plan  the member's, borrowed for the call
 *   in    the encoded rows
 * Returns the outputs of the network, float [rows, outputs] ([rows, context, outputs] of text).
 * The graph fails with AS_E_INVAL if a tensor is missing or has another size. */
const char *onnx_layers_add(struct onnx_graph *g, const struct model_file *f, size_t member,
                            const struct net_plan *plan, const struct onnx_encoded *in);

#endif
