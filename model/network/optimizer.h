/* The optimizers of a network's members: moments, sums over micro-batches, averages of weights, and
 * hyperparameters, all on the device. Each member has its own kind of optimizer. */
#ifndef ASSAY_MODEL_NETWORK_OPTIMIZER_H
#define ASSAY_MODEL_NETWORK_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "kernels/ops.h"
#include "model/document/train_spec.h"
#include "model/network/network.h"
#include "model/network/step_table.h"

/* What a member needs; or what at least one of several members needs. */
struct optimizer_needs {
    bool second;     /* a second moment: all but SGD and Lion */
    bool norms;      /* LAMB */
    bool accumulate; /* a batch has several micro-batches */
    bool average;    /* of weights */
    bool clip;
    bool
        divided; /* the moments are elsewhere (ranks of a large trial): there is no m1 and no m2, and
                   * optimizer_apply() must not be called */
};

struct optimizer_needs optimizer_needs_of(const struct train_spec *spec);
struct optimizer_needs optimizer_needs_both(struct optimizer_needs a, struct optimizer_needs b);

struct optimizer {
    struct network *network; /* borrowed */
    size_t slots, n_params;
    struct buf *m1, *m2;          /* [slots, N]; m2 may be NULL; so may the next two */
    struct buf *sum;              /* [slots, N]: gradients of the batch so far */
    struct buf *average;          /* [slots, N] */
    struct buf *norms;            /* [slots, 2 * tensors], or NULL */
    struct buf *step;             /* [slots], I32: steps done */
    struct buf *active;           /* [slots], I32: 0 freezes a member */
    struct buf *hyper;            /* [5, slots]: weight decay, momentum, beta1, beta2, eps */
    struct buf *nesterov;         /* [slots], I32 */
    struct buf *sq_norm, *finite; /* [slots], of the gradient */
    size_t *segments;             /* where each parameter tensor begins */
};

/* For members that need no more than `needs`. AS_E_NOMEM; owned by the caller. */
AS_MUST_CHECK as_status optimizer_create(struct network *network, struct optimizer_needs needs,
                                         struct optimizer **ret, struct as_err *err);
void optimizer_free(struct optimizer *o);
AS_DEFINE_FREEP(struct optimizer, optimizer_free)

/* The bytes of one slot on the device. */
size_t optimizer_bytes(const struct net_plan *plan, struct optimizer_needs needs);

/* Start a member in a slot that has its parameters: set its hyperparameters, set moments to 0, copy
 * the parameters to the average. */
AS_MUST_CHECK as_status optimizer_join(struct optimizer *o, size_t slot,
                                       const struct train_spec *spec, struct as_err *err);

/* The second half of optimizer_step: update the weights with the gradient of a whole batch, which
 * is in `sum` if the slots need to accumulate, else in network_gradients(). For gradients that were
 * added elsewhere. */
AS_MUST_CHECK as_status optimizer_apply(struct optimizer *o, struct backend *lane, size_t first,
                                        size_t n, const struct micro_step *step,
                                        struct optimizer_needs needs, struct as_err *err);

/* Two parts of it, for who updates the weights elsewhere: clip the gradient of a batch, which is
 * where `needs` says, to max_norm [1] (a member whose gradient is not finite becomes inactive); and
 * add the weights to their average, if there is one, with decay [1]. For one slot. */
AS_MUST_CHECK as_status optimizer_clip(struct optimizer *o, struct backend *lane, size_t slot,
                                       struct optimizer_needs needs, struct tensor max_norm,
                                       struct as_err *err);
AS_MUST_CHECK as_status optimizer_average(struct optimizer *o, struct backend *lane, size_t slot,
                                          struct tensor decay, struct as_err *err);

/* Use the gradients of a micro-batch, which are in network_gradients(), for slots [first, first +
 * n). `needs` is what these slots need together; `due`: the batch of at least one is complete. */
AS_MUST_CHECK as_status optimizer_step(struct optimizer *o, struct backend *lane, size_t first,
                                       size_t n, const struct micro_step *step,
                                       struct optimizer_needs needs, bool due, struct as_err *err);

#endif
