/* Replay the bounds of what is left to gain, and the best trials that are kept with them: compute
 * each stored one again, and check that it is the same to the bit.
 *
 * A bound is stored with its place in the order of ends (finish_seq), and is a function of the
 * document and of what had happened up to there (regret_bound.h). Limits of the sweep are no input,
 * so they may change. */
#ifndef ASSAY_SEARCH_REGRET_REPLAY_H
#define ASSAY_SEARCH_REGRET_REPLAY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "search/replay.h"

struct regret_step {
    int64_t completed; /* trials, as stored */
    bool is_same;      /* the place, the counts and the bits */
    char why[160];     /* what differs; empty if nothing does */
};

/* Compute the stored bound `i` of the list `items` again, which is what the API lists: ascending by
 * `completed`; those of scheduled counts follow as regret_bound_follows() says. AS_E_INVAL: it is
 * not such a list. AS_E_NOMEM. */
AS_MUST_CHECK as_status regret_replay_step(struct replay *r, const json_t *items, size_t i,
                                           struct regret_step *ret, struct as_err *err);

#endif
