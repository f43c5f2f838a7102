/* The optimizer's state over the arena [K, N], and its hyperparameters as device arrays [K]. All
 * members have the same kind; everything else is a member's own. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_OPTIMIZER_H
#define ASSAY_TRIAL_RUNNER_TRAIN_OPTIMIZER_H

#include <stddef.h>

#include "base/mem.h"
#include "base/spec/train_spec.h"
#include "kernels/ops.h"

struct optimizer {
    struct backend *be; /* borrowed */
    train_optimizer_kind kind;
    size_t members, n_params;
    struct buf *moment1;  /* [K, N]: SGD's velocity, AdamW's first moment */
    struct buf *moment2;  /* [K, N]: AdamW's second moment, else NULL */
    struct buf *step;     /* [K], I32: steps done */
    struct buf *active;   /* [K], I32: 0 freezes a member (it diverged) */
    struct buf *hyper;    /* [4, K]: weight decay, momentum or beta1, beta2, eps */
    struct buf *nesterov; /* [K], I32 */
    struct buf *kinds;    /* [K], I32: an optim_kind each */
};

/* specs[k] are the members' documents, borrowed for the call. AS_E_NOMEM; owned by the caller. */
AS_MUST_CHECK as_status optimizer_create(struct backend *be, const struct train_spec *const *specs,
                                         size_t members, size_t n_params, struct optimizer **ret,
                                         struct as_err *err);
void optimizer_free(struct optimizer *o);
AS_DEFINE_FREEP(struct optimizer, optimizer_free)

/* One step of all active members: params, grads [K, N]; lr [K]. */
AS_MUST_CHECK as_status optimizer_step(struct optimizer *o, struct buf *params, struct buf *grads,
                                       struct tensor lr, struct as_err *err);

#endif
