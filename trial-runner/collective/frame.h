/* The head of each piece of a message, as it travels.
 *
 * A message between two ranks is cut into frames of at most FRAME_PAYLOAD_MAX bytes, so that the
 * receiver can combine or pass on the first while the last is still on its way. The head says to
 * which attempt, epoch, step and tensor the bytes belong; a frame of another attempt or epoch, or
 * one that is damaged, never reaches the destination. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECTIVE_FRAME_H
#define ASSAY_TRIAL_RUNNER_COLLECTIVE_FRAME_H

#include <stdint.h>

#include "base/status.h"

#define FRAME_HEAD_BYTES 56
/* A multiple of every item's size, and of a cache line. With its head such a frame fits one segment
 * of the loopback device (65,536 bytes with the headers of IP and TCP): a frame of 64 KiB would be
 * one segment and a tail, and the tail costs as much as the segment. */
#define FRAME_PAYLOAD_MAX 65280

typedef enum frame_kind {
    FRAME_DATA = 1,
    FRAME_HEARTBEAT = 2, /* no payload: the sender lives */
    FRAME_GOODBYE = 3,   /* no payload: the sender sends nothing more */
} frame_kind;

struct frame {
    frame_kind kind;
    uint32_t epoch;
    uint64_t attempt;
    uint64_t step; /* of the training */
    uint64_t tag;  /* which tensor or bucket of the step; equal on both sides */
    uint64_t offset;
    uint32_t length;      /* payload bytes that follow, <= FRAME_PAYLOAD_MAX */
    uint32_t payload_sum; /* checksum32 of the payload; 0 where the transport cannot damage it, or
                           * encrypts */
};

void frame_encode(const struct frame *f, uint8_t ret[FRAME_HEAD_BYTES]);

/* AS_E_INVAL: no frame head, a wrong checksum, an unknown kind or a length past the limit. */
AS_MUST_CHECK as_status frame_decode(const uint8_t head[FRAME_HEAD_BYTES], struct frame *ret,
                                     struct as_err *err);

#endif
