#include "trial-runner/distributed/push_form.h"

#include <string.h>

#include "trial-runner/collective/collective.h"

as_status push_form_init(struct push_form *ret, const struct distributed_spec *spec,
                         const struct replica *r, size_t n, struct as_err *err)
{
    struct push_form f = {.n = n, .warmup = spec->warmup_steps};
    if (spec->codec != DISTRIBUTED_PLAIN) {
        as_status st = replica_codec_create(spec, r, &f.codec, err);
        if (st < 0)
            return st;
    }
    *ret = f;
    return AS_OK;
}

void push_form_done(struct push_form *f)
{
    codec_free(f->codec);
    *f = (struct push_form){0};
}

size_t push_slice_n(const struct push_form *f, uint32_t index, uint32_t count, size_t *ret_first)
{
    size_t end;
    if (!f->codec) {
        coll_slice(f->n, (int32_t)count, (int32_t)index, ret_first, &end);
        return end - *ret_first;
    }
    struct codec_extent e = codec_extent(f->codec, (struct codec_slice){index, count});
    *ret_first = e.first_value;
    return e.n_values + (index == count - 1 ? f->n - codec_values(f->codec) : 0);
}

/* What is encoded of a slice, and how many numbers follow it. */
static size_t split(const struct push_form *f, struct push_slice s, struct codec_extent *ret)
{
    size_t first, n = push_slice_n(f, s.index, s.count, &first);
    *ret = (struct codec_extent){.first_value = first};
    if (f->codec && !s.plain)
        *ret = codec_extent(f->codec, (struct codec_slice){s.index, s.count});
    return n - ret->n_values;
}

size_t push_bytes(const struct push_form *f, struct push_slice s)
{
    struct codec_extent e;
    size_t exact = split(f, s, &e);
    return e.bytes + exact * sizeof(float);
}

size_t push_bytes_most(const struct push_form *f, uint32_t count)
{
    size_t most = 0;
    for (uint32_t k = 0; k < count; k++) {
        size_t n = push_bytes(f, (struct push_slice){k, count, !f->codec || f->warmup > 0});
        most = n > most ? n : most;
    }
    return most;
}

void push_encode(const struct push_form *f, struct push_slice s, const float *x,
                 const float *before, float *after, void *out)
{
    struct codec_extent e;
    size_t exact = split(f, s, &e), at = e.first_value;
    const struct codec_slice slice = {s.index, s.count};
    if (f->codec && !s.plain)
        codec_encode(f->codec, slice, x + at, before ? before + at : NULL,
                     after ? after + at : NULL, out);
    else if (after && after != before)
        memcpy(after + at, before + at, codec_extent(f->codec, slice).n_values * sizeof *after);
    memcpy((char *)out + e.bytes, x + at + e.n_values, exact * sizeof *x);
}

as_status push_decode_add(const struct push_form *f, struct push_slice s, const void *in,
                          float *sum, struct as_err *err)
{
    struct codec_extent e;
    size_t exact = split(f, s, &e);
    const char *from = (const char *)in + e.bytes;
    as_status st = AS_OK;
    if (f->codec && !s.plain)
        st = codec_decode_add(f->codec, (struct codec_slice){s.index, s.count}, in, e.bytes, sum,
                              err);
    for (size_t i = 0; st == AS_OK && i < exact; i++) {
        float x;
        memcpy(&x, from + i * sizeof x, sizeof x);
        sum[e.n_values + i] += x;
    }
    return st;
}
