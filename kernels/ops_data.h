/* Operations on data: rows into batches, the values of the next step, augmentation. backend.h
 * states the rules of all operations. */
#ifndef ASSAY_KERNELS_OPS_DATA_H
#define ASSAY_KERNELS_OPS_DATA_H

#include "kernels/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- gather: rows of a data set into a batch ---- */

struct gather_args {
    size_t members, rows, batch, width; /* K, rows of src, B, D */
    struct tensor src;                  /* [K or shared, rows, D], F32 or I32 */
    struct tensor index;                /* [K or shared, index_len], I32, in [0, rows) */
    struct tensor at;  /* [K], I32: number of the batch in the index, from 0; absent: 0 */
    size_t at_rows;    /* rows of the index in one unit of `at`; usually B */
    size_t index_len;  /* rows of the index if `at` is present; otherwise B, and this is not read */
    struct tensor dst; /* [K, B, D], of src's kind; must not overlap src */
};

/* dst[k, r, :] = src[k, index[k, at[k] * at_rows + r], :]. For one batch that all members share,
 * call with K = 1, and let the members read dst with stride 0. An index out of range, or a place
 * outside the index, fills its row with NaN (I32: -1), so that the fault appears in the loss.
 * Nothing is read outside src or the index. */
AS_MUST_CHECK as_status backend_gather(struct backend *be, const struct gather_args *a,
                                       struct as_err *err);

/* ---- gather of rows of bytes, scaled ---- */

struct gather_bytes_args {
    size_t members, rows, batch, width; /* K, rows of src, B, D */
    struct tensor src; /* [K or shared], I32: rows x D bytes that follow one another, four to an
                        * element, in the order of the host's memory */
    struct tensor index, at; /* these four as in gather_args */
    size_t at_rows, index_len;
    struct tensor mean, scale; /* [K or shared, D], F32 */
    struct tensor dst;         /* [K, B, D], F32 */
};

/* Elements of src. */
static inline size_t gather_bytes_len(size_t rows, size_t width)
{
    return rows * width / 4 + (rows * width % 4 > 0);
}

/* dst[k, r, d] = ((float)src[k, index[k, at[k] * at_rows + r], d] - mean[k, d]) / scale[k, d], in
 * float32 in this order: equal bits on every back end. Rows that do not exist are NaN, as above. */
AS_MUST_CHECK as_status backend_gather_bytes(struct backend *be, const struct gather_bytes_args *a,
                                             struct as_err *err);

/* ---- columns of a matrix ---- */

struct columns_args {
    size_t members, rows, width; /* K, B; columns that are copied */
    struct tensor src;           /* [K or shared, B, src_width], F32 */
    size_t src_width, src_at;
    struct tensor dst; /* [K, B, dst_width]; the other columns are left as they are */
    size_t dst_width, dst_at;
};

/* dst[k, r, dst_at + c] = src[k, r, src_at + c] for c < width: it places matrices side by side.
 * AS_E_INVAL: columns past the end of a row. */
AS_MUST_CHECK as_status backend_columns(struct backend *be, const struct columns_args *a,
                                        struct as_err *err);

/* ---- tick: the values of the next step ---- */

/* Values that change from step to step (learning rates, weights of micro-batches) lie in a table in
 * device memory, so that a recorded step needs nothing from the host. */
struct tick_args {
    size_t members, n_steps, columns; /* K, S, J */
    struct tensor table;              /* [K or shared, S, J], F32 */
    struct tensor at;                 /* [K], I32, in place: the step, from 0 */
    struct tensor out;                /* [K, J], F32 */
};

/* out[k, :] = table[k, at[k], :], then at[k] += 1. An `at` outside [0, S) gives NaN and still goes
 * up by 1. */
AS_MUST_CHECK as_status backend_tick(struct backend *be, const struct tick_args *a,
                                     struct as_err *err);

/* ---- augmentation of images ---- */

struct augment_args {
    size_t members, batch, height, width, channels; /* K, B, H, W, C */
    struct tensor x;                                /* [K or shared, B, H, W, C] */
    struct tensor y;                                /* [K, B, H, W, C]; must not overlap x */
    struct tensor pad;    /* [K], I32: largest shift in pixels in each direction (pad-crop); absent
                           * or < 0: 0 */
    struct tensor flip;   /* [K], F32: probability of a flip left to right; absent or NaN: 0 */
    struct tensor cutout; /* [K], I32: side of the square set to 0; absent or <= 0: none */
    struct tensor seed;   /* [K, 2], I32 as for dropout */
    struct tensor step;   /* [K], I32 */
};

/* Two blocks philox4x32(key = seed[k], hi = step[k] << 32 | AUGMENT_PURPOSE, lo) decide for row r:
 *   lo = 2 r      words 0 and 1: the shift down and to the right, each
 *                 ((word * (2 pad + 1)) >> 32) - pad; word 2: flipped if it is < flip * 2^32
 *   lo = 2 r + 1  words 0 and 1: the centre of the square, (word * H) >> 32 and (word * W) >> 32.
 *                 The square's rows are [centre - side / 2, centre - side / 2 + side), clipped, and
 *                 its columns likewise
 * The order is: flip, then shift (pixels from outside are 0), then cutout. The bits are the same on
 * every back end. */
#define AUGMENT_PURPOSE 0xA6u
AS_MUST_CHECK as_status backend_augment(struct backend *be, const struct augment_args *a,
                                        struct as_err *err);

#ifdef __cplusplus
}
#endif

#endif
