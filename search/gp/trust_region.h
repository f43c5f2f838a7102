/* A box around the best trial that grows with success and shrinks with failure. It serves many
 * dimensions, where a global model is not accurate enough.
 *
 * TuRBO-1 (D. Eriksson, M. Pearce, J. Gardner, R. Turner, M. Poloczek, "Scalable global
 * optimization via local Bayesian optimization", NeurIPS 2019): sides length * l_j / geomean(l),
 * length 0.8 at first, doubled after 3 successes (at most 1.6), halved after max(4, d) failures.
 * Below 2^-7 it closes: the whole space is searched again until the sweep stagnates again. */
#ifndef ASSAY_SEARCH_GP_TRUST_REGION_H
#define ASSAY_SEARCH_GP_TRUST_REGION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "search/gp/candidates.h"
#include "search/regression/model.h"
#include "search/regression/training_set.h"

#define TRUST_REGION_DIMS 20 /* no trust region up to this many length scales */

struct trust_region {
    bool is_on;
    double length;
    size_t successes, failures;
    size_t seen; /* number of results at the last update */
    double best; /* the best cost at the last update */
};

/* Read what an earlier suggestion left; any other input gives a region that is off. */
struct trust_region trust_region_read(const json_t *state);
json_t *trust_region_write(const struct trust_region *t); /* NULL when memory is out */

/* Apply the results since the last update: the region may open, grow, shrink or close. */
void trust_region_update(struct trust_region *t, const struct training_set *s);

/* The box under a model's length scales: lower and upper are [enc->n]. */
void trust_region_box(const struct trust_region *t, const struct training_set *s,
                      const struct gp_model *m, double *lower, double *upper);

#endif
