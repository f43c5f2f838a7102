/* The cap of PASHA: trials wait at a rung until the ranking there has proved unstable.
 *
 * O. Bohdal et al., "PASHA: efficient HPO and NAS with progressive resource allocation", ICLR 2023.
 * The cap begins at the second rung. When the trials at the cap have another ranking there than at
 * the rung below, up to groups of trials that differ by at most epsilon, the cap goes up by one.
 * Epsilon is the 90th percentile of the differences at the cap of pairs of trials that changed
 * their order from the rung before last to the last but one, and changed it back. */
#ifndef ASSAY_SEARCH_STOPPING_RANKING_CAP_H
#define ASSAY_SEARCH_STOPPING_RANKING_CAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define RANKING_LATEST 100 /* of the cap's trials that are compared */

/* Costs of one trial. */
struct ranked_trial {
    double before, below, here; /* at the rungs cap - 2 (NaN: it has none), cap - 1 and cap */
};

struct ranking_cap {
    uint32_t rung, last; /* the cap; the last rung of the specification */
    struct ranked_trial trials[RANKING_LATEST];
    size_t n;
};

/* A result at the cap; NaN is worst. The cap goes up if the ranking has changed. */
void ranking_cap_add(struct ranking_cap *c, const struct ranked_trial *t);

#endif
