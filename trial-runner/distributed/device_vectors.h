/* Vectors of this rank's shards on its device, and their sum over all ranks in the order of the
 * tree, from device to device (device_sum.h): the bits of shard_sum's `tree` on the same back end.
 * For one world. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_DEVICE_VECTORS_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_DEVICE_VECTORS_H

#include "trial-runner/distributed/device_comm.h"

struct device_vectors;

/* All ranks of the world call it together, for vectors of n numbers over up to max_shards shards.
 *   world   borrowed
 *   ret     device_vectors_free(), before the back end; NULL if a rank's device has no room for
 *           them: one vector for each shard of its run, the sum, and what device_sum_create() takes
 * AS_E_UNAVAILABLE: a rank is lost. Other errors of the device. */
AS_MUST_CHECK as_status device_vectors_create(struct device_comm *world, uint32_t max_shards,
                                              size_t n, struct device_vectors **ret,
                                              struct as_err *err);
void device_vectors_free(struct device_vectors *v);
AS_DEFINE_FREEP(struct device_vectors, device_vectors_free)

/* Which shards of a step of so many this rank has; perhaps none. */
struct shard_run device_vectors_run(struct device_vectors *v, uint32_t shards);

/* The vector [n] of shard i of the run; a view of v. */
struct buf *device_vectors_at(struct device_vectors *v, uint32_t i);

/* *ret [n] = the sum over all shards of the step; a view of v until the next sum. The vectors do
 * not change. It returns when the sum has come.
 * AS_E_UNAVAILABLE: a rank is lost, or the epoch is over. AS_E_NOMEM: a step with fewer shards than
 * the others is divided otherwise, and the device has no room for that. */
AS_MUST_CHECK as_status device_vectors_sum(struct device_vectors *v, uint32_t shards,
                                           struct buf **ret, struct as_err *err);

/* The same for vectors of the host: of this rank's run, n numbers each; ret [n]. */
AS_MUST_CHECK as_status device_vectors_sum_host(struct device_vectors *v, uint32_t shards,
                                                const float *const *vectors, float *ret,
                                                struct as_err *err);

#endif
