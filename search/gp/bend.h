/* On which scale a number acts, learned from the trials.
 *
 * A space that says nothing gives a learning rate the range 0 to 1, of which a model sees the
 * decades that matter as one place at its lower end. The trials are fitted by a Gaussian process;
 * then each number in turn is put on a logarithmic scale from its lower or its upper end, with
 * three rates (struct bent_number). The scale that explains the values best is fitted anew, and
 * taken if that explains them better by far. From then on everything that works with places, such
 * as candidates, moves, basins and models, sees the number on that scale.
 *
 * Numbers that are idle outside of a written-off part (left_part.h) are not tested.
 *
 * The test is repeated when the trials have grown by a tenth, and with the next suggestion after
 * a change. What is known is carried by the state of the method, so that all this is a pure
 * function of the history and of the state. */
#ifndef ASSAY_SEARCH_GP_BEND_H
#define ASSAY_SEARCH_GP_BEND_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "base/status.h"
#include "search/gp/left_part.h"
#include "search/regression/fit.h"
#include "search/regression/training_set.h"

struct bends {
    bool may_learn;
    struct bent_number bent[SPACE_MAX_PARAMS]; /* by parameter */
    size_t n_bent;
    size_t n_trials; /* at the last test that changed nothing, 0 before */
};

/* What an earlier suggestion knew; anything that is not a valid state counts as nothing. There is
 * nothing to learn with declared conditions, constraints, several objectives or earlier sweeps.
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status bends_read(const struct search_spec *spec, const json_t *state,
                                   struct bends *ret, struct as_err *err);

/* Test the numbers of a set that is encoded by b->bent, if a test is due. The idle ones keep their
 * scales. *work is made if it is NULL. *ret_changed: another number is bent, or one otherwise. A
 * fit that fails changes nothing. AS_E_NOMEM. O(d n^3) with n at most 48. */
AS_MUST_CHECK as_status bends_learn(const struct training_set *s, const struct idle_numbers *idle,
                                    struct gp_fit_work **work, struct bends *b, bool *ret_changed,
                                    struct as_err *err);

/* A new reference, null if nothing is known; NULL: out of memory. */
json_t *bends_write(const struct bends *b);

#endif
