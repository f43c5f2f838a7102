/* What earlier sweeps say of where good configurations lie.
 *
 * A snapshot of each sweep's trials is part of the document of the sweep that uses it, so that a
 * suggestion is a function of the document and a replay needs no other sweep. The best trials, at
 * most WARM_START_GOOD of them, are the centres of kernels. The distance of a point is minus the
 * logarithm of their sum, relative to its highest value; it takes the place of the density of a
 * prior as in prior_dist.h. Only the ranks within one sweep count, so that sweeps with other scales
 * or metrics compare (D. Salinas, H. Shen, V. Perrone, "A quantile-based approach for
 * hyperparameter transfer learning", ICML 2020). How far each sweep is trusted depends on the
 * results (trust.h), as the weights of M. Feurer, B. Letham, F. Hutter, E. Bakshy, "Practical
 * transfer learning for Bayesian optimization", 2018, depend on ranking losses. */
#ifndef ASSAY_SEARCH_PRIOR_WARM_START_H
#define ASSAY_SEARCH_PRIOR_WARM_START_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "search/space/encoding.h"
#include "search/space/space.h"

#define WARM_START_SWEEPS 4   /* at most */
#define WARM_START_TRIALS 100 /* in a snapshot, at most */
#define WARM_START_GOOD 10    /* that are used, at most */
/* The share of the completed trials that are centres of kernels. The first form of decision 4011
 * has it ("the best tenth or so"); no measurement of other shares is recorded. */
#define WARM_START_SHARE 0.15

/* Is the trial of this rank, 0 being the best of n, part of a snapshot? All are of
 * WARM_START_TRIALS; of more, the better half of the places goes to the best, the others to ranks
 * that are evenly apart. */
bool warm_start_keeps(size_t rank, size_t n);

/* The largest magnitude of a cost that may be part of a snapshot (problem/credible.h), of the n
 * costs of a sweep in the order of its trials. AS_E_NOMEM. */
AS_MUST_CHECK as_status earlier_cost_limit(const double *costs, size_t n, double *ret,
                                           struct as_err *err);

struct warm_start_sweep {
    char *name;      /* owned */
    size_t n;        /* good trials, the best first; 0: none fits the space */
    size_t n_trials; /* that fit the space, the best first; the first n are the good ones */
    double *points;  /* [n_trials, d], owned; snapped */
    bool *known;     /* [n_trials, d], owned: the trial has this parameter; others do not count */
    double *costs;   /* [n_trials], owned; ascending */
    double *width;   /* [d], owned: of the kernels of numbers */
    double highest;  /* the logarithm of the sum of kernels at the best of the centres */
};

struct warm_start {
    size_t d, n;
    struct warm_start_sweep sweeps[WARM_START_SWEEPS];
    json_t *canonical; /* owned: the list as parsed, without what does not fit the space */
};

/* Read /search/prior: a list of {sweep, completed, trials: [{params, cost}], dropped}; small costs
 * are good. `completed` is how many trials of the sweep had completed. A value that the space's
 * parameter cannot take leaves the parameter out of the trial; a number outside of the range, and a
 * trial without any parameter of the space, are dropped and counted in the canonical list. `f` is
 * the object that has the field. *ret stays NULL without it. AS_E_INVAL, AS_E_TOO_LARGE with the
 * pointer; AS_E_NOMEM. Owned by the caller. */
AS_MUST_CHECK as_status warm_start_parse(struct json_fields *f, const struct space *space,
                                         struct warm_start **ret, struct as_err *err);
void warm_start_free(struct warm_start *e);
AS_DEFINE_FREEP(struct warm_start, warm_start_free)

/* How far a point is from the good trials of sweep k, which has some; at least 0. ret_slope: NULL,
 * or [d]: the gradient by the places is written there. O(n d). */
double warm_start_distance(const struct warm_start *w, size_t k, const struct encoding *e,
                           const double *point, double *ret_slope);

/* Move a point to the i-th best trial of sweep k, as far as that is known. */
void warm_start_place(const struct warm_start *w, size_t k, size_t i, double *point);

#endif
