/* Crossings: what a branch gives with everything else as in the best trial.
 *
 * Trials inside a branch that only follow the model exploit the first good place of the parameters
 * that the branch opens, and the trial's value mixes what those give with what all others give. A
 * crossing takes the best trial's values for all parameters that it has, and enters the branch. So
 * it shows at once what the incumbent's values are worth there, and it compares with nothing but
 * the branch's own parameters in between. */
#ifndef ASSAY_SEARCH_GP_CROSSING_H
#define ASSAY_SEARCH_GP_CROSSING_H

#include <stdbool.h>
#include <stdint.h>

#include "search/gp/branch.h"
#include "search/regression/training_set.h"

/* Set ret_point (enc->n places, snapped, allowed, not tried) to the best trial, moved into the
 * branch. The parameters that the branch opens beyond those of the best trial have the values of
 * the branch's best trial, if `as_its_best` and that is new; otherwise those, of 64 Sobol points,
 * that lie farthest from the branch's trials in these parameters. `number` is the suggestion's
 * number and keys the draws. Returns false, with ret_point undefined, if there is no best trial or
 * no such point. O(64 n d). */
bool crossing_point(const struct training_set *s, const struct branch *b, uint64_t number,
                    bool as_its_best, double *ret_point);

#endif
