/* The data on the device, once for all members that train on it. */
#ifndef ASSAY_MODEL_NETWORK_DEVICE_DATA_H
#define ASSAY_MODEL_NETWORK_DEVICE_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "data/preprocess/train_data.h"
#include "kernels/ops.h"

struct device_data {
    struct backend *be;            /* borrowed */
    const struct train_data *data; /* borrowed; set.x and set.bytes are NULL */
    size_t per_row;                /* places of a row: text: the context (one a token), else 1 */
    size_t n_x, n_codes, n_y;      /* elements of a row's inputs (F32; I32) and targets */
    buf_kind y_kind;               /* I32: classes or tokens */
    struct buf *x;                 /* [n_rows, n_x]; NULL when n_x is 0 */
    struct buf *mean, *scale;      /* [n_x] if x is bytes (four in each I32 element), which are
                                    * scaled when a batch is gathered; else NULL */
    struct buf *codes;             /* [n_rows, n_codes] I32; text: [tokens]; or NULL */
    struct buf *y;                 /* [n_rows, n_y]; text: NULL, targets are in codes */
    struct buf *weights;           /* [n_rows] F32; NULL: all rows count alike */
    struct buf *held; /* [n_val * per_row] I32: held-out rows; text: places of their tokens */
};

/* `classes`: targets are class indices (or tokens), not numbers. data and be are borrowed until
 * device_data_free(), but data->set.x or data->set.bytes is taken. AS_E_NOMEM, AS_E_TOO_LARGE. */
AS_MUST_CHECK as_status device_data_create(struct backend *be, struct train_data *data,
                                           bool classes, struct device_data **ret,
                                           struct as_err *err);
void device_data_free(struct device_data *device);
AS_DEFINE_FREEP(struct device_data, device_data_free)

size_t device_data_bytes(const struct train_data *data); /* of all its buffers */

/* Rows of a new arrangement, from row `to` on: n rows that lie at `from` now, or, if `fresh`, rows
 * [from, from + n) of what is new. */
struct device_run {
    size_t from, n, to;
    bool fresh;
};

/* Encoded rows that are to be on the device: as those of train_data.set and train_data.codes. */
struct device_fresh {
    const struct dataset *set;
    const int32_t *codes;
};

/* Replace the rows by those of the runs, which do not overlap; others of the n_rows rows are 0.
 * Only without weights. Bytes of images lie in elements of four: there `to` and `from` are
 * multiples of 4. data->set.n_rows is the caller's to change. AS_E_NOMEM, AS_E_TOO_LARGE: some
 * values may have moved, and the rest not. */
AS_MUST_CHECK as_status device_data_rearrange(struct device_data *device, size_t n_rows,
                                              const struct device_run *runs, size_t n_runs,
                                              const struct device_fresh *fresh, struct as_err *err);

/* The places of all tokens of n windows of `context` tokens, which begin at `offsets`; ret is [n,
 * context]. */
void device_data_window_places(const int32_t *offsets, size_t n, size_t context, int32_t *ret);

#endif
