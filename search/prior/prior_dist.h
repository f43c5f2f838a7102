/* What the document says of the parameters (param_prior.h), as the methods use it: draws and
 * densities.
 *
 * A number's prior is a normal distribution of its place, cut at the ends of the range. Places are
 * those of encoding.h: 0 is the lowest value and 1 the highest, on the parameter's scale. The
 * influence of a prior fades: prior_dist_weight() falls with the number of results (C. Hvarfner, D.
 * Stoll, A. Souza, M. Lindauer, F. Hutter, L. Nardi, "piBO: Augmenting acquisition functions with
 * user beliefs for Bayesian optimization", ICLR 2022: acquisition x prior^(beta / n)). Unlike
 * theirs, the logarithm of the prior has a floor, so that a prior that is far off is overcome after
 * some tens of results and not after some hundreds.
 *
 * All functions are pure and allocate nothing. */
#ifndef ASSAY_SEARCH_PRIOR_PRIOR_DIST_H
#define ASSAY_SEARCH_PRIOR_PRIOR_DIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "search/space/encoding.h"
#include "search/space/param.h"
#include "search/space/space.h"

/* Measured in decision 4010: with 30 instead of 10, a wrong prior leaves -2.09 instead of -2.59
 * after 40 trials (mean log10 regret), with a floor of -20 instead of -5 it leaves -2.29. */
#define PRIOR_DIST_BETA 10.0 /* the weight is this over the number of results */
#define PRIOR_DIST_FLOOR 5.0 /* prior_dist_log() is never below minus this */

/* Has any parameter a prior? */
bool prior_dist_exists(const struct space *s);

/* The share of draws that the priors make after n draws or results: 10 of n + 11. */
double prior_dist_share(uint64_t n);

/* Is draw `index` of a design or of a random method made from the priors? Every second one of a
 * design is; of a method that learns nothing, prior_dist_share(index), by a hash of (seed, index).
 * */
bool prior_dist_draws_design(uint64_t index);
bool prior_dist_draws_random(uint64_t seed, uint64_t index);

/* The value at quantile u in [0, 1] of the parameter's prior, which must have one. */
union param_value prior_dist_value(const struct space_param *p, double u);

/* The same as a place of a point; and the likeliest place. Parameter i has a prior. */
double prior_dist_place(const struct encoding *e, size_t i, double u);
double prior_dist_mode(const struct encoding *e, size_t i);

/* Mean and deviation of a number's place. */
struct prior_dist_normal {
    double mean, deviation;
};
struct prior_dist_normal prior_dist_normal(const struct space_param *p);

/* The log of the prior's density at a place, relative to the flat one. */
double prior_dist_density(const struct encoding *e, size_t i, double place);

/* Minus the log of all active parameters' priors at a point, relative to their maximum; at least
 * 0. */
double prior_dist_distance(const struct encoding *e, const double *point);

/* How much prior_dist_log() counts after n results that agree with the priors (trust.h). */
double prior_dist_weight(size_t n);

/* Minus the distance of a point, with a floor: in [-PRIOR_DIST_FLOOR, 0]. ret_slope: NULL, or
 * [enc->n]: its gradient by the places is written there (0 for choices). */
double prior_dist_log(const struct encoding *e, const double *point, double *ret_slope);

#endif
