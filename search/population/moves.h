/* Changes of points, which methods that move from trial to trial share. */
#ifndef ASSAY_SEARCH_POPULATION_MOVES_H
#define ASSAY_SEARCH_POPULATION_MOVES_H

#include <stdbool.h>

#include "base/rng.h"
#include "search/space/encoding.h"

/* A place outside of [0, 1] comes back from the end that it passed. */
double moves_reflect(double x);

/* One of the other choices of a parameter, each as likely; `now` is its place. */
double moves_other_choice(struct rng *r, const struct encoded_param *p, double now);

/* Parameters that are active after a change and were not before get a place anywhere; then the
 * point is snapped. `before` and `after` are [n] (encoding_active). */
void moves_activate(const struct encoding *e, const bool *before, const bool *after, struct rng *r,
                    double *point);

#endif
