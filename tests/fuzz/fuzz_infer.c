/* Bodies of inference: the first byte says how much of the rest is JSON, in 255ths. What was
 * accepted must be consistent, and its memory within what was sent. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "serve/infer_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t sink;

static void check_input(const struct infer_input *in, size_t size)
{
    size_t n = 1;
    for (size_t i = 0; i < in->n_dims; i++)
        n *= in->shape[i];
    if (in->n != n || n == 0 || n > size || (in->type == TENSOR_BYTES) != (in->texts != NULL) ||
        !in->numbers == !in->texts)
        abort();
    for (size_t i = 0; i < n; i++) {
        if (in->numbers && isinf(in->numbers[i]))
            abort();
        for (size_t k = 0; in->texts && k < in->texts[i].len; k++)
            sink += (size_t)in->texts[i].s[k];
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct infer_request q;
    AS_AUTO(arena_done) struct arena arena = {0};
    if (size == 0)
        return 0;
    size_t len = size - 1, json = len * data[0] / 255;
    if (infer_request_parse((const char *)data + 1, len, json, &arena, &q, NULL) < 0)
        return 0;
    if (q.n_inputs == 0 || q.n_inputs > INFER_MAX_INPUTS || q.n_wishes > INFER_MAX_OUTPUTS)
        abort();
    for (size_t i = 0; i < q.n_inputs; i++)
        check_input(&q.inputs[i], size);
    return 0;
}
