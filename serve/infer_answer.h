/* The answer to an inference: JSON, or JSON with the values of tensors behind it as bytes. */
#ifndef ASSAY_SERVE_INFER_ANSWER_H
#define ASSAY_SERVE_INFER_ANSWER_H

#include "base/str.h"
#include "serve/infer_request.h"
#include "serve/tensor_schema.h"

/* Append the answer.
 *   out           [rows, s->outputs] what the predictor gave; a number that is not finite is null
 *                 in JSON
 *   ret_json_len  bytes of the JSON at its begin; equal to ret->len if no tensor is binary
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status infer_answer_write(const struct model_schema *s, const char *model,
                                           const char *version, const struct infer_request *q,
                                           const float *out, size_t rows, struct str *ret,
                                           size_t *ret_json_len, struct as_err *err);

/* Append a number: at most nine digits, which read back as the same float. */
void infer_float_write(struct str *b, float v);

/* Append a text in quotes, as JSON. */
void infer_text_write(struct str *b, const char *s, size_t len);

#endif
