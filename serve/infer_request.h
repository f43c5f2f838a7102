/* The body of POST …/infer in the Open Inference Protocol: JSON, or JSON with the values of tensors
 * behind it as bytes (the binary tensor extension). What it says is checked here as far as it can
 * be without a model: kinds, shapes, numbers of values, limits.
 *
 * Sizes are never trusted: what is allocated for a tensor is bounded by the bytes that were sent
 * for it. Pure; fuzzed (fuzz_infer). */
#ifndef ASSAY_SERVE_INFER_REQUEST_H
#define ASSAY_SERVE_INFER_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/status.h"
#include "serve/tensor.h"

#define INFER_MAX_INPUTS 4096
#define INFER_MAX_OUTPUTS 16
#define INFER_MAX_ID 1024 /* bytes */

struct infer_input {
    struct json_text name;
    tensor_type type;
    size_t n_dims, shape[TENSOR_MAX_DIMS];
    size_t n;                /* elements, the product of the shape; at least 1 */
    float *numbers;          /* [n]; NaN: missing (null). NULL for BYTES */
    struct json_text *texts; /* [n] of BYTES, else NULL. null: a text without bytes */
};

/* An output that is asked for. */
struct infer_wish {
    struct json_text name;
    bool is_binary;
};

/* A request; views of its body and of the arena. */
struct infer_request {
    bool has_id;
    struct json_text id;
    bool is_binary; /* parameter binary_data_output: outputs are bytes unless they say otherwise */
    size_t n_inputs;
    struct infer_input *inputs;
    bool has_wishes; /* else every output is wanted */
    size_t n_wishes;
    struct infer_wish wishes[INFER_MAX_OUTPUTS];
};

/* Parse and check a body.
 *   json_len  bytes of the JSON at its begin; the rest are the tensors with `binary_data_size`, one
 *             behind the other
 *   arena     for what is not a view of the body; borrowed for the life of *ret
 * AS_E_INVAL: the message names the tensor, what was found and what was expected; AS_E_TOO_LARGE;
 * AS_E_UNSUPPORTED: an extension that is not offered here; AS_E_NOMEM. */
AS_MUST_CHECK as_status infer_request_parse(const char *body, size_t len, size_t json_len,
                                            struct arena *arena, struct infer_request *ret,
                                            struct as_err *err);

/* "[2, 3]" for messages; buf has 200 bytes. Returns buf. */
const char *infer_shape_format(const struct infer_input *in, char *buf);

#endif
