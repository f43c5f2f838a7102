/* The data on the device, and how batches are taken from it: shuffled for training, in order for
 * validation. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_BATCHES_H
#define ASSAY_TRIAL_RUNNER_TRAIN_BATCHES_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "kernels/ops.h"
#include "trial-runner/train/data.h"

struct batches {
    struct backend *be;            /* borrowed */
    const struct train_data *data; /* borrowed */
    size_t members, max_batch;
    struct buf *x;       /* [n_rows, features] */
    struct buf *y;       /* [n_rows]: I32 labels, or F32 targets */
    struct buf *order;   /* [K, n_train], I32: each member's rows of this epoch */
    struct buf *held;    /* [n_val], I32 */
    struct buf *x_batch; /* [K, max_batch, features] */
    struct buf *y_batch; /* [K, max_batch] */
    int32_t *shuffled;   /* [n_train], workspace */
};

/* AS_E_NOMEM, AS_E_TOO_LARGE. data is borrowed until batches_free; what it holds in data->set.x is
 * on the device then. */
AS_MUST_CHECK as_status batches_create(struct backend *be, const struct train_data *data,
                                       size_t members, size_t max_batch, struct batches **ret,
                                       struct as_err *err);
void batches_free(struct batches *b);
AS_DEFINE_FREEP(struct batches, batches_free)

/* Draw member k's order of the training rows in an epoch: a function of seed and epoch alone. */
AS_MUST_CHECK as_status batches_shuffle(struct batches *b, size_t k, uint64_t seed, int64_t epoch,
                                        struct as_err *err);

/* A batch: x is [K or shared, n, features], y [K or shared, n]. Views of b until the next call. */
struct batch {
    size_t n;
    struct tensor x, y;
};

/* Rows [first, first + n) of each member's order; n <= max_batch. */
AS_MUST_CHECK as_status batches_train(struct batches *b, size_t first, size_t n, struct batch *ret,
                                      struct as_err *err);

/* Rows [first, first + n) of those held out, shared by all members. */
AS_MUST_CHECK as_status batches_validation(struct batches *b, size_t first, size_t n,
                                           struct batch *ret, struct as_err *err);

#endif
