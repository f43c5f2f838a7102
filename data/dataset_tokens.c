/* Data sets of tokens, in two forms. Text (gzip too): every byte is a token. Files of token numbers
 * in the format of llm.c (github.com/karpathy/llm.c, dev/data/data_common.py): 256 int32, of which
 * the first three are 20240520, 1 and the number of tokens, then that many uint16; all
 * little-endian.
 *
 * Both are read in pieces, so that inspection needs little memory. Inspection finds the largest
 * token, which decides the vocabulary if no option states it. Loading checks every token again: an
 * index past the vocabulary would read outside an embedding. */
#include "data/dataset_tokens.h"

#include <string.h>

#include "data/dataset_alloc.h"
#include "data/formats/source.h"

#define MAGIC UINT32_C(20240520)
#define VERSION UINT32_C(1)
#define HEADER_BYTES ((size_t)1024)
#define PIECE ((size_t)65536)
#define BYTE_VOCAB ((size_t)256)

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tokens are copied without conversion");

struct reader {
    struct source *source;
    size_t size; /* bytes of a token */
    unsigned char buf[PIECE];
};

static void reader_free(struct reader *r)
{
    if (!r)
        return;
    source_free(r->source);
    free(r);
}
AS_DEFINE_FREEP(struct reader, reader_free)

static as_status read_header(struct reader *r, struct as_err *err)
{
    uint32_t head[3];
    const char *path = source_path(r->source);
    as_status st = source_read_exact(r->source, r->buf, HEADER_BYTES, "its header", err);
    if (st != AS_OK)
        return st;
    memcpy(head, r->buf, sizeof head);
    if (head[0] != MAGIC || head[1] != VERSION)
        return as_fail(err, AS_E_INVAL,
                       "%.200s starts with %u and %u, expected %u and version %u (a file of uint16 "
                       "without a header is read with the option raw)",
                       path, head[0], head[1], MAGIC, VERSION);
    uint64_t there = (source_size(r->source) - HEADER_BYTES) / 2;
    if ((source_size(r->source) - HEADER_BYTES) % 2 || there != head[2])
        return as_fail(err, AS_E_INVAL, "%.200s holds %llu tokens, its header says %u", path,
                       (unsigned long long)there, head[2]);
    return AS_OK;
}

static as_status open_reader(const char *path, dataset_format format, bool raw, struct reader **ret,
                             struct as_err *err)
{
    AS_AUTO(reader_freep) struct reader *r = as_calloc(1, sizeof *r);
    if (!r)
        return as_fail_nomem(err);
    r->size = format == DATASET_TEXT ? 1 : 2;
    as_status st = source_open(path, format == DATASET_TEXT, &r->source, err);
    if (st != AS_OK)
        return st;
    if (format == DATASET_TOKENS && !raw)
        st = read_header(r, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(r);
    return AS_OK;
}

/* Up to PIECE / size tokens; 0 at the end. */
static as_status next_tokens(struct reader *r, int32_t *out, size_t *ret_n, struct as_err *err)
{
    size_t len = 0;
    as_status st = source_read(r->source, r->buf, PIECE, &len, err);
    if (st != AS_OK)
        return st;
    if (len % r->size)
        return as_fail(err, AS_E_INVAL, "%.200s ends in half a token", source_path(r->source));
    for (size_t i = 0; i < len / r->size; i++) {
        uint16_t v = r->buf[i];
        if (r->size == 2)
            memcpy(&v, r->buf + 2 * i, sizeof v);
        out[i] = v;
    }
    *ret_n = len / r->size;
    return AS_OK;
}

/* Read all tokens into `out`, which has room for `max`; NULL: only count them. It stops after the
 * piece in which there are more than `max`. */
static as_status read_all(struct reader *r, int32_t *out, size_t max, size_t *ret_n,
                          int32_t *ret_largest, struct as_err *err)
{
    AS_AUTO(as_freep) int32_t *piece = as_calloc(PIECE, sizeof *piece);
    size_t n = 0, got = 1;
    if (!piece)
        return as_fail_nomem(err);
    *ret_largest = 0;
    while (got && n <= max) {
        as_status st = next_tokens(r, piece, &got, err);
        if (st != AS_OK)
            return st;
        for (size_t i = 0; i < got; i++)
            *ret_largest = piece[i] > *ret_largest ? piece[i] : *ret_largest;
        if (out && got <= max - n)
            memcpy(out + n, piece, got * sizeof *piece);
        n += got;
    }
    *ret_n = n;
    return AS_OK;
}

static as_status check_vocab(int32_t largest, size_t vocab, struct as_err *err)
{
    return (size_t)largest < vocab
               ? AS_OK
               : as_fail(err, AS_E_INVAL,
                         "found the token %d, expected less than %zu, the vocabulary", largest,
                         vocab);
}

as_status dataset_tokens_inspect(const struct dataset_paths *paths, const char *target,
                                 dataset_task task, struct dataset_info *info, struct as_err *err)
{
    AS_AUTO(reader_freep) struct reader *r = NULL;
    int32_t largest = 0;
    (void)target;
    if (task != DATASET_TASK_AUTO && task != DATASET_LANGUAGE_MODELING)
        return as_fail(err, AS_E_INVAL, "text is for language_modeling, the task says %s",
                       dataset_task_names[task]);
    as_status st = open_reader(paths->table, info->format, info->options.raw, &r, err);
    if (st != AS_OK)
        return st;
    st = read_all(r, NULL, DATASET_MAX_ROWS, &info->n_rows, &largest, err);
    if (st != AS_OK)
        return st;
    if (info->n_rows > DATASET_MAX_ROWS)
        return as_fail(err, AS_E_TOO_LARGE, "more than %zu tokens", DATASET_MAX_ROWS);
    if (info->n_rows < 2)
        return as_fail(err, AS_E_INVAL, "%.200s holds %zu tokens, expected 2 or more", paths->table,
                       info->n_rows);
    size_t least = largest > 1 ? (size_t)largest + 1 : 2;
    info->task = DATASET_LANGUAGE_MODELING;
    info->input = DATASET_TOKEN_TEXT;
    info->n_features = 1;
    info->n_outputs = info->format == DATASET_TEXT ? BYTE_VOCAB
                      : info->options.vocab        ? info->options.vocab
                                                   : least;
    return check_vocab(largest, info->n_outputs, err);
}

as_status dataset_tokens_load(const struct dataset_paths *paths, const struct dataset_info *info,
                              struct dataset *ret, struct as_err *err)
{
    AS_AUTO(reader_freep) struct reader *r = NULL;
    size_t n = 0;
    int32_t largest = 0;
    as_status st = open_reader(paths->table, info->format, info->options.raw, &r, err);
    if (st != AS_OK)
        return st;
    st = dataset_alloc(info, false, ret, err);
    if (st != AS_OK)
        return st;
    st = read_all(r, ret->tokens, info->n_rows, &n, &largest, err);
    if (st != AS_OK)
        return st;
    st = dataset_check_match(info, n, 1, err);
    if (st != AS_OK)
        return st;
    return check_vocab(largest, info->n_outputs, err);
}

as_status dataset_tokens_count(const struct dataset_paths *paths, const struct dataset_info *info,
                               size_t max, size_t *counts, size_t *ret_n, struct as_err *err)
{
    AS_AUTO(reader_freep) struct reader *r = NULL;
    AS_AUTO(as_freep) int32_t *piece = as_calloc(PIECE, sizeof *piece);
    size_t n = 0, got = 1;
    as_status st = piece ? AS_OK : as_fail_nomem(err);
    if (st == AS_OK)
        st = open_reader(paths->table, info->format, info->options.raw, &r, err);
    while (st == AS_OK && got && n < max) {
        st = next_tokens(r, piece, &got, err);
        for (size_t i = 0; st == AS_OK && i < got && n < max; i++, n++) {
            st = check_vocab(piece[i], info->n_outputs, err);
            counts[st == AS_OK ? piece[i] : 0]++;
        }
    }
    *ret_n = n;
    return st;
}
