/* The memory that two ranks of one host share, and how each wakes the other.
 *
 * A segment holds a queue of slots for each direction. The sender copies a frame into a free slot
 * and publishes it; the receiver combines straight from the slot. A rank that is about to sleep
 * sets its flag in each segment, looks once more, and waits for its bell (an eventfd, one for each
 * rank); who publishes or frees a slot rings the bell if the flag is set.
 *
 * The memory is a memfd whose size is sealed, so a peer cannot cut it and kill this process by
 * SIGBUS. Nothing read from it is trusted: counters and lengths are checked. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECTIVE_SHM_SEGMENT_H
#define ASSAY_TRIAL_RUNNER_COLLECTIVE_SHM_SEGMENT_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/status.h"
#include "trial-runner/collective/frame.h"

#define SHM_SLOTS 8          /* a power of two */
#define SHM_SLOT_BYTES 32768 /* 256 KiB in each direction: both queues stay in the cache */

struct shm_slot {
    struct frame frame;
    _Alignas(64) uint8_t payload[SHM_SLOT_BYTES];
};

struct shm_queue {
    _Alignas(64) _Atomic uint64_t published; /* written by the sender */
    _Alignas(64) _Atomic uint64_t consumed;  /* written by the receiver */
    struct shm_slot slots[SHM_SLOTS];
};

struct shm_side {
    _Alignas(64) _Atomic uint32_t sleeping; /* this side waits for its bell */
    _Atomic int32_t pid;                    /* this side's process */
    _Atomic uint32_t left;                  /* this side has said goodbye */
    _Atomic int64_t alive_ns;               /* CLOCK_MONOTONIC when this side last showed life */
};

/* Index 0 is the dialler's: sides[0] is it, queues[0] goes from it to the acceptor. */
struct shm_segment {
    struct shm_side sides[2];
    struct shm_queue queues[2];
};

/* A new segment, sealed: *ret_fd is the caller's to close. AS_E_IO. */
AS_MUST_CHECK as_status shm_segment_create(int *ret_fd, struct as_err *err);

/* Map a segment; *ret is the caller's, end with shm_segment_unmap().
 * AS_E_INVAL: not a sealed segment of this size. AS_E_IO: it cannot be mapped. */
AS_MUST_CHECK as_status shm_segment_map(int fd, struct shm_segment **ret, struct as_err *err);
void shm_segment_unmap(struct shm_segment *s);

#endif
