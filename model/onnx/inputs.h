/* The inputs of a graph: the columns of the data set as its user has them. */
#ifndef ASSAY_MODEL_ONNX_INPUTS_H
#define ASSAY_MODEL_ONNX_INPUTS_H

#include "data/dataset.h"
#include "model/onnx/graph.h"

/* Values of the graph. */
struct onnx_inputs {
    const struct dataset_info *info;
    const char *numbers; /* table: float [rows, numeric columns] in the order of the file, NaN where
                          * missing; NULL: there is no such column */
    const char **texts;  /* table: [n_features] string [rows, 1] of each category column, else NULL;
                          * NULL: there is no such column */
    const char **columns; /* table with named columns: [n_features] the input of each; else NULL */
    const char *pixels;   /* images: float [rows, height, width, channels] */
    const char *tokens;   /* text: int64 [rows, context] */
    const char *check;    /* float [rows, 1]: 0, or NaN if the row has a number that predicting
                          * refuses or fills: infinite, or missing in a column that had no missing
                          * number in the data set. NULL: no row can have one */
};

/* Declare the inputs, before anything else of the graph.
 *   table   one for each column, by its name: float [rows, 1], or string [rows, 1] for categories.
 *           A table without named columns (arrays) is one input `x`, float [rows, n_features]
 *   images  `image`, float; uint8 where the format has only bytes. [rows, height, width, channels],
 *           or [rows, channels, height, width] if the data set's arrays are so (channels_first)
 *   text    `tokens`, int64 [rows, context]
 * A column whose name is empty, or that of an earlier one, gets "_" and its index after it.
 *   info  borrowed until the graph is written
 *   ret   its texts belong to the graph */
void onnx_inputs_add(struct onnx_graph *g, const struct dataset_info *info, size_t context,
                     struct onnx_inputs *ret);

#endif
