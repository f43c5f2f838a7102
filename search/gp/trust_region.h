/* A box around the best trial that grows with success and shrinks with failure: for many
 * dimensions, where a global model says little.
 *
 * TuRBO-1 (D. Eriksson, M. Pearce, J. Gardner, R. Turner, M. Poloczek, "Scalable global
 * optimization via local Bayesian optimization", NeurIPS 2019): sides length * l_j / geomean(l),
 * length 0.8 at first, doubled after 3 successes (at most 1.6), halved after max(4, d) failures.
 * Below 2^-7 it is given up: the whole space is searched again until the sweep stagnates again. */
#ifndef ASSAY_SEARCH_GP_TRUST_REGION_H
#define ASSAY_SEARCH_GP_TRUST_REGION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "search/gp/candidates.h"
#include "search/regression/model.h"
#include "search/regression/training_set.h"

#define TRUST_REGION_DIMS 20 /* up to this many length scales there is none */

struct trust_region {
    bool is_on;
    double length;
    size_t successes, failures;
    size_t seen; /* results when it was last looked at */
    double best; /* and the best cost */
};

/* What an earlier suggestion left; anything else is a region that is off. */
struct trust_region trust_region_read(const json_t *state);
json_t *trust_region_write(const struct trust_region *t); /* NULL when memory is out */

/* Take in the results since it was last looked at: it may open, grow, shrink or close. */
void trust_region_update(struct trust_region *t, const struct training_set *s);

/* The box under a model's length scales: lower and upper are [enc->n]. */
void trust_region_box(const struct trust_region *t, const struct training_set *s,
                      const struct gp_model *m, double *lower, double *upper);

#endif
