/* The loss of the members of a network: its kind, each member's settings of it, and its sums. */
#ifndef ASSAY_MODEL_NETWORK_LOSS_H
#define ASSAY_MODEL_NETWORK_LOSS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "kernels/ops.h"
#include "data/preprocess/train_data.h"
#include "model/document/train_spec.h"
#include "model/network/network.h"

/* Sums over rows, one per slot. */
struct loss_sums {
    struct buf *loss;           /* [slots] F32 */
    struct buf *correct, *top5; /* [slots] I32 */
};

struct losses {
    struct network *network;       /* borrowed */
    const struct train_data *data; /* borrowed */
    train_loss kind;               /* not AUTO */
    size_t outputs, weights;       /* outputs of a row (or token); class weights of a member */
    size_t places;                 /* max_rows * tokens */
    struct buf *smoothing, *delta; /* [slots] */
    struct buf *class_weights;     /* [slots, weights] */
    struct buf *row_loss;          /* [slots, places] F32 */
    struct buf *row_class;         /* [slots, places] I32 */
    struct buf *unweighted;        /* [slots] F32: the loss before rows are weighed; NULL: all rows
                                    * count alike */
    struct loss_sums train;        /* over the epoch so far */
    struct loss_sums held;         /* over the held-out rows */
};

AS_MUST_CHECK as_status losses_create(struct network *network, const struct train_data *data,
                                      train_loss kind, struct losses **ret, struct as_err *err);
void losses_free(struct losses *l);
AS_DEFINE_FREEP(struct losses, losses_free)

/* For one slot; `weighted`: the rows have weights. */
size_t losses_bytes(const struct net_plan *plan, train_loss kind, size_t max_rows, bool weighted);

/* Write a member's settings into its slot, and set its sums of the epoch to 0. */
AS_MUST_CHECK as_status losses_join(struct losses *l, size_t slot, const struct train_spec *spec,
                                    struct as_err *err);

/* The weight of a row of class c in a member's loss; 1 without class weights. */
float losses_class_weight(const struct losses *l, const struct train_spec *spec, size_t c);

/* Set the sums of slots [first, first + n) to 0. */
AS_MUST_CHECK as_status loss_sums_clear(struct loss_sums *s, size_t first, size_t n,
                                        struct as_err *err);

/* Which features of the loss at least one member of a range uses. */
struct loss_use {
    bool smoothing, class_weights, top5;
};

struct loss_use loss_use_of(const struct train_spec *spec);
struct loss_use loss_use_both(struct loss_use a, struct loss_use b);

/* Add the loss of a training batch of `rows` rows with targets y to l->train, and replace the
 * outputs by its gradient.
 *   weights  [slots, max_rows] of the rows, from slot 0; absent: all rows count alike */
AS_MUST_CHECK as_status losses_train(struct losses *l, struct backend *lane, size_t first, size_t n,
                                     struct tensor y, struct tensor weights, size_t rows,
                                     struct loss_use use, struct as_err *err);

/* Add the loss of held-out rows, without smoothing and weights, to l->held. row_class [slots,
 * places] is set to the predicted classes, row_loss to the loss of each row. The outputs stay. */
AS_MUST_CHECK as_status losses_held(struct losses *l, struct backend *lane, size_t first, size_t n,
                                    struct tensor y, size_t rows, struct loss_use use,
                                    struct as_err *err);

#endif
