/* The part of a space where one parameter is active, as a map of the unit cube onto it.
 *
 * Each condition of a parameter, and of the parameters that it names, is on one ancestor. So the
 * part is a product: every ancestor is restricted to some of its values and all other parameters
 * are free. Parameters that are independent over the whole space stay independent in the part. */
#ifndef ASSAY_SEARCH_IMPORTANCE_REGION_H
#define ASSAY_SEARCH_IMPORTANCE_REGION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "base/status.h"
#include "search/space/space.h"

struct region;

/* Where parameter i is active. `s` is borrowed and must outlive it. Owned by the caller.
 * AS_E_NOMEM.
 */
AS_MUST_CHECK as_status region_create(const struct space *s, size_t i, struct region **ret,
                                      struct as_err *err);
void region_free(struct region *r);
AS_DEFINE_FREEP(struct region, region_free)

bool region_is_all(const struct region *r);                        /* nothing is held */
bool region_equal(const struct region *a, const struct region *b); /* of one space */

/* Move a point of the unit cube (one number in [0,1) for each parameter, as param_decode takes
 * them) into the region: uniform numbers become uniform over the remaining values, up to 1/4096. In
 * place. */
void region_map(const struct region *r, double *u);

#endif
