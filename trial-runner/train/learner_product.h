/* The gradient of a linear layer's weight from its factors: the operation of the backward pass, by
 * itself. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_LEARNER_PRODUCT_H
#define ASSAY_TRIAL_RUNNER_TRAIN_LEARNER_PRODUCT_H

#include "base/mem.h"
#include "kernels/ops.h"

struct outer_product {
    size_t rows, cols, pairs;
    const float *left, *right; /* [pairs, rows], [pairs, cols]; borrowed */
};

/* Buffers that are kept from call to call; a zeroed one has none. */
struct learner_product {
    struct buf *left, *right, *product;
    float *landed; /* the product, where it does not lie in the host's memory */
    size_t n_landed;
};

void learner_product_done(struct learner_product *l);

/* *ret [rows, cols] = left^T right, a view until the next call. On the host it has the bits of the
 * backward pass for the same numbers; a device may choose another way by where the numbers lie.
 * AS_E_NOMEM (host or device), AS_E_INTERNAL. */
AS_MUST_CHECK as_status learner_product_run(struct learner_product *l, struct backend *be,
                                            const struct outer_product *p, const float **ret,
                                            struct as_err *err);

#endif
