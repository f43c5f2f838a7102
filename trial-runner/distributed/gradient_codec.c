/* The frame of a message, and what all codecs have in common.
 *
 * A message is a checksum of 4 bytes and the blocks of its slice. All of its sizes follow from the
 * tensors and the parameters, so nothing in it says how long something is, and a message of another
 * length is refused. The checksum begins from a number that stands for the codec, its parameters,
 * its tensors and the slice: a message about something else fails like a damaged one. Checksums are
 * no proof against forgery, so each codec also checks what its decoder relies on. */
#include "trial-runner/distributed/gradient_codec_priv.h"

#include <assert.h>
#include <string.h>

#include "base/cpu_clones.h"
#include "base/crc32c.h"

static const struct block_ops *const all_ops[] = {&block_fp16, &block_one_bit, &block_top_k};

void codec_free(struct codec *c)
{
    if (!c)
        return;
    low_rank_free(c->low_rank);
    blocks_done(&c->blocks);
    free(c->v);
    free(c->picks);
    free(c);
}

static uint32_t seed_of(const char *name, double fraction, const struct codec_tensor *tensors,
                        size_t n_tensors)
{
    uint32_t crc = crc32c(0, name, strlen(name));
    crc = crc32c(crc, &fraction, sizeof fraction);
    return crc32c(crc, tensors, n_tensors * sizeof *tensors);
}

uint32_t codec_seed(const struct codec *c, struct codec_slice slice)
{
    return crc32c(c->seed, &slice, sizeof slice);
}

static as_status create_blocks(struct codec *c, const struct codec_opts *opts,
                               const struct codec_tensor *tensors, size_t n_tensors,
                               struct as_err *err)
{
    as_status st = blocks_plan(tensors, n_tensors, &c->ops->rule, &c->blocks, err);
    if (st < 0)
        return st;
    c->fraction = c->ops == &block_top_k ? opts->fraction : 0;
    c->seed = seed_of(opts->name, c->fraction, tensors, n_tensors);
    size_t at = 0;
    for (size_t i = 0; i <= c->blocks.n; i++) {
        struct block *b = &c->blocks.of[i];
        b->at = at;
        at += b->n ? c->ops->bytes(c, b->n) : 0;
    }
    c->v = as_calloc(c->blocks.largest, sizeof *c->v);
    c->picks = as_calloc(c->ops == &block_top_k ? c->blocks.largest : 0, sizeof *c->picks);
    return c->v && c->picks ? AS_OK : as_fail_nomem(err);
}

static as_status check_opts(const struct codec_opts *opts, const struct block_ops *ops,
                            struct as_err *err)
{
    if (!ops && strcmp(opts->name, "powersgd") != 0)
        return as_fail(err, AS_E_INVAL,
                       "codec is \"%s\"; expected fp16, one_bit, top_k or powersgd", opts->name);
    if (ops == &block_top_k && !(opts->fraction > 0 && opts->fraction <= 1))
        return as_fail(err, AS_E_INVAL, "fraction is %g; expected above 0 and at most 1",
                       opts->fraction);
    if (ops && opts->half)
        return as_fail(err, AS_E_INVAL, "half is for the factors of powersgd; found with %s",
                       opts->name);
    if (!ops && (opts->rank < 1 || opts->rank > CODEC_RANK_MAX))
        return as_fail(err, AS_E_INVAL, "rank is %u; expected 1 to %d", (unsigned)opts->rank,
                       CODEC_RANK_MAX);
    return AS_OK;
}

as_status codec_create(const struct codec_opts *opts, const struct codec_tensor *tensors,
                       size_t n_tensors, struct codec **ret, struct as_err *err)
{
    AS_AUTO(codec_freep) struct codec *c = as_calloc(1, sizeof *c);
    if (!c)
        return as_fail_nomem(err);
    for (size_t i = 0; i < AS_ARRAY_LEN(all_ops); i++)
        if (strcmp(all_ops[i]->name, opts->name) == 0)
            c->ops = all_ops[i];
    as_status st = check_opts(opts, c->ops, err);
    if (st == AS_OK)
        st = c->ops ? create_blocks(c, opts, tensors, n_tensors, err)
                    : low_rank_create(opts, tensors, n_tensors, &c->low_rank, err);
    if (st == AS_OK)
        *ret = as_steal(c);
    return st;
}

const char *codec_name(const struct codec *c)
{
    return c->ops ? c->ops->name : "powersgd";
}

size_t codec_values(const struct codec *c)
{
    return c->low_rank ? low_rank_values(c->low_rank) : c->blocks.values;
}

bool codec_sums(const struct codec *c)
{
    return c->low_rank != NULL;
}

struct codec_extent codec_extent(const struct codec *c, struct codec_slice slice)
{
    size_t first, end;
    assert(c->ops && slice.index < slice.count);
    blocks_slice(&c->blocks, slice, &first, &end);
    const struct block *from = &c->blocks.of[first], *to = &c->blocks.of[end];
    return (struct codec_extent){.first_value = from->first,
                                 .n_values = to->first - from->first,
                                 .bytes = CODEC_HEAD_BYTES + to->at - from->at};
}

/* v = x + before, or x itself. */
CPU_CLONES static const float *with_residual(struct codec *c, const float *x, const float *before,
                                             size_t n)
{
    float *v = c->v;
    if (!before)
        return x;
    for (size_t i = 0; i < n; i++)
        v[i] = x[i] + before[i];
    return v;
}

void codec_encode(struct codec *c, struct codec_slice slice, const float *x, const float *before,
                  float *after, void *out)
{
    size_t first, end;
    assert(c->ops && slice.index < slice.count);
    blocks_slice(&c->blocks, slice, &first, &end);
    const struct block *of = c->blocks.of;
    uint8_t *body = (uint8_t *)out + CODEC_HEAD_BYTES;
    for (size_t b = first; b < end; b++) {
        size_t at = of[b].first - of[first].first;
        const float *v = with_residual(c, x + at, before ? before + at : NULL, of[b].n);
        c->ops->encode(c, v, of[b].n, body + (of[b].at - of[first].at), after ? after + at : NULL);
    }
    uint32_t crc = crc32c(codec_seed(c, slice), body, of[end].at - of[first].at);
    memcpy(out, &crc, sizeof crc);
}

static as_status check_message(const struct codec *c, struct codec_slice slice, size_t first,
                               size_t end, const uint8_t *in, size_t bytes, struct as_err *err)
{
    const struct block *of = c->blocks.of;
    size_t expected = CODEC_HEAD_BYTES + of[end].at - of[first].at;
    uint32_t crc;
    if (bytes != expected)
        return as_fail(err, AS_E_INVAL, "a %s message has %zu bytes; expected %zu", c->ops->name,
                       bytes, expected);
    memcpy(&crc, in, sizeof crc);
    in += CODEC_HEAD_BYTES;
    if (crc != crc32c(codec_seed(c, slice), in, of[end].at - of[first].at))
        return as_fail(err, AS_E_INVAL,
                       "a %s message is damaged, or about other tensors, parameters or another "
                       "slice than %u of %u",
                       c->ops->name, (unsigned)slice.index, (unsigned)slice.count);
    for (size_t b = first; b < end; b++) {
        const char *wrong = c->ops->check(c, in + (of[b].at - of[first].at), of[b].n);
        if (wrong)
            return as_fail(err, AS_E_INVAL, "block %zu of a %s message: %s", b, c->ops->name,
                           wrong);
    }
    return AS_OK;
}

as_status codec_decode_add(struct codec *c, struct codec_slice slice, const void *in, size_t bytes,
                           float *sum, struct as_err *err)
{
    size_t first, end;
    assert(c->ops && slice.index < slice.count);
    blocks_slice(&c->blocks, slice, &first, &end);
    as_status st = check_message(c, slice, first, end, in, bytes, err);
    if (st < 0)
        return st;
    const struct block *of = c->blocks.of;
    const uint8_t *body = (const uint8_t *)in + CODEC_HEAD_BYTES;
    for (size_t b = first; b < end; b++)
        c->ops->decode_add(c, body + (of[b].at - of[first].at), of[b].n,
                           sum + (of[b].first - of[first].first));
    return AS_OK;
}
