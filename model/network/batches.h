/* The data on the device, once for all members, and how batches are taken from it: in each member's
 * own order for training, in the order of the split for validation. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_BATCHES_H
#define ASSAY_TRIAL_RUNNER_TRAIN_BATCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "model/plan/net.h"
#include "kernels/ops.h"
#include "data/preprocess/train_data.h"

/* ---- shared by all members ---- */

struct resident {
    struct backend *be;            /* borrowed */
    const struct train_data *data; /* borrowed; set.x and set.bytes are NULL */
    size_t per_row;                /* places of a row: the context of text, else 1 */
    size_t n_x, n_codes, n_y;      /* elements of a row's inputs (F32; I32), of its targets */
    buf_kind y_kind;               /* I32: classes or tokens */
    struct buf *x;                 /* [n_rows, n_x]; NULL when n_x is 0 */
    struct buf *mean, *scale;      /* [n_x]: x is bytes (I32, four to an element), and a batch is
                                    * scaled when it is gathered; else NULL */
    struct buf *codes;             /* [n_rows, n_codes] I32; text: [tokens]; or NULL */
    struct buf *y;                 /* [n_rows, n_y]; text: NULL, it is in codes */
    struct buf *held; /* [n_val * per_row] I32: rows held out; text: places of their tokens */
};

/* `classes`: targets are class indices (or tokens), not numbers. AS_E_NOMEM, AS_E_TOO_LARGE; data
 * and be are borrowed until resident_free, but data->set.x or bytes are taken. */
AS_MUST_CHECK as_status resident_create(struct backend *be, struct train_data *data, bool classes,
                                        struct resident **ret, struct as_err *err);
void resident_free(struct resident *r);
AS_DEFINE_FREEP(struct resident, resident_free)

size_t resident_bytes(const struct train_data *data); /* on the device */

/* ---- of each cell (cell.h) ---- */

struct batches {
    struct resident *resident; /* borrowed */
    size_t slots, max_rows;
    struct buf *order;     /* [slots, n_train * per_row] I32: the places of this epoch */
    struct buf *x, *codes; /* [slots, max_rows, …] or NULL */
    struct buf *y;         /* [slots, max_rows, …] */
    struct buf *augmented; /* as x; images with augmentation, else NULL */
    int32_t *places;       /* [n_train * per_row], workspace */
};

/* AS_E_NOMEM, AS_E_TOO_LARGE. */
AS_MUST_CHECK as_status batches_create(struct resident *r, size_t slots, size_t max_rows,
                                       bool augment, struct batches **ret, struct as_err *err);
void batches_free(struct batches *b);
AS_DEFINE_FREEP(struct batches, batches_free)

/* Bytes on the device of one slot. */
size_t batches_bytes(const struct resident *r, size_t max_rows, bool augment);

/* Set the order of a slot's epoch: a function of seed and epoch alone. */
AS_MUST_CHECK as_status batches_shuffle(struct batches *b, size_t slot, uint64_t seed,
                                        int64_t epoch, struct as_err *err);

/* A batch; tensors are those of slot 0 (stride 0: one copy for all). Views of b until the next
 * call. */
struct batch {
    size_t rows;
    struct tensor x, codes, y; /* absent where the data has none */
};

/* Of the orders of slots [first, first + n), `rows` rows from at[slot] * micro on; rows <=
 * max_rows. `at` [slots] I32 is that of slot 0. */
AS_MUST_CHECK as_status batches_train(struct batches *b, struct backend *lane, size_t first,
                                      size_t n, struct tensor at, size_t micro, size_t rows,
                                      struct batch *ret, struct as_err *err);

/* Rows [at, at + rows) of those held out, in the place of slot `first`, for all its range. */
AS_MUST_CHECK as_status batches_held(struct batches *b, struct backend *lane, size_t first,
                                     size_t at, size_t rows, struct batch *ret, struct as_err *err);

#endif
