/* Which numbers have no effect while a choice has some value, learned from the trials.
 *
 * A space that declares no conditions says of a support vector machine that `gamma` is always
 * there; where `kernel` is linear, trials that differ in it alone are repeats. The trials of each
 * value of each choice are tested on their own: a Gaussian process with a lengthscale for each
 * number is fitted to them, and each number in turn is given the evidence of having no effect at
 * all against that of having an effect of usual strength. A number dies when the first is greater
 * by far and no weaker effect explains more; it revives as soon as an effect explains more. From
 * then on the model, the duplicates and the branches treat the pair as declared (dead_pair).
 *
 * With several choices a value may seem to silence a number because most of its trials have one
 * value of another choice, which does. So only choices that matter to the model are tested, and a
 * trial in which a choice that matters more has silenced the number says nothing of it to the
 * others (decision 4044).
 *
 * A value is tested when its trials have grown by a quarter since its last test, at most one value
 * with each suggestion. What is known is carried by the state of the method, so that all this is a
 * pure function of the history and of the state. */
#ifndef ASSAY_SEARCH_GP_RELEVANCE_H
#define ASSAY_SEARCH_GP_RELEVANCE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "search/regression/fit.h"
#include "search/regression/training_set.h"

/* One value of a choice. */
struct relevance_value {
    size_t choice;
    uint64_t level;
    size_t n_trials; /* at its last test, 0 before */
};

struct relevance {
    struct dead_pair *dead; /* owned, [n_dead] by param, choice, level */
    size_t n_dead;
    struct relevance_value *values; /* owned, [n_values]: all that may be tested */
    size_t n_values;
};
void relevance_done(struct relevance *r); /* accepts a zeroed one */

/* What an earlier suggestion knew; anything that is not a valid state counts as nothing. There is
 * nothing to learn with declared conditions, several objectives, earlier sweeps, or choices of
 * more than 16 values in all: then it has no values. ret was zeroed. AS_E_NOMEM. */
AS_MUST_CHECK as_status relevance_read(const struct search_spec *spec, const json_t *state,
                                       struct relevance *ret, struct as_err *err);

/* Test the value that is most due, if one is.
 *   theta  borrowed: hyperparameters of the last fit of the warped model (leading_choice.h)
 * *work is made if it is NULL. *ret_changed: other
 * pairs are dead now. A fit that fails changes nothing. AS_E_NOMEM. O(n^3 + d n^3 / 3) with n at
 * most 48. */
AS_MUST_CHECK as_status relevance_learn(const struct training_set *s, const json_t *theta,
                                        struct gp_fit_work **work, struct relevance *r,
                                        bool *ret_changed, struct as_err *err);

/* A new reference, null if nothing is known; NULL: out of memory. */
json_t *relevance_write(const struct relevance *r);

/* The trials of its value that a pair was judged by. */
size_t relevance_trials(const struct relevance *r, const struct dead_pair *pair);

#endif
