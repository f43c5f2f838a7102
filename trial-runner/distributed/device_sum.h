/* Sums over shards whose values are on devices, in the order of coll_tree_sum() and with its bits,
 * without a way through the host: the subtrees of each rank's run are summed on its device, slices
 * of them are exchanged between the devices (kernels/peers.h), each rank sums its slice, and sends
 * it to all.
 *
 * It has not run on a device yet (docs/decisions/8007). */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_DEVICE_SUM_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_DEVICE_SUM_H

#include "base/mem.h"
#include "kernels/peers.h"
#include "trial-runner/collective/operation.h"

struct device_sum;

/* For vectors of n numbers over `total` shards that are held as `runs` says (by rank; they cover 0
 * to total-1 in order). Makes all buffers: 2 log2(total) vectors and less on the device.
 *   be, peers   borrowed; peers may be NULL if `size` is 1
 *   ret         device_sum_free()
 * AS_E_INVAL: the runs are not as said. AS_E_NOMEM (host or device). */
AS_MUST_CHECK as_status device_sum_create(struct backend *be, struct peers *peers, int32_t rank,
                                          int32_t size, const struct shard_run *runs,
                                          uint32_t total, size_t n, struct device_sum **ret,
                                          struct as_err *err);
void device_sum_free(struct device_sum *s);
AS_DEFINE_FREEP(struct device_sum, device_sum_free)

/* out [n] = the sum. Returns when all was called on the device: peers_wait() says when it has come.
 *   partials   of this rank's run, each a F32 buffer of n numbers; not changed
 * Errors as peers_exchange() and backend_add(). */
AS_MUST_CHECK as_status device_sum_run(struct device_sum *s, struct buf *const *partials,
                                       struct buf *out, struct as_err *err);

#endif
