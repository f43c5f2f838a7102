/* A rank's copy of the model, as strategies see it: a table of functions that the trainer fills
 * (trial-runner/train/learner.h). A test may fill it with a function of its own.
 *
 * Vectors are on the host, unless a function says otherwise, float32, in the member's own shape.
 * The position is the number of optimizer steps that are done. A batch of a step has shards (its
 * micro-batches); all draws (rows, dropout, augmentation) depend on the position and the shard
 * alone, so every rank computes the same numbers for the same shard. One thread at a time. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_REPLICA_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_REPLICA_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "kernels/backend.h"
#include "model/network/slot_state.h"

/* One parameter tensor: a matrix [rows, cols] that begins at `first`; cols is 1 for a vector.
 * pairs: the gradient by it is the sum of so many outer products of a vector [rows] and a vector
 * [cols] for each row of the data; 0: it is not such a sum. */
struct replica_tensor {
    size_t first, rows, cols, pairs;
};

/* A moment of the optimizer, or any other range of the parameters. */
struct replica_slice {
    size_t first, n;    /* which parameters */
    float *params;      /* [n], in place */
    const float *grads; /* [n] */
    float *moment1;     /* [n], in place */
    float *moment2;     /* [n], in place; NULL if the optimizer has none (replica.has_moment2) */
};

/* The document's optimizer on slices, for another thread than the replica's. */
struct slice_updater {
    /* As replica_ops.update_slice. */
    as_status (*update)(struct slice_updater *u, int64_t step, int32_t steps_done,
                        const struct replica_slice *slice, struct as_err *err);
    void (*free)(struct slice_updater *u);
};

/* Who takes the numbers of a gradient. */
struct replica_sink {
    /* Numbers [first, first + n) of the gradient; `values` is borrowed for the call, perhaps from
     * the replica itself: it is not copied before. */
    void (*take)(void *arg, size_t first, const float *values, size_t n);
    void *arg;
    bool early; /* numbers are wanted as soon as they are known, while others are computed */
    /* True: the gradient by the tensor that begins at `first` is wanted as its factors; what `take`
     * gets of it is undefined. Then they are written to *ret_left [pairs, rows] and *ret_right
     * [pairs, cols], of so many pairs. NULL: no factors are wanted. Not with `early`. */
    bool (*factors)(void *arg, size_t first, size_t pairs, float **ret_left, float **ret_right);
};

struct replica_ops {
    /* Optimizer steps that are done. */
    int64_t (*step)(const void *self);
    /* The shards of the batch `ahead` steps after the position, at least 1; 0: the epoch ends
     * before it. The last batch of an epoch may have fewer than the others. */
    uint32_t (*shards)(const void *self, int64_t ahead);
    /* The part of a shard's rows in its batch, in (0, 1]. */
    float (*share)(const void *self, int64_t ahead, uint32_t shard);
    /* The learning rate of step `step` (any step of the training). */
    double (*rate)(const void *self, int64_t step);
    /* The rows of a shard. */
    uint32_t (*rows)(const void *self, int64_t ahead, uint32_t shard);
    /* Rows of shards [first, first + count) of each batch are needed, and those of shard `also`
     * (UINT32_MAX: of no other): with `partitions: lineage` a replica has the rows of those shards
     * alone that it was told to hold, and reads them here if it does not have them. Others are
     * dropped when first or count change. NULL: it has all rows. AS_E_NOMEM. */
    as_status (*hold)(void *self, uint32_t first, uint32_t count, uint32_t also,
                      struct as_err *err);
    /* to = the gradient of the shard's mean loss [n_params], the running statistics after it
     * [n_state], its loss summed over rows [1]: n_numbers. Nothing of the replica changes. */
    as_status (*gradient)(void *self, struct backend *lane, int64_t ahead, uint32_t shard,
                          float *to, struct as_err *err);
    /* The same bits, given to `sink` piece by piece, each number once. With sink->early the pieces
     * are tensors, last layers first, if the replica can do that. If it fails, some may have been
     * given. Only `allreduce` and `lbfgs` call it. */
    as_status (*gradient_taken)(void *self, struct backend *lane, int64_t ahead, uint32_t shard,
                                const struct replica_sink *sink, struct as_err *err);
    /* *ret = the gradient by tensor `index` (with `pairs`) of a shard, from its factors (as
     * replica_sink.factors). It has the same bits on every rank that computes with the same kind of
     * back end; on the host those of `gradient`. A view until the next call. */
    as_status (*product)(void *self, struct backend *lane, size_t index, size_t pairs,
                         const float *left, const float *right, const float **ret,
                         struct as_err *err);
    /* Where the numbers are on a device, unpadded: to [n_numbers] = share x gradient, share x
     * statistics, loss of the shard, with the bits that scaling `gradient` on the host has. Nothing
     * goes through the host, and the device may do it later. `to` is a buffer of `lane`, and may
     * have more numbers. NULL, or AS_E_UNSUPPORTED: on the host, or padded. Nothing of the replica
     * changes. */
    as_status (*gradient_on_device)(void *self, struct backend *lane, int64_t ahead, uint32_t shard,
                                    struct buf *to, struct as_err *err);
    /* As `update`, with the gradient on the device, sum [n_params]; `behind` [n_state + 1]:
     * statistics and loss. */
    as_status (*update_on_device)(void *self, struct backend *lane, const struct buf *sum,
                                  const float *behind, struct as_err *err);
    /* An optimizer step with the gradient, statistics and loss of the whole batch at the position:
     * the sum over its shards of share x gradient, share x statistics, loss. The position moves
     * behind the batch. */
    as_status (*update)(void *self, struct backend *lane, const float *sum, struct as_err *err);
    /* The same where the moments are not in the replica: `step` is called with the clipped gradient
     * and the parameters [n_params], and changes these. It is not called for a model that is
     * frozen, because a gradient was not finite. If it fails, the replica is as before; `sum` is
     * clipped. */
    as_status (*update_with)(void *self, struct backend *lane, float *sum,
                             as_status (*step)(void *arg, const float *grads, float *params,
                                               struct as_err *err),
                             void *arg, struct as_err *err);
    /* ret = n parameters from `first` on. */
    as_status (*params_get)(void *self, size_t first, size_t n, float *ret, struct as_err *err);
    /* An optimizer step with the gradient of one shard alone, with the rate of its batch. The
     * position does not move. Statistics and the epoch's loss advance. */
    as_status (*local_step)(void *self, struct backend *lane, int64_t ahead, uint32_t shard,
                            struct as_err *err);
    /* Moves the position by `steps` within the epoch. */
    void (*advance)(void *self, int64_t steps);

    /* The whole state: weights, moments, average, statistics, counters. state_new allocates one
     * (the caller's, slot_state_done()). get and put leave out arrays that are NULL; put an array
     * of it aside to read or write the others alone. */
    as_status (*state_new)(void *self, struct slot_state *ret, struct as_err *err);
    as_status (*state_get)(void *self, struct slot_state *s, struct as_err *err);
    as_status (*state_put)(void *self, const struct slot_state *s, struct as_err *err);

    /* The document's optimizer, with the rate of step `step` (any step of the training), on a slice
     * of the caller's memory: equal bits to the same elements in `update`, but without clipping and
     * without the average of weights. `steps_done` is the number of steps that these moments have
     * seen before. The replica does not change. AS_E_UNSUPPORTED: LAMB. */
    as_status (*update_slice)(void *self, struct backend *lane, int64_t step, int32_t steps_done,
                              const struct replica_slice *slice, struct as_err *err);

    /* ret: owned by the caller, ret->free(). On the host, where its bits are those of `update` if
     * the replica is there too. AS_E_UNSUPPORTED: LAMB. */
    as_status (*updater_new)(void *self, struct backend *lane, struct slice_updater **ret,
                             struct as_err *err);
};

/* ---- blocks: consecutive layers, which ranks hold by themselves (model_parallel) ---- */

struct replica_block {
    size_t first, n;             /* its parameters */
    size_t first_state, n_state; /* its running statistics */
    size_t in, out; /* numbers of a row that come from the block before, and go to the next one */
    double flops;   /* of a row, forward and backward */
};

/* How many steps the optimizer has done, and whether the model is not frozen. */
struct replica_numbers {
    int32_t steps, active;
};

/* The replica computes some consecutive blocks alone, and has memory for these; what it knows of
 * them is put there. A shard is one of the batch at the position. */
struct replica_block_ops {
    /* It computes blocks [first, end) from now on, with room for `sets` shards between their
     * forward and their backward pass. Nothing of them is known then. */
    as_status (*hold)(void *self, size_t first, size_t end, size_t sets, struct as_err *err);
    /* params [n], statistics [n_state] = the start values of a block. */
    void (*draw)(const void *self, size_t block, float *params, float *statistics);
    /* Of a block that it computes. */
    as_status (*put)(void *self, size_t block, const float *params, const float *statistics,
                     struct as_err *err);
    /* The value of the last of its blocks, out [rows, out], from that of the block before, in
     * [rows, in]; NULL: of the model's last block, or of its first. `statistics`: those after the
     * pass, of its blocks, one behind the other; *ret_loss: the loss of the shard summed over rows,
     * of the model's last block. Nothing else of the replica changes. */
    as_status (*forward)(void *self, struct backend *lane, uint32_t shard, size_t set,
                         const float *in, float *out, float *statistics, float *ret_loss,
                         struct as_err *err);
    /* After it, in the same set: from the gradient by its value (d_out; NULL: of the loss), that by
     * `in` (d_in; NULL: not wanted), and *ret [n]: by its parameters, a view until the next
     * call. */
    as_status (*backward)(void *self, struct backend *lane, uint32_t shard, size_t set,
                          const float *d_out, float *d_in, const float **ret, struct as_err *err);
    /* How long forward() and backward() have computed in all, without anything else. */
    int64_t (*busy_ns)(const void *self);
    as_status (*numbers)(const void *self, struct replica_numbers *ret, struct as_err *err);
    /* The batch at the position is done, with its loss; the position moves behind it. */
    as_status (*done)(void *self, float loss, bool active, struct as_err *err);
    /* *ret: the whole state, if it is here (of a checkpoint that was read), else NULL; with `make`
     * an empty one, for a checkpoint. Borrowed until whole_drop(). */
    as_status (*whole)(void *self, bool make, struct slot_state **ret, struct as_err *err);
    void (*whole_drop)(void *self);
};

struct replica_blocks {
    const struct replica_block_ops *ops;
    void *self;
    size_t n;
    const struct replica_block *of; /* [n] */
    size_t rows;                    /* most of a shard */
};

struct replica {
    const struct replica_ops *ops;
    void *self;
    size_t n_params, n_state;
    size_t n_numbers;    /* n_params + n_state + 1: of a gradient */
    uint32_t max_shards; /* of a batch */
    bool has_moment2;
    const struct replica_tensor *tensors; /* borrowed from the trainer; they cover the parameters */
    size_t n_tensors;
    const struct replica_blocks *blocks; /* NULL: it is not computed in blocks */
};

#endif
