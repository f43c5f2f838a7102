/* What a rank that is ahead of the sums reads: the weights that it has, and on top of them its own
 * updates whose sums are not here yet (Petuum's cache: Ho et al. 2013, "read-my-writes").
 *
 * The weights of the replica stay those of its position, equal on all ranks. For the gradient of a
 * step that is computed ahead they are replaced by a view of them: the optimizer's steps with the
 * rank's own part of each sum that it waits for, in their order, on copies of the weights and
 * moments. Own parts are clipped as sums are. Averages of weights do not advance. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_OWN_WRITES_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_OWN_WRITES_H

#include "model/document/train_spec.h"
#include "trial-runner/distributed/replica.h"

struct own_writes {
    struct replica *replica; /* borrowed; NULL: it reads nothing of its own */
    double clip_norm;        /* 0: none */
    struct slot_state base;  /* weights and moments of the position */
    struct slot_state view;  /* after the own steps */
    float *grads;            /* [n_params]: a clipped gradient */
};

/* Nothing with the optimizer lamb, whose steps need the sums. spec, r: borrowed. AS_E_NOMEM, or
 * errors of state_new. ret: own_writes_done(). */
AS_MUST_CHECK as_status own_writes_init(struct own_writes *ret, const struct train_spec *spec,
                                        struct replica *r, struct as_err *err);
void own_writes_done(struct own_writes *w); /* a zeroed one is fine */

/* Puts the view into the replica: after own_writes_begin() one own_writes_add() for each step that
 * is waited for, in their order, and own_writes_put(). `gradient`: [n_params], the own part of that
 * step's sum; borrowed. own_writes_end() puts back what was there. */
AS_MUST_CHECK as_status own_writes_begin(struct own_writes *w, struct as_err *err);
AS_MUST_CHECK as_status own_writes_add(struct own_writes *w, struct backend *lane, int64_t step,
                                       const float *gradient, struct as_err *err);
AS_MUST_CHECK as_status own_writes_put(struct own_writes *w, struct as_err *err);
AS_MUST_CHECK as_status own_writes_end(struct own_writes *w, struct as_err *err);

#endif
