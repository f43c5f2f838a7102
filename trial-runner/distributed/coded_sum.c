/* Sums of encoded vectors.
 *
 * With messages, a sum is two exchanges, each about as large as one half of a ring's: every rank
 * sends slice j of its shards to rank j, and rank j sends the sum of slice j to all. A slice is a
 * run of the codec's blocks, and blocks do not depend on the number of ranks; the shards are added
 * in their order. So the result does not depend on it either. All ranks decode the encoded sum,
 * also the one that has encoded it: so all have the same bits. */
#include "trial-runner/distributed/coded_sum.h"

#include <stdlib.h>
#include <string.h>

enum { TAG_SHARDS = 16, TAG_SUMS };

void coded_sum_done(struct coded_sum *s)
{
    struct coded_buffer *rooms[] = {&s->out, &s->in, &s->slice, &s->left, &s->right};
    for (size_t i = 0; i < AS_ARRAY_LEN(rooms); i++)
        free(rooms[i]->bytes);
    codec_free(s->codec);
    *s = (struct coded_sum){0};
}

/* Room for no bytes is no NULL: a rank whose slice is empty adds and copies nothing, from
 * somewhere. */
as_status coded_buffer_make(struct coded_buffer *r, size_t size, struct as_err *err)
{
    if (r->bytes && size <= r->size)
        return AS_OK;
    free(r->bytes);
    r->size = 0;
    r->bytes = as_calloc(size, 1);
    if (!r->bytes)
        return as_fail_nomem(err);
    r->size = size;
    return AS_OK;
}

static struct codec_extent extent_of(const struct coded_sum *s, const struct coll *c, int32_t rank)
{
    return codec_extent(s->codec, (struct codec_slice){(uint32_t)rank, (uint32_t)coll_size(c)});
}

/* ---- messages ---- */

/* The messages of this rank's shards in `out`: for each rank its slice of one shard after
 * another. */
static as_status encode_shards(struct coded_sum *s, const struct coll *c,
                               const struct coded_terms *t, struct as_err *err)
{
    struct shard_run run = t->runs[coll_rank(c)];
    char *to = s->out.bytes;
    for (int32_t r = 0; r < coll_size(c); r++) {
        struct codec_slice slice = {(uint32_t)r, (uint32_t)coll_size(c)};
        struct codec_extent e = codec_extent(s->codec, slice);
        for (uint32_t i = 0; i < run.count; i++, to += e.bytes) {
            const float *before = NULL;
            float *after = NULL;
            if (s->residuals) {
                as_status st = residuals_after(s->residuals, run.first + i, &after, err);
                if (st < 0)
                    return st;
                before = residuals_before(s->residuals, run.first + i) + e.first_value;
                after += e.first_value;
            }
            codec_encode(s->codec, slice, t->partials[i] + e.first_value, before, after, to);
        }
    }
    return AS_OK;
}

/* Slice r of this rank's shards goes to rank r; this rank's slice of all others' comes here, in the
 * order of the shards. */
static as_status exchange_shards(struct coded_sum *s, struct coll *c, const struct coded_terms *t,
                                 struct as_err *err)
{
    struct coll_id id = {.step = t->step, .tag = TAG_SHARDS, .what = "encoded gradients"};
    int32_t n = coll_size(c), own = coll_rank(c);
    size_t mine = extent_of(s, c, own).bytes, n_sent = 0, n_received = 0;
    char *from = s->out.bytes, *to = s->in.bytes;
    AS_AUTO(as_freep) struct coll_message *m = as_calloc(2 * (size_t)n, sizeof *m);
    if (!m)
        return as_fail_nomem(err);
    struct coll_message *received = m + n;
    for (int32_t r = 0; r < n; r++) {
        size_t theirs = t->runs[own].count * extent_of(s, c, r).bytes;
        size_t ours = t->runs[r].count * mine;
        if (r == own)
            memcpy(to, from, ours);
        if (r != own && theirs > 0)
            m[n_sent++] = (struct coll_message){.peer = r, .from = from, .bytes = theirs};
        if (r != own && ours > 0)
            received[n_received++] = (struct coll_message){.peer = r, .to = to, .bytes = ours};
        from += theirs;
        to += ours;
    }
    return coll_exchange(c, id, m, n_sent, received, n_received, err);
}

/* Adds up this rank's slice of all shards, and encodes the sum to the start of `out`. */
static as_status sum_slice(struct coded_sum *s, const struct coll *c, const struct coded_terms *t,
                           struct as_err *err)
{
    struct codec_slice slice = {(uint32_t)coll_rank(c), (uint32_t)coll_size(c)};
    struct codec_extent e = codec_extent(s->codec, slice);
    float *sum = (float *)(void *)s->slice.bytes;
    struct residuals *r = s->residuals;
    memset(sum, 0, e.n_values * sizeof *sum);
    for (uint32_t i = 0; i < t->shards; i++) {
        as_status st =
            codec_decode_add(s->codec, slice, s->in.bytes + i * e.bytes, e.bytes, sum, err);
        if (st < 0)
            return as_err_prefix(err, st, "shard %u of step %llu", (unsigned)i,
                                 (unsigned long long)t->step);
    }
    if (r)
        r->sum_written = true;
    codec_encode(s->codec, slice, sum, r ? r->of_sum + e.first_value : NULL,
                 r ? r->sum_after + e.first_value : NULL, s->out.bytes);
    return AS_OK;
}

static as_status exchange_sums(struct coded_sum *s, struct coll *c, const struct coded_terms *t,
                               struct as_err *err)
{
    struct coll_id id = {.step = t->step, .tag = TAG_SUMS, .what = "encoded sums"};
    int32_t n = coll_size(c), own = coll_rank(c);
    size_t mine = extent_of(s, c, own).bytes, k = 0;
    char *to = s->in.bytes;
    AS_AUTO(as_freep) struct coll_message *m = as_calloc(2 * (size_t)n, sizeof *m);
    if (!m)
        return as_fail_nomem(err);
    for (int32_t r = 0; r < n; r++) {
        size_t theirs = extent_of(s, c, r).bytes;
        if (r == own) {
            memcpy(to, s->out.bytes, mine);
        } else {
            m[k] = (struct coll_message){.peer = r, .from = s->out.bytes, .bytes = mine};
            m[n + (int32_t)k++] = (struct coll_message){.peer = r, .to = to, .bytes = theirs};
        }
        to += theirs;
    }
    return coll_exchange(c, id, m, k, m + n, k, err);
}

static as_status decode_sums(struct coded_sum *s, const struct coll *c, float *ret,
                             struct as_err *err)
{
    const char *from = s->in.bytes;
    memset(ret, 0, codec_values(s->codec) * sizeof *ret);
    for (int32_t r = 0; r < coll_size(c); r++) {
        struct codec_slice slice = {(uint32_t)r, (uint32_t)coll_size(c)};
        struct codec_extent e = codec_extent(s->codec, slice);
        as_status st = codec_decode_add(s->codec, slice, from, e.bytes, ret + e.first_value, err);
        if (st < 0)
            return as_err_prefix(err, st, "the sum of rank %d", (int)r);
        from += e.bytes;
    }
    return AS_OK;
}

as_status coded_sum_messages(struct coded_sum *s, struct coll *c, const struct coded_terms *t,
                             float *ret, struct as_err *err)
{
    struct codec_extent mine = extent_of(s, c, coll_rank(c));
    size_t all = 0;
    for (int32_t r = 0; r < coll_size(c); r++)
        all += extent_of(s, c, r).bytes;
    size_t out = all * t->runs[coll_rank(c)].count, in = mine.bytes * t->shards;
    as_status st;
    if ((st = coded_buffer_make(&s->out, out > mine.bytes ? out : mine.bytes, err)) < 0 ||
        (st = coded_buffer_make(&s->in, in > all ? in : all, err)) < 0 ||
        (st = coded_buffer_make(&s->slice, mine.n_values * sizeof(float), err)) < 0 ||
        (st = encode_shards(s, c, t, err)) < 0 || (st = exchange_shards(s, c, t, err)) < 0 ||
        (st = sum_slice(s, c, t, err)) < 0 || (st = exchange_sums(s, c, t, err)) < 0)
        return st;
    return decode_sums(s, c, ret, err);
}
