/* The only member of a lockstep as a replica (trial-runner/distributed/replica.h): what a strategy
 * may do with it. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_LEARNER_H
#define ASSAY_TRIAL_RUNNER_TRAIN_LEARNER_H

#include "trial-runner/distributed/replica.h"
#include "trial-runner/train/lockstep.h"

struct learner;

/* ls is borrowed. ret: learner_free(). AS_E_NOMEM. */
AS_MUST_CHECK as_status learner_create(struct lockstep *ls, struct learner **ret,
                                       struct as_err *err);
void learner_free(struct learner *l);
AS_DEFINE_FREEP(struct learner, learner_free)

struct replica *learner_replica(struct learner *l);

/* Are its numbers on a device, without padding (replica_ops.gradient_on_device)? */
bool learner_is_on_device(const struct learner *l);

/* Optimizer steps that are done. */
int64_t learner_step(const struct member *m);

#endif
