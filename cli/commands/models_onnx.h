/* Models as ONNX files. */
#ifndef ASSAY_CLI_COMMANDS_MODELS_ONNX_H
#define ASSAY_CLI_COMMANDS_MODELS_ONNX_H

#include "base/status.h"
#include "cli/session/fetch.h"
#include "cli/session/session.h"

/* Fetch the content of a version, and write it as ONNX to f->dest. Errors: those of fetch_bytes()
 * and onnx_write(); in a build without ONNX, before anything is fetched. */
AS_MUST_CHECK as_status models_fetch_onnx(const struct session *s, const struct fetch *f,
                                          struct as_err *err);

/* Write the model file `from` as ONNX to `to`. Errors: those of model_file_read() and
 * onnx_write(). */
AS_MUST_CHECK as_status models_convert_onnx(const char *from, const char *to, struct as_err *err);

#endif
