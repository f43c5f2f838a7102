/* The untried configurations of a finite space, one after another. */
#ifndef ASSAY_SEARCH_POPULATION_ENUMERATION_H
#define ASSAY_SEARCH_POPULATION_ENUMERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "search/regression/training_set.h"
#include "search/space/encoding.h"

/* The same limit as for a grid's cells, so that a space that is listed when its sweep is created
 * can be exhausted. */
#define ENUMERATION_MAX_VISITS UINT64_C(1000000)

/* An upper bound on the number of configurations; UINT64_MAX: too many to count, or not finite.
 * Conditions and constraints are ignored, so there may be fewer. O(parameters). */
uint64_t enumeration_bound(const struct encoding *e);

struct enumerated {
    size_t n;      /* untried configurations written */
    bool complete; /* there are no other untried configurations */
};

/* The first `max` allowed configurations that the set holds neither as seen nor as pending, in the
 * order of levels, parents first. Stops after ENUMERATION_MAX_VISITS configurations.
 *   ret_points  max x enc->n, snapped
 * AS_E_NOMEM */
AS_MUST_CHECK as_status enumerate_untried(const struct training_set *s, size_t max,
                                          double *ret_points, struct enumerated *ret,
                                          struct as_err *err);

#endif
