/* Messages between the devices of several processes (ranks), one device for each, without a way
 * through the host: NCCL, which the CUDA plugin opens at run time (ASSAY_NCCL, else libnccl.so.2).
 *
 * NCCL may hang when a peer dies. So its calls do not block (NCCL_COMM_BLOCKING=0, set by
 * peers_open), every wait here has an end, and a group whose peer is lost is aborted and of no
 * further use: who goes on opens another one, with another id. If even that abort does not end, the
 * device's stream waits for ever: AS_E_INTERNAL, and the process should end, and another one take
 * its place. NCCL refuses two ranks on one device; those go through the host
 * (trial-runner/collective).
 *
 * It has not run on a device yet: tests run it on an emulated one, with a library that stands in
 * for NCCL. One thread at a time, except peers_interrupt(). */
#ifndef ASSAY_KERNELS_PEERS_H
#define ASSAY_KERNELS_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

struct peers;

#define PEERS_ID_BYTES 128

/* What ranks compare before they open a group: the cards must all differ, the versions be equal. */
struct peers_card {
    char gpu[BACKEND_GPU_ID_MAX]; /* as struct backend_gpu's */
    int32_t version;              /* of NCCL: major * 10000 + minor * 100 + patch */
};

/* AS_E_UNSUPPORTED   the back end's buffers are in the host's memory, the device is a part of a GPU
 *                    (MIG), between which NCCL moves nothing, or the plugin is older
 * AS_E_UNAVAILABLE   NCCL does not open or is older than 2.14; the message says why */
AS_MUST_CHECK as_status peers_card(struct backend *be, struct peers_card *ret, struct as_err *err);

/* What all ranks of a group open with; one of them makes it and gives it to the others.
 * AS_E_UNSUPPORTED   the back end's buffers are in the host's memory, or the plugin is older
 * AS_E_UNAVAILABLE   NCCL does not open or is older than 2.14; the message says why */
AS_MUST_CHECK as_status peers_new_id(struct backend *be, uint8_t ret[PEERS_ID_BYTES],
                                     struct as_err *err);

struct peers_group {
    uint8_t id[PEERS_ID_BYTES];
    int32_t rank, n;
    int64_t timeout_ms; /* until all have met */
    /* Asked at least each millisecond while a call waits: true ends it. NULL: it is not asked. */
    bool (*is_over)(void *arg);
    void *arg;
};

/* Meets ranks 0 to n-1. `be` is borrowed until peers_free(). ret: peers_free().
 * Errors as peers_new_id. AS_E_UNAVAILABLE also: not all came in time, or the group was over. */
AS_MUST_CHECK as_status peers_open(struct backend *be, const struct peers_group *group,
                                   struct peers **ret, struct as_err *err);
void peers_free(struct peers *p);
void peers_freep(struct peers **p); /* for AS_AUTO */

/* n elements of an F32 buffer of the back end, from element `at`. */
struct peers_message {
    int32_t peer;
    bool sends;
    struct buf *buf;
    size_t at, n;
};

/* Begins the messages together, behind the operations that the back end was called for. Operations
 * called later see what was received. Between two ranks, the messages that one sends are those that
 * the other receives, in the same order and of the same length.
 * AS_E_INVAL: a message has no such peer, kind or place. AS_E_UNAVAILABLE: as peers_wait. */
AS_MUST_CHECK as_status peers_exchange(struct peers *p, const struct peers_message *messages,
                                       size_t n, struct as_err *err);

/* Waits until all messages have arrived.
 * AS_E_UNAVAILABLE: a peer is lost, it took longer than timeout_ms, the group is over (is_over), or
 * peers_interrupt() was called. Nothing works after that. AS_E_INTERNAL: the same, and NCCL does
 * not end; no operation of the back end works after that. */
AS_MUST_CHECK as_status peers_wait(struct peers *p, int64_t timeout_ms, struct as_err *err);

/* From any thread: whoever waits gets AS_E_UNAVAILABLE. */
void peers_interrupt(struct peers *p);

#ifdef __cplusplus
}
#endif

#endif
