/* Points that no model chose: the initial design, and the fallback when no model can be fitted. */
#ifndef ASSAY_SEARCH_POPULATION_DESIGN_H
#define ASSAY_SEARCH_POPULATION_DESIGN_H

#include <stddef.h>
#include <stdint.h>

#include "search/regression/training_set.h"

/* Two points closer than this in every coordinate are one configuration. */
#define DESIGN_TOLERANCE 1e-9

/* How many trials are placed before a method learns: the spec's number. Otherwise 0.7 for each
 * parameter, at most 40 and at least 5, or 10 with categories; 5 in a space of floats (decision
 * 4004). */
size_t design_size(const struct training_set *s);

/* Point `index` of the design: the best trials of the first `most_earlier` earlier sweeps that fit
 * (search/prior/warm_start.h), then the space's centre (choices as Sobol has them; parameters with
 * a prior at its likeliest place), then Owen-scrambled Sobol points, every second of them moved to
 * where the priors say (search/prior/prior_dist.h), unless the results so far say that they are
 * wrong (trust.h). A point that is not allowed or was tried is drawn again under other scramblings.
 * If this fails, the space is searched one configuration at a time.
 *   ret_point  enc->n, snapped
 * AS_E_EXHAUSTED    every configuration of a finite space was tried
 * AS_E_UNSUPPORTED  no configuration that the constraints allow was found
 * AS_E_NOMEM */
AS_MUST_CHECK as_status design_point(const struct training_set *s, uint64_t index,
                                     size_t most_earlier, double *ret_point, struct as_err *err);

/* The same, without the centre: a new point somewhere. */
AS_MUST_CHECK as_status design_anywhere(const struct training_set *s, uint64_t index,
                                        double *ret_point, struct as_err *err);

#endif
