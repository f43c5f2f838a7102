/* From the outputs of networks to what a graph returns. */
#ifndef ASSAY_MODEL_ONNX_PREDICTIONS_H
#define ASSAY_MODEL_ONNX_PREDICTIONS_H

#include "model/file/model_file.h"
#include "model/onnx/graph.h"

/* What member `m` predicts, from the outputs of its network: float [rows, n_outputs],
 * probabilities of the classes, or numbers in the targets' own unit. */
const char *onnx_member_predictions(struct onnx_graph *g, const struct model_member *m,
                                    const char *outputs);

/* The parts of it. The probability of class 1 [rows, 1] to those of both classes; Softmax (over the
 * classes) or Sigmoid in double; standardised numbers to the targets' own unit, also of targets
 * that were transformed (target_unit.h). */
const char *onnx_both_classes(struct onnx_graph *g, const char *p);
const char *onnx_in_double(struct onnx_graph *g, const char *op, const char *z);
const char *onnx_own_unit(struct onnx_graph *g, const struct preprocess *fit, const char *v);

/* Declare the outputs of the graph. `check` (onnx_inputs) is added to each row; NULL: nothing. A
 * row that it makes NaN has the label "".
 *   classes     `label`, string [rows], the most probable class, the first of equals, or by
 *               the model's threshold or weights of classes; and
 *               `probabilities`, float [rows, classes] in the order of the property assay.classes
 *   regression  `predictions`, float [rows, targets]
 *   clustering  `predictions`, float [rows, 2]: the cluster, and the distance to its centroid */
void onnx_outputs_add(struct onnx_graph *g, const struct model_file *f, const char *predictions,
                      const char *check);

/* Text: declare the output `logits`, float [rows, context, vocabulary]. */
void onnx_logits_add(struct onnx_graph *g, const struct dataset_info *info, size_t context,
                     const char *outputs);

#endif
