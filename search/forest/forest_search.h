/* The point where a forest expects the most improvement: what the method `forest` suggests.
 *
 * The forest (forest.h) is fitted to the warped values of the trials, and asked for the logarithm
 * of the expected improvement on the best of them. The search is that of SMAC (F. Hutter, H. Hoos,
 * K. Leyton-Brown, "Sequential model-based optimization for general algorithm configuration",
 * 2011, section 4.3): from the best trials and from the best of many random points it climbs to
 * the best neighbour, which differs in one parameter, until none is better. */
#ifndef ASSAY_SEARCH_FOREST_FOREST_SEARCH_H
#define ASSAY_SEARCH_FOREST_FOREST_SEARCH_H

#include <stdbool.h>

#include "base/rng.h"
#include "search/regression/training_set.h"

#define FOREST_SEARCH_RANDOM 400 /* random points */
#define FOREST_SEARCH_BEST 6     /* climbs that start at the best trials */
#define FOREST_SEARCH_OTHERS 4   /* and at the best random points */
#define FOREST_SEARCH_STEPS 20   /* of a climb, at most */

struct prior_weights; /* search/prior/trust.h */

struct forest_found {
    bool is_found;          /* false: every point that was looked at was tried or is not allowed */
    double value;           /* the acquisition there */
    double mean, deviation; /* what the forest predicts, in the unit of the costs */
};

/* Fit the forest and search it. Pending trials count as if they had what the others let expect.
 *   costs      [s->n]: small is good; not finite: worse than all others. Not read of pending trials
 *   priors     whose logarithm is added; NULL: none
 *   r          advanced
 *   ret_point  [s->enc->n], snapped, allowed and untried; meaningful when ret->is_found
 * Failed trials that say nothing of their place (training_set.h) are left out. At least one trial
 * has completed or stopped at a rung. All borrowed. O(trials x parameters x log trials) for the
 * forest, some thousand predictions for the search. AS_E_NOMEM. */
AS_MUST_CHECK as_status forest_search(const struct training_set *s, const double *costs,
                                      const struct prior_weights *priors, struct rng *r,
                                      double *ret_point, struct forest_found *ret,
                                      struct as_err *err);

#endif
