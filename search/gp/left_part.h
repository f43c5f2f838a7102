/* Parts of numbers' ranges that a sweep has written off, and that may hold the best.
 *
 * A number may matter only above a threshold of another one: a momentum where there are many
 * epochs, a dropout where a network is wide. Where it does not matter the problem has fewer
 * numbers, so that a sweep is soon at the best place there and leaves the rest of the space, whose
 * few trials are worse because nothing was tuned in them. What shows is that some numbers are
 * *idle*: they have no effect among the good trials (effect.h). Then the part of the space that was
 * left is searched as a sweep of its own: points that are spread over it first, later those of a
 * model of its trials alone.
 *
 * The part is one side of a threshold of one number, without the best trial: the split that
 * explains most of the variance of the results, as the first one of a regression tree (L. Breiman
 * et al., "Classification and regression trees", 1984). That a part of the space that looks worse
 * gets a share and a model of its own is after L. Wang, R. Fonseca, Y. Tian, "Learning search space
 * partition for black-box optimization using Monte Carlo tree search", NeurIPS 2020. */
#ifndef ASSAY_SEARCH_GP_LEFT_PART_H
#define ASSAY_SEARCH_GP_LEFT_PART_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "search/regression/fit.h"
#include "search/regression/training_set.h"
#include "search/space/space.h"

struct left_part {
    size_t param;        /* a number */
    double lower, upper; /* places of it: one is an end of its range, the other the threshold */
    size_t n_trials;     /* in it, pending and failed ones included */
};

/* What the last test of effects found, carried by the state of the method. */
struct idle_numbers {
    size_t n_tested; /* completed trials at that test; 0: there was none */
    size_t n, params[SPACE_MAX_PARAMS];
};

/* Anything that is not a valid state counts as no test. The result is null if there was none; NULL:
 * out of memory. */
struct idle_numbers idle_read(const json_t *state, const struct encoding *e);
json_t *idle_write(const struct idle_numbers *idle);

/* Is the number among the idle ones? */
bool idle_holds(const struct idle_numbers *idle, size_t param);

bool part_holds(const struct left_part *p, const double *point);

/* The part that deserves a trial. *ret_found is false while the sweep goes on improving, without a
 * clear split, without idle numbers, or when each part has had its trials and stands still. The
 * test of effects is made when one tenth more trials have completed. Only in a space without
 * conditions, categories, constraints, failures and earlier sweeps, for one objective and no rungs.
 * O(d n log n), and effects_weigh() where a test is due. AS_E_NOMEM. */
AS_MUST_CHECK as_status part_choose(const struct training_set *s, struct idle_numbers *idle,
                                    struct gp_fit_work **work, bool *ret_found,
                                    struct left_part *ret, struct as_err *err);

/* Among a few Sobol points in the part, keyed by the suggestion's number, the one that is farthest
 * from all trials there. ret_point: enc->n places, snapped, allowed and not tried; of no meaning
 * unless true is returned. O(n d). */
bool part_spread(const struct training_set *s, const struct left_part *p, uint64_t number,
                 double *ret_point);

#endif
