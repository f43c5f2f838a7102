/* k-means as operators of ONNX: the nearest centroid by a product and ArgMax, the distance from the
 * differences. */
#ifndef ASSAY_MODEL_ONNX_KMEANS_NODES_H
#define ASSAY_MODEL_ONNX_KMEANS_NODES_H

#include "model/file/model_file.h"
#include "model/onnx/encode.h"

/* float [rows, 2]: cluster and distance (model/kmeans/kmeans_model.h). The tensor `centroids` of
 * the member must have as many inputs as its preprocessing gives. */
const char *onnx_kmeans_add(struct onnx_graph *g, const struct model_file *f, size_t member,
                            const struct onnx_encoded *in);

#endif
