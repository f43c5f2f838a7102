/* Who takes part in a trial's training, at which epoch.
 *
 * The server decides the membership. Each change of it raises the epoch, and ranks are numbered
 * 0 to n-1 anew. A rank connects to all others of its world and of no other: connections and frames
 * carry attempt and epoch. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECTIVE_WORLD_H
#define ASSAY_TRIAL_RUNNER_COLLECTIVE_WORLD_H

#include <stdbool.h>

#include "base/status.h"
#include "trial-runner/collective/endpoint.h"

#define WORLD_MAX_RANKS 4096
#define WORLD_SECRET_BYTES 32

struct world {
    uint64_t attempt;                   /* identifies the attempt among all of the service */
    uint32_t epoch;                     /* rises with each change of the membership */
    int32_t rank, n;                    /* this rank, of n */
    const struct endpoint *peers;       /* n of them, by rank; borrowed */
    uint8_t secret[WORLD_SECRET_BYTES]; /* the attempt's; peers that lack it are refused */
    bool encrypt;                       /* what travels over TCP; equal on all ranks */
};

/* AS_E_INVAL: n or rank is out of range. */
AS_MUST_CHECK as_status world_check(const struct world *w, struct as_err *err);

#endif
