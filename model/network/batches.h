/* Batches of the data on the device: in each member's own order for training, in the order of the
 * split for validation. */
#ifndef ASSAY_MODEL_NETWORK_BATCHES_H
#define ASSAY_MODEL_NETWORK_BATCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "model/plan/net.h"
#include "kernels/ops.h"
#include "model/network/device_data.h"

struct batches {
    struct device_data *device; /* borrowed */
    size_t slots, max_rows;
    struct buf *order;     /* [slots, places * per_row] I32: row (or token) numbers of this epoch */
    struct buf *x, *codes; /* [slots, max_rows, …] or NULL */
    struct buf *y;         /* [slots, max_rows, …] */
    struct buf *weights;   /* [slots, max_rows]; NULL: all rows count alike */
    struct buf *augmented; /* as x; images with augmentation, else NULL */
    int32_t *places;       /* [places * per_row], workspace */
};

/* AS_E_NOMEM, AS_E_TOO_LARGE. */
AS_MUST_CHECK as_status batches_create(struct device_data *device, size_t slots, size_t max_rows,
                                       bool augment, struct batches **ret, struct as_err *err);
void batches_free(struct batches *b);
AS_DEFINE_FREEP(struct batches, batches_free)

/* The bytes of one slot on the device. */
size_t batches_bytes(const struct device_data *device, size_t max_rows, bool augment);

/* Set the order of a slot's epoch; it depends on seed, resample and epoch alone
 * (train_data_order). */
AS_MUST_CHECK as_status batches_shuffle(struct batches *b, size_t slot, uint64_t seed,
                                        int64_t resample, int64_t epoch, struct as_err *err);

/* A batch. The tensors begin at slot 0; a stride of 0 means that all slots share one copy. Views of
 * b until the next call. */
struct batch {
    size_t rows;
    struct tensor x, codes, y; /* absent where the data has none */
    struct tensor weights;     /* the same; of held-out rows always absent */
};

/* Gather a training batch for slots [first, first + n): `rows` rows of each slot's order, from
 * at[slot] * micro on; rows <= max_rows. `at` is [slots] I32 and begins at slot 0. */
AS_MUST_CHECK as_status batches_train(struct batches *b, struct backend *lane, size_t first,
                                      size_t n, struct tensor at, size_t micro, size_t rows,
                                      struct batch *ret, struct as_err *err);

/* Gather the held-out rows [at, at + rows) into the place of slot `first`, for all slots of its
 * range. */
AS_MUST_CHECK as_status batches_held(struct batches *b, struct backend *lane, size_t first,
                                     size_t at, size_t rows, struct batch *ret, struct as_err *err);

#endif
