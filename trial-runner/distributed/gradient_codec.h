/* In which form numbers travel between ranks: fewer bytes than float32, and what a message loses is
 * kept for the next one (error feedback).
 *
 *   name      numbers per float32   encoded values     source
 *   fp16      2                     half precision     IEEE 754-2019, binary16; one power of two
 *                                                      per block
 *   one_bit   28 or more            a sign, two means  Seide, Fu, Droppo, Li, Yu: 1-Bit Stochastic
 *                                   per block          Gradient Descent, Interspeech 2014
 *   top_k     2 / (3 fraction)      the largest        Aji, Heafield: Sparse Communication for
 *                                                      Distributed Gradient Descent, EMNLP 2017;
 *                                                      Lin et al.: Deep Gradient Compression, 2018
 *   powersgd  rows cols             two thin factors   Vogels, Karimireddy, Jaggi: PowerSGD,
 *             / (r (rows + cols))                      NeurIPS 2019
 *
 * There are two kinds. Messages of `fp16`, `one_bit` and `top_k` are bytes that only the receiver
 * can add up (codec_encode, codec_decode_add). What `powersgd` sends are float32 numbers that any
 * all-reduce can sum, in two phases (codec_left to codec_right_summed). codec_sums() says which.
 *
 * Error feedback: v = x + before is encoded, and after = v - what the message decodes to. The
 * caller owns the residuals; `before` is not changed unless it is also `after`, so a message can be
 * encoded again after a loss. Without feedback (NULL, NULL) the loss of each message is final.
 *
 * All functions are deterministic: same input, same bits, on any processor, and a message does not
 * depend on the number of ranks. Numbers travel in the byte order of the machine (little-endian).
 * Values that are not finite are allowed and arrive as values that are not finite; residuals are
 * then undefined. A codec is used by one thread at a time. Nothing allocates after codec_create.
 *
 * Not here: momentum correction and warm-up of Deep Gradient Compression. They belong to the
 * optimizer's side of the exchange; top_k is plain selection with error feedback. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_GRADIENT_CODEC_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_GRADIENT_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

#define CODEC_RANK_MAX 64

/* A matrix, row-major; a vector has one row or one column. */
struct codec_tensor {
    size_t rows, cols;
};

struct codec_opts {
    const char *name; /* fp16, one_bit, top_k, powersgd; borrowed for the call */
    double fraction;  /* top_k: which share of the values is sent, above 0, at most 1 */
    uint32_t rank;    /* powersgd: 1 to CODEC_RANK_MAX */
    bool half;        /* powersgd: its factors travel in half precision */
};

struct codec;

/* A codec for these tensors, whose values follow each other in this order.
 *   opts, tensors   borrowed; all ranks must give equal ones
 *   ret             owned by the caller, free with codec_free(); untouched on failure
 * AS_E_INVAL      an unknown name, or a parameter out of its range
 * AS_E_TOO_LARGE  more values than memory can hold
 * AS_E_NOMEM */
AS_MUST_CHECK as_status codec_create(const struct codec_opts *opts,
                                     const struct codec_tensor *tensors, size_t n_tensors,
                                     struct codec **ret, struct as_err *err);
void codec_free(struct codec *c);
AS_DEFINE_FREEP(struct codec, codec_free)

const char *codec_name(const struct codec *c);
size_t codec_values(const struct codec *c); /* of all tensors; a residual has as many */

/* true: powersgd, whose phases yield float32 numbers to be summed (codec_left and so on).
 * false: messages (codec_encode, codec_decode_add). */
bool codec_sums(const struct codec *c);

/* ---- fp16, one_bit, top_k: messages ----
 *
 * Values are encoded in blocks that depend on the tensors alone. A slice is a run of whole blocks,
 * so that a rank can send slice j to rank j, which adds up slice j of all ranks and sends the sum
 * on, encoded with a residual of its own. */

/* Slice `index` of `count` that have about equally many bytes. */
struct codec_slice {
    uint32_t index, count; /* index < count; {0, 1} is the whole */
};

/* What a slice covers. */
struct codec_extent {
    size_t first_value, n_values; /* n_values may be 0 */
    size_t bytes;                 /* of each message about it: always the same */
};

struct codec_extent codec_extent(const struct codec *c, struct codec_slice slice);

/* Encode a slice. x, before and after point at the slice's first value and have n_values.
 *   before   what earlier messages lost; NULL: nothing
 *   after    what this one and the earlier ones lost; may be `before`, not x; NULL: not wanted
 *   out      extent.bytes
 * after = (x + before) - decoded, each operation rounded once to float32; for fp16 and top_k the
 * subtraction is exact. one_bit needs |x + before| below 1e34. */
void codec_encode(struct codec *c, struct codec_slice slice, const float *x, const float *before,
                  float *after, void *out);

/* sum += the decoded values, from the slice's first one on. `in` may come from anyone.
 * AS_E_INVAL: the bytes are no message about this slice by a codec with equal parameters and
 * tensors; sum is untouched. */
AS_MUST_CHECK as_status codec_decode_add(struct codec *c, struct codec_slice slice, const void *in,
                                         size_t bytes, float *sum, struct as_err *err);

/* ---- powersgd: two sums ----
 *
 *   each rank        codec_left(x, before, v, own)   v = x + before; own P = M Q; vectors as they
 *                    are
 *   all-reduce       codec_left_n() numbers
 *   each rank        codec_left_summed(sum)          an orthonormal basis of P's columns
 *   each rank        codec_right(v, own)             own Q = M' P
 *   each rank        codec_factors_lost(own P, own Q, v)   v = M - P Q'
 *   all-reduce       codec_right_n() numbers
 *   each rank        codec_right_summed(sum, ret)    ret = P Q'; Q is kept for the next step
 *
 * M = v, matrix by matrix. A rank with several contributions calls codec_left, codec_right and
 * codec_factors_lost for each, with a residual for each. Until codec_right_summed all can be
 * repeated from codec_left on, also in another world. A matrix for which two factors would not be
 * smaller travels whole, as vectors do.
 *
 * With `half` the sums are made of messages: codec_left_halves and codec_right_halves encode the
 * numbers of a factor (fp16). Then codec_factors_lost is given what the messages decode to, so that
 * the residual has what halving lost, too. */

size_t codec_left_n(const struct codec *c);
size_t codec_right_n(const struct codec *c);
/* Codecs for codec_left_n() and codec_right_n() numbers; views of c. NULL without `half`. */
struct codec *codec_left_halves(struct codec *c);
struct codec *codec_right_halves(struct codec *c);

/* out = this contribution to the first sum.
 *   x, before   codec_values(); before may be NULL
 *   v           x + before; may be `before`; NULL: not wanted */
void codec_left(struct codec *c, const float *x, const float *before, float *v, float *out);

/* The first sum is complete; borrowed. */
void codec_left_summed(struct codec *c, const float *sum);

/* out = this contribution to the second sum. v: x + before. */
void codec_right(struct codec *c, const float *v, float *out);

/* v -= what the contribution was sent as: the residual. left, right: its factors. */
void codec_factors_lost(struct codec *c, const float *left, const float *right, float *v);

/* The second sum is complete: ret = the decoded sum of all contributions, codec_values(). */
void codec_right_summed(struct codec *c, const float *sum, float *ret);

/* ---- what a checkpoint must hold besides the residuals ----
 *
 * powersgd: the Q of the last step, codec_state_n() numbers; equal on all ranks. Others: 0. */
size_t codec_state_n(const struct codec *c);
void codec_state_get(const struct codec *c, float *ret);
/* AS_E_INVAL: n is another number than codec_state_n, or a value is not finite. */
AS_MUST_CHECK as_status codec_state_put(struct codec *c, const float *state, size_t n,
                                        struct as_err *err);

#endif
