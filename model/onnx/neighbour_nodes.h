/* Nearest neighbours as operators: MatMul and TopK. */
#ifndef ASSAY_MODEL_ONNX_NEIGHBOUR_NODES_H
#define ASSAY_MODEL_ONNX_NEIGHBOUR_NODES_H

#include "model/file/model_file.h"
#include "model/onnx/graph.h"

/* The predictions [rows, outputs] of member `member`, whose tensor is `neighbours`: shares of the
 * classes, or standardised numbers.
 *   x  its encoded rows; images have several dimensions */
const char *onnx_neighbours_add(struct onnx_graph *g, const struct model_file *f, size_t member,
                                const char *x);

#endif
