/* A model as an ONNX file: one graph from the raw columns to the predictions. */
#ifndef ASSAY_MODEL_ONNX_ONNX_WRITE_H
#define ASSAY_MODEL_ONNX_ONNX_WRITE_H

#include <stdbool.h>

#include "base/status.h"
#include "model/file/model_file.h"

/* Was this build made with protobuf-c and the definitions of ONNX? */
bool onnx_is_built(void);

/* Write the model as an ONNX file: preprocessing, every member, their weighted mean.
 *   path  "-" is standard output. An existing file is replaced in one step, or stays as it was
 * Inputs are those of model/onnx/inputs.h, outputs those of model/onnx/predictions.h. The bytes
 * depend on the model alone. They need the operators of ONNX 1.12 (IR version 8, opset 17,
 * ai.onnx.ml 3).
 * A graph cannot refuse a row. Where predicting does (an infinite number, or a missing one in a
 * column that had none in the data set), the graph's numbers are NaN and its label is "".
 * AS_E_UNSUPPORTED, with the name of what cannot be exported: this build, a kind of combination or
 * of member, an ensemble over text. AS_E_INVAL: a tensor is missing. AS_E_TOO_LARGE: more than
 * 2 GiB. AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status onnx_write(const struct model_file *f, const char *path,
                                   struct as_err *err);

#endif
