/* The devices of the ranks of one world: may vectors travel from device to device, or do they go
 * through the host (trial-runner/collective)?
 *
 * From device to device, where every rank's numbers are on a device of its own that no other rank
 * of the world has, and all have the same NCCL; also for a rank that is alone. All ranks decide
 * alike, by what they show each other when they meet.
 *
 * It has not run on a GPU yet (docs/decisions/8007). */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_DEVICE_COMM_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_DEVICE_COMM_H

#include "base/mem.h"
#include "kernels/peers.h"
#include "trial-runner/collective/collective.h"

/* What a rank shows the others; no padding, because it travels as bytes. */
struct device_card {
    int32_t able;            /* 0: the numbers are in the host's memory, or padded on the device */
    struct peers_card peers; /* version 0: no messages between devices */
};

/* ret->able 0: back end without a device. `why` [AS_ERR_MAX]: why there is no NCCL, or "". */
void device_card_read(struct backend *be, struct device_card *ret, struct as_err *why);

struct device_comm;

/* All ranks of the world call it together. Operations with tags from DEVICE_COMM_TAG on are its
 * own.
 *   c, be   borrowed until device_comm_free()
 *   cards   by rank
 *   ret     device_comm_free(), before coll_free(); NULL: vectors go through the host. Then
 *           why->msg says why, or is "" if no rank has a device
 * AS_E_UNAVAILABLE: a rank is lost. AS_E_INTERNAL: as peers_wait(). */
#define DEVICE_COMM_TAG ((1U << 16) + 64)
AS_MUST_CHECK as_status device_comm_open(struct coll *c, struct backend *be,
                                         const struct device_card *cards, struct device_comm **ret,
                                         struct as_err *why, struct as_err *err);
void device_comm_free(struct device_comm *w);
AS_DEFINE_FREEP(struct device_comm, device_comm_free)

struct coll *device_comm_coll(const struct device_comm *w);
struct backend *device_comm_backend(const struct device_comm *w);
struct peers *device_comm_peers(const struct device_comm *w); /* NULL: this rank is alone */

/* *ret: did all ranks call it with `mine`? Errors of an operation of the collective. */
AS_MUST_CHECK as_status device_comm_agree(struct device_comm *w, bool mine, bool *ret,
                                          struct as_err *err);

/* Waits until all messages have arrived and the device has done what was called.
 * AS_E_UNAVAILABLE: a rank is lost, the epoch is over, or nothing has come for ten minutes. */
AS_MUST_CHECK as_status device_comm_wait(struct device_comm *w, struct as_err *err);

#endif
