/* From the inputs of a graph to the inputs of a network: what data/preprocess does with a row. */
#ifndef ASSAY_MODEL_ONNX_ENCODE_H
#define ASSAY_MODEL_ONNX_ENCODE_H

#include "data/preprocess/preprocess.h"
#include "model/onnx/graph.h"
#include "model/onnx/inputs.h"

/* Values of the graph. */
struct onnx_encoded {
    const char *x;     /* float: table [rows, preprocess_inputs()]; images [rows, height, width,
                        * channels]; NULL: there is no numeric input */
    bool is_made;      /* onnx_encode() has made it */
    const char *codes; /* int64: table [rows, n_codes]; text [rows, context]; else NULL */
};

/* Add the nodes that encode rows as preprocess_apply() does: fills, indicators of missing values,
 * categories (any text that no training row had is "other"; the words for a missing cell of CSV
 * files are missing), standardisation, and bins. */
void onnx_encode(struct onnx_graph *g, const struct onnx_inputs *in, const struct preprocess *fit,
                 struct onnx_encoded *ret);

/* The category columns as trees see them: float [rows, category columns], the index among a
 * column's values, n_values for any other text, NaN where it is missing. There is such a column. */
const char *onnx_encode_indices(struct onnx_graph *g, const struct onnx_inputs *in,
                                const struct preprocess *fit);

/* Do two fits for `info` encode every row alike? Then their members can share the nodes. */
bool onnx_encodes_alike(const struct dataset_info *info, const struct preprocess *a,
                        const struct preprocess *b);

#endif
