/* Population based training, second half: the parameters of a fork, from those of its parent.
 *
 * Each parameter that may change is drawn anew with the chance `resample`, over its whole range.
 * Else a number moves up or down, each as likely: on a log scale it is multiplied by the factor,
 * on a linear scale it moves by (factor - 1) of the range, by one level at least, and never out of
 * the range. An ordinal moves by such a share of its values. Values without an order (categorical,
 * bool) stay unless they are drawn anew. Parameters that may not change keep their values.
 *
 * Conditions hold: a parameter that a change makes active is drawn, one that it makes inactive has
 * no value. A configuration that the space does not allow is drawn again; after EXPLORE_DRAWS of
 * them the fork has its parent's parameters. Pure. */
#ifndef ASSAY_SEARCH_STOPPING_EXPLORE_H
#define ASSAY_SEARCH_STOPPING_EXPLORE_H

#include "base/status.h"
#include "search/space/config.h"
#include "search/space/space.h"
#include "search/stopping/pbt_spec.h"

#define EXPLORE_DRAWS 1000

/* The configuration of a fork.
 *   number  of the fork: the draws follow from the sweep's seed and it
 *   ret     owned by the caller
 * AS_E_NOMEM. O(parameters) for each draw. */
AS_MUST_CHECK as_status explore(const struct space *s, const struct pbt_spec *p, uint64_t seed,
                                uint64_t number, const struct config *parent, struct config **ret,
                                struct as_err *err);

#endif
