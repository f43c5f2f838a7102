/* Whether the parameters have any influence that the values at rungs show.
 *
 * Where noise hides all differences, the model's predictions are flat, and what is left of an
 * acquisition is the deviation. It is largest at the edges of the space, so suggestions stand
 * there, and are worse than random ones where the optimum is inside. A sweep with early stopping
 * has many values of one step, which say whether there is something to follow: a Gaussian process
 * is fitted to them, and one whose rows all have one configuration. If the first explains the
 * values of no step clearly better, no influence is seen, and suggestions spread over the space
 * (decision 4033).
 *
 * The test is made when the results have grown by a quarter since the last one. What is known is
 * carried by the state of the method, so that a suggestion stays a pure function of the history and
 * of the state. */
#ifndef ASSAY_SEARCH_GP_INFLUENCE_H
#define ASSAY_SEARCH_GP_INFLUENCE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "search/regression/fit.h"
#include "search/regression/training_set.h"

struct influence {
    size_t n_tested; /* results at the last test; 0: there was none */
    bool is_unseen;  /* no step showed any; false before the first test */
};

/* What an earlier suggestion knew; anything that is not a valid state counts as nothing. */
struct influence influence_read(const json_t *state);

/* Test if that is due: with rungs, one objective and results enough. *work is made if it is NULL.
 * Values of a step whose fits fail count as if they showed an influence. AS_E_NOMEM. O(n^3) for
 * each step, with n at most 64. */
AS_MUST_CHECK as_status influence_learn(const struct training_set *s, struct gp_fit_work **work,
                                        struct influence *f, struct as_err *err);

/* A new reference, null if nothing is known; NULL: out of memory. */
json_t *influence_write(const struct influence *f);

#endif
