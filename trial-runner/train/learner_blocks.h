/* The member as a replica that computes some consecutive blocks of its network alone
 * (struct replica_blocks; model_parallel). */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_LEARNER_BLOCKS_H
#define ASSAY_TRIAL_RUNNER_TRAIN_LEARNER_BLOCKS_H

#include "trial-runner/distributed/replica.h"
#include "trial-runner/train/lockstep.h"

struct learner_blocks;

/* For the only member of ls, with divides_layers; ls is borrowed. ret: learner_blocks_free().
 * AS_E_NOMEM; AS_E_INVAL as net_plan_blocks(). */
AS_MUST_CHECK as_status learner_blocks_create(struct lockstep *ls, struct learner_blocks **ret,
                                              struct as_err *err);
void learner_blocks_free(struct learner_blocks *l);
AS_DEFINE_FREEP(struct learner_blocks, learner_blocks_free)

const struct replica_blocks *learner_blocks_replica(const struct learner_blocks *l);

/* The lockstep's network gets all layers, to predict, from the state that was gathered
 * (ls->whole). */
AS_MUST_CHECK as_status learner_blocks_predict(struct lockstep *ls, struct as_err *err);

#endif
