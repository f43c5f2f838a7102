/* In which form gradients go to the holders of a server's slices.
 *
 * Without a codec a slice is a part of the vector (coll_slice), as float32. With one it is a run of
 * the codec's blocks; what is behind the parameters (statistics, loss, wishes) belongs to the last
 * slice and travels exactly. What comes back from the holders is float32. With `significance`
 * slices are as without a codec, and a message has only the values that matter (significant.h),
 * also one that comes back: so its length is its own. With `rows: sparse` messages leave
 * out zeros, in both directions, and nothing is lost. Sender and holder each have a form of their
 * own, because a codec is used by one thread. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_PUSH_FORM_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_PUSH_FORM_H

#include "trial-runner/distributed/replica_codec.h"

struct push_form {
    struct codec *codec; /* owned; NULL: float32 */
    size_t n;            /* numbers of a vector */
    int64_t warmup;      /* steps that are not encoded */
    size_t n_params;     /* the first of them are parameters */
    bool sparse;         /* zeros do not travel (sparse_values.h) */
    double significance; /* 0: all values travel */
    float
        *limits; /* [n_params]: what is significant; set by the sender before it encodes. NULL: all
                    * that is not 0 */
};

/* Does a message's length depend on its values? */
static inline bool push_is_measured(const struct push_form *f)
{
    return f->significance > 0 || f->sparse;
}

/* Does each shard have a message of its own? Else a run's shards are added up first. */
static inline bool push_by_shard(const struct push_form *f)
{
    return f->codec || f->significance > 0;
}

/* For vectors of n >= r->n_params numbers. ret: push_form_done(). Errors of
 * replica_codec_create. */
AS_MUST_CHECK as_status push_form_init(struct push_form *ret, const struct distributed_spec *spec,
                                       const struct replica *r, size_t n, struct as_err *err);
void push_form_done(struct push_form *f);

/* A slice of `count`, of a vector that is encoded or, in the warm-up, not. */
struct push_slice {
    uint32_t index, count;
    bool plain;
};

/* The numbers of a slice: it begins at *ret_first. The same whether it is encoded or not. */
size_t push_slice_n(const struct push_form *f, uint32_t index, uint32_t count, size_t *ret_first);
/* Bytes of a message about it; with `significance` of the longest. */
size_t push_bytes(const struct push_form *f, struct push_slice s);
/* The longest one of `count` slices, plain if there is a warm-up. */
size_t push_bytes_most(const struct push_form *f, uint32_t count);

/* x: the whole vector. before, after: of codec_values() or, with `significance`, n_params, whole,
 * as in codec_encode; NULL: no feedback. A slice that is plain loses nothing: after = before.
 * Returns the bytes of the message. */
size_t push_encode(const struct push_form *f, struct push_slice s, const float *x,
                   const float *before, float *after, void *out);
/* The sum of a slice, whose first number is sum[0], as it comes back where messages are measured:
 * what is not 0. Returns the bytes. */
size_t push_encode_sum(const struct push_form *f, struct push_slice s, const float *sum, void *out);
/* Is there a message about the slice at the beginning of these `left` bytes? *ret_bytes: its
 * length. */
bool push_measure(const struct push_form *f, struct push_slice s, const void *in, size_t left,
                  size_t *ret_bytes);
/* sum, which begins at the slice, += the message at `in`, which was measured. AS_E_INVAL. */
AS_MUST_CHECK as_status push_decode_add(const struct push_form *f, struct push_slice s,
                                        const void *in, float *sum, struct as_err *err);

/* Where messages are measured: the numbers of the slice = the message, which was. */
void push_read(const struct push_form *f, struct push_slice s, const void *in, float *ret);

#endif
