/* A step of synchronous training whose gradients stay on the devices: each shard's is computed into
 * a vector of its own (device_vectors.h), and the sum goes into the optimizer without a way through
 * the host. What comes behind the gradients travels with them: statistics, loss, wishes. For one
 * world: a step that is repeated in the next one is computed anew. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_DEVICE_STEP_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_DEVICE_STEP_H

#include "trial-runner/distributed/device_vectors.h"
#include "trial-runner/distributed/replica.h"

struct device_step;

/* Arguments as device_vectors_create(); the replica is borrowed.
 *   n_wishes   numbers behind those of a gradient: bits that any rank may set */
AS_MUST_CHECK as_status device_step_create(struct device_comm *world, struct replica *replica,
                                           uint32_t n_wishes, struct device_step **ret,
                                           struct as_err *err);
void device_step_free(struct device_step *s);
AS_DEFINE_FREEP(struct device_step, device_step_free)

/* The sum of the step at the replica's position; the replica does not change.
 *   wishes       of this rank: bits
 *   ret_sum      the gradient's sum, on the device; a view of s, as the next
 *   ret_behind   [n_state + 1 + n_wishes]: statistics, loss, and for each wish how many ranks have
 *                it
 * Errors of device_vectors_sum() and of the replica. */
AS_MUST_CHECK as_status device_step_run(struct device_step *s, struct backend *lane,
                                        unsigned wishes, struct buf **ret_sum,
                                        const float **ret_behind, struct as_err *err);

#endif
