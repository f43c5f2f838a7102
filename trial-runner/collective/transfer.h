/* One message between this rank and a peer, on its way.
 *
 * Messages between two ranks arrive in the order in which they were posted. Both sides post them in
 * the same order, with equal step, tag and length, because all ranks run the same program; where
 * they differ, the receiver reports it. The owner keeps the transfer and its memory until it is
 * done, or until the mesh is freed. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECTIVE_TRANSFER_H
#define ASSAY_TRIAL_RUNNER_COLLECTIVE_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trial-runner/collective/reduction.h"

struct transfer {
    int32_t peer;
    bool sends;
    uint64_t step, tag;  /* of the training; which tensor */
    const char *what;    /* the tensor's name, for messages; borrowed; may be NULL */
    const uint8_t *from; /* sends: the bytes; receives: what is combined with them, or NULL */
    uint8_t *to;         /* receives: the bytes, or `from` (+) the bytes received */
    size_t length;       /* bytes, a multiple of the reduction's item */
    const struct reduction *reduce; /* receives: how they are combined; NULL stores them */
    bool received_first; /* receives: `to` = the bytes received (+) `from`, so that both ranks of an
                          * exchange add in one order */
    bool streams;        /* receives that are stored: nobody reads `to` soon (streaming_copy.h) */
    const size_t *ready; /* sends: so many bytes of `from` may go already; NULL: all of them */

    /* The mesh's: */
    size_t done;   /* bytes sent, or received and combined; another transfer's `ready` */
    size_t framed; /* sends: bytes in frames that have left or are about to */
    struct transfer *next;
};

static inline bool transfer_is_done(const struct transfer *t)
{
    return t->done == t->length;
}

#endif
