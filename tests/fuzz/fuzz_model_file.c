/* Model files. An input that begins with "{" is a manifest: it is put into a file with the right
 * checksum, as mutations of a whole file rarely get past it. Anything else is a whole file. What is
 * read has members within their limits, and each says how rows are encoded; what a linear combination
 * or a sum computes with is finite. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/json.h"
#include "base/str.h"
#include "model/file/model_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A file with this manifest and no tensors; NULL if the manifest cannot be a JSON string. */
static char *file_of(const uint8_t *data, size_t size, size_t *ret_len)
{
    AS_AUTO(str_done) struct str b = {0};
    JSON_AUTO text = json_stringn((const char *)data, size);
    JSON_AUTO header = text ? json_pack("{s:{s:s, s:s, s:O, s:s}}", "__metadata__", "format",
                                        MODEL_FILE_FORMAT, "version", MODEL_FILE_VERSION, "model",
                                        text, SAFETENSORS_CHECKSUM, "00000000")
                            : NULL;
    if (!header)
        return NULL;
    uint64_t n = 0;
    str_add(&b, (const char *)&n, sizeof n);
    json_format_to(&b, header);
    if (b.failed)
        return NULL;
    n = b.len - sizeof n;
    memcpy(b.s, &n, sizeof n);
    char digits[9], *at = memmem(b.s, b.len, "crc32c\":\"00000000", 17);
    (void)snprintf(digits, sizeof digits, "%08x", crc32c(0, b.s, b.len));
    if (at)
        memcpy(at + 9, digits, 8);
    *ret_len = b.len;
    return str_take(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    char *bytes = NULL;
    size_t len = size;
    if (size && data[0] == '{')
        bytes = file_of(data, size, &len);
    else if ((bytes = malloc(size ? size : 1)) != NULL && size)
        memcpy(bytes, data, size);
    if (!bytes || model_file_parse(bytes, len, &f, NULL) != AS_OK)
        return 0;
    size_t n = model_file_n_members(f);
    const struct model_combine *c = model_file_combine(f);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const struct model_member *m = model_file_member(f, i);
        bool residual = c->kind == MODEL_SUM && i > 0;
        if (residual && (m->info->task != DATASET_REGRESSION ||
                         m->info->n_outputs != model_file_data(f)->n_outputs))
            abort();
        if (m->fit->input != model_file_data(f)->input || !m->train || m->spec->epochs < 1 ||
            m->input >= c->n_inputs || !(m->weight > 0))
            abort();
        sum += m->weight;
    }
    if (n == 0 || n > MODEL_FILE_MAX_MEMBERS || !isfinite(sum))
        abort();
    if (c->kind == MODEL_SUM ? model_file_member(f, 0)->weight != 1
                             : fabs(sum - (double)c->n_inputs) > 1e-5 * (double)c->n_inputs)
        abort();
    for (size_t i = 0; c->kind == MODEL_LINEAR && i < c->n_inputs; i++)
        if (!isfinite(c->weights[i]) || c->weights[i] == 0)
            abort();
    for (size_t i = 0; c->kind == MODEL_LINEAR && i < model_file_data(f)->n_outputs; i++)
        if (!isfinite(c->biases[i]))
            abort();
    return 0;
}
