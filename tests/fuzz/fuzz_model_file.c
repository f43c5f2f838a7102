/* Model files. An input that begins with "{" is a manifest: it is put into a file with the right
 * checksum, as mutations of a whole file rarely get past it. Anything else is a whole file. What is
 * read has members within their limits, and each says how rows are encoded; what a combination
 * computes with is finite, and each value of a column leads to its input. */
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

/* The members of input k, which begin at *at. */
static void check_input(const struct model_file *f, size_t k, size_t *at)
{
    const struct model_combine *c = model_file_combine(f);
    size_t first = 0, n = model_file_input(f, k, &first);
    double sum = 0;
    if (n == 0 || first != *at)
        abort();
    for (size_t i = first; i < first + n; i++) {
        const struct model_member *m = model_file_member(f, i);
        bool residual = c->sums[k] && i > first;
        if (residual && (m->info->task != DATASET_REGRESSION ||
                         m->info->n_outputs != model_file_data(f)->n_outputs))
            abort();
        if (m->fit->input != model_file_data(f)->input || !m->train || m->spec->epochs < 1 ||
            m->input != k || !(m->weight > 0))
            abort();
        sum += m->weight;
    }
    if (c->sums[k] ? model_file_member(f, first)->weight != 1 || !isfinite(sum)
                   : fabs(sum - 1) > 1e-5)
        abort();
    *at = first + n;
}

/* Each value is found as a row has it, and leads to an input. */
static void check_buckets(const struct model_file *f)
{
    const struct model_combine *c = model_file_combine(f);
    const struct dataset_info *info = model_file_data(f);
    AS_AUTO(as_freep) float *row = as_calloc(info->n_features, sizeof *row);
    if (!row)
        return;
    if (c->column >= info->n_features || c->other >= c->n_inputs ||
        model_combine_input(c, row) >= c->n_inputs)
        abort();
    for (size_t i = 0; i < c->n_buckets; i++) {
        const struct model_bucket *b = &c->buckets[i];
        if (b->input >= c->n_inputs || b->width > info->n_features - c->column)
            abort();
        memcpy(row + c->column, b->features, b->width * sizeof *row);
        if (model_combine_input(c, row) != b->input)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    char *bytes = NULL;
    size_t len = size, at = 0;
    if (size && data[0] == '{')
        bytes = file_of(data, size, &len);
    else if ((bytes = malloc(size ? size : 1)) != NULL && size)
        memcpy(bytes, data, size);
    if (!bytes || model_file_parse(bytes, len, &f, NULL) != AS_OK)
        return 0;
    size_t n = model_file_n_members(f);
    const struct model_combine *c = model_file_combine(f);
    if (n == 0 || n > MODEL_FILE_MAX_MEMBERS)
        abort();
    for (size_t k = 0; k < c->n_inputs; k++)
        check_input(f, k, &at);
    if (at != n ||
        ((c->kind == MODEL_MEAN || c->kind == MODEL_SUM) && !c->weights && c->n_inputs != 1))
        abort();
    for (size_t i = 0; c->weights && i < c->n_inputs; i++)
        if (!isfinite(c->weights[i]) || c->weights[i] == 0)
            abort();
    for (size_t i = 0; c->kind == MODEL_LINEAR && i < model_file_data(f)->n_outputs; i++)
        if (!isfinite(c->biases[i]))
            abort();
    if (c->kind == MODEL_BY)
        check_buckets(f);
    return 0;
}
