/* Four forms behind one interface: numbers as they are, blocks of a codec with numbers behind them,
 * significant values, and values without zeros. The first two have lengths that follow from the
 * slice, so a message is checked by its length alone; the others are measured. */
#include "trial-runner/distributed/push_form.h"

#include <stdlib.h>
#include <string.h>

#include "trial-runner/collective/collective.h"
#include "trial-runner/distributed/significant.h"
#include "trial-runner/distributed/sparse_values.h"

as_status push_form_init(struct push_form *ret, const struct distributed_spec *spec,
                         const struct replica *r, size_t n, struct as_err *err)
{
    struct push_form f = {.n = n,
                          .warmup = spec->warmup_steps,
                          .n_params = r->n_params,
                          .sparse = spec->sparse_rows,
                          .significance = spec->significance};
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
    free(f->limits);
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
    if (f->sparse)
        return sparse_most(exact);
    return f->significance > 0 ? significant_most(exact) : e.bytes + exact * sizeof(float);
}

bool push_measure(const struct push_form *f, struct push_slice s, const void *in, size_t left,
                  size_t *ret_bytes)
{
    struct codec_extent e;
    if (f->sparse)
        return sparse_measure(in, left, split(f, s, &e), ret_bytes);
    if (f->significance > 0)
        return significant_measure(in, left, split(f, s, &e), ret_bytes);
    *ret_bytes = push_bytes(f, s);
    return *ret_bytes <= left;
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

/* The parameters among n numbers from `first` on. */
static size_t params_among(const struct push_form *f, size_t first, size_t n)
{
    size_t left = first < f->n_params ? f->n_params - first : 0;
    return left < n ? left : n;
}

/* Of a slice that begins at `first` and has n numbers. */
static size_t encode_significant(const struct push_form *f, size_t first, size_t n, const float *x,
                                 const float *before, float *after, void *out)
{
    size_t params = params_among(f, first, n), at = params > 0 ? first : 0;
    return significant_encode(x + first, before ? before + at : NULL, after ? after + at : NULL,
                              f->limits ? f->limits + at : NULL, params, n, out);
}

size_t push_encode_sum(const struct push_form *f, struct push_slice s, const float *sum, void *out)
{
    size_t first, n = push_slice_n(f, s.index, s.count, &first);
    if (f->sparse)
        return sparse_encode(sum, n, out);
    return significant_encode(sum, NULL, NULL, NULL, params_among(f, first, n), n, out);
}

size_t push_encode(const struct push_form *f, struct push_slice s, const float *x,
                   const float *before, float *after, void *out)
{
    struct codec_extent e;
    size_t exact = split(f, s, &e), at = e.first_value;
    const struct codec_slice slice = {s.index, s.count};
    if (f->sparse)
        return sparse_encode(x + at, exact, out);
    if (f->significance > 0)
        return encode_significant(f, at, exact, x, before, after, out);
    if (f->codec && !s.plain)
        codec_encode(f->codec, slice, x + at, before ? before + at : NULL,
                     after ? after + at : NULL, out);
    else if (after && after != before)
        memcpy(after + at, before + at, codec_extent(f->codec, slice).n_values * sizeof *after);
    memcpy((char *)out + e.bytes, x + at + e.n_values, exact * sizeof *x);
    return e.bytes + exact * sizeof *x;
}

as_status push_decode_add(const struct push_form *f, struct push_slice s, const void *in,
                          float *sum, struct as_err *err)
{
    struct codec_extent e;
    size_t exact = split(f, s, &e);
    const char *from = (const char *)in + e.bytes;
    as_status st = AS_OK;
    if (f->sparse)
        return as_fail(err, AS_E_INTERNAL, "sparse messages are read, and then added in the tree");
    if (f->significance > 0) {
        significant_add(in, exact, sum);
        return AS_OK;
    }
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

void push_read(const struct push_form *f, struct push_slice s, const void *in, float *ret)
{
    size_t first, n = push_slice_n(f, s.index, s.count, &first);
    if (f->sparse) {
        sparse_decode(in, n, ret);
        return;
    }
    memset(ret, 0, n * sizeof *ret);
    significant_add(in, n, ret);
}
