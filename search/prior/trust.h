/* How far the results agree with the parameters' priors and with earlier sweeps, and what these add
 * to an acquisition.
 *
 * A prior that is wrong must not be believed for as long as one that is right. Kendall's rank
 * correlation between how likely the trials are by the priors and how good they turned out tells
 * the two apart after few trials, and for values on any scale. */
#ifndef ASSAY_SEARCH_PRIOR_TRUST_H
#define ASSAY_SEARCH_PRIOR_TRUST_H

#include <stdbool.h>
#include <stddef.h>

#include "search/prior/warm_start.h"
#include "search/regression/training_set.h"

/* Before TRUST_LEAST results a correlation says nothing: five in order have a chance of 1 in 120.
 * TRUST_MOST bounds the O(n^2) of trust.c; at 200 results the weight of a prior is 100/200^2 =
 * 0.0025 (decision 4010). */
#define TRUST_LEAST 5  /* results, before they are asked */
#define TRUST_MOST 200 /* results, after which no prior has a weight */

/* In [0, 1]: 1 with fewer than TRUST_LEAST results among the first `rows` trials of the set, and
 * else (1 + z) / 2 within these limits, where z is Kendall's correlation in units of its deviation
 * without any relation. Only the first TRUST_MOST results count. A trial that breaks a bound ranks
 * behind all that do not, a failed one last; of several objectives, dominance decides. 0 if no
 * parameter has a prior. O(n d + n^2) for n counted results. */
double trust_of(const struct training_set *s, size_t rows);

/* Have TRUST_LEAST results or more confirmed the priors or an earlier sweep: is the trust 1? */
bool trust_is_confirmed(const struct training_set *s);

/* The same of earlier sweep k of the specification, which must show that it helps: z - 1, within 0
 * and 1; 0 if none of its trials fits the space. */
double trust_of_warm_start(const struct training_set *s, size_t k);

/* How much counts now: prior_dist_weight() times the trust in each; 0 after TRUST_MOST results. */
struct prior_weights {
    double params, earlier[WARM_START_SWEEPS];
    bool any;                                          /* one of them is above 0 */
    double shift[WARM_START_SWEEPS][SPACE_MAX_PARAMS]; /* added to a point for the earlier sweep */
};
struct prior_weights trust_weights(const struct training_set *s);

/* The good trials of earlier sweep k have moved: look for those of a point at point + shift, and
 * set its weight by the trust in that. shift: [enc->n]; 0 for a choice. */
void trust_shift(struct prior_weights *w, const struct training_set *s, size_t k,
                 const double *shift);

/* The sum of weight x logarithm, each with the floor of prior_dist_log(). ret_slope: NULL, or
 * [enc->n]: the gradient by the places is written there. */
double trust_log(const struct prior_weights *w, const struct training_set *s, const double *point,
                 double *ret_slope);

#endif
