/* How much a trial at some point is worth: a function of what the models predict there.
 *
 * All values are minimised, in the models' units. An acquisition depends on a point only through
 * the posterior means and deviations of the models, in this order: the objectives, then the outcome
 * constraints, then, when there is one, the model of failures. So its gradient by the point follows
 * from those few numbers by the chain rule, and tests need no model.
 *
 *   UCB          -mu + beta sigma
 *   LOGEI        ln sigma + ln h((best - mu) / sigma)                          (special.h)
 *   PE           sigma + 10 min(0, threshold - (mu - sigma / 2)): exploration where a good value is
 *                still possible (X. Song et al., arXiv 2408.11527, minimised)
 *   EHVI         ln of the expected improvement of the hypervolume              (ehvi.h)
 *   FEASIBILITY 0: the search for a first feasible trial, by the limits alone Every limit on an
 *   outcome adds ln P(min <= outcome <= max) to each of them. */
#ifndef ASSAY_SEARCH_GP_ACQUISITION_H
#define ASSAY_SEARCH_GP_ACQUISITION_H

#include <stdbool.h>
#include <stddef.h>

#include "search/gp/ehvi.h"
#include "search/problem/problem.h"

#define ACQUISITION_MAX_LIMITS (SEARCH_MAX_OUTCOMES + 1) /* and the model of failures */
#define ACQUISITION_MAX_MODELS (SEARCH_MAX_OBJECTIVES + ACQUISITION_MAX_LIMITS)

typedef enum acquisition_kind {
    ACQUISITION_UCB,
    ACQUISITION_LOGEI,
    ACQUISITION_PE,
    ACQUISITION_EHVI,
    ACQUISITION_FEASIBILITY
} acquisition_kind;

struct acquisition {
    acquisition_kind kind;
    size_t n_objectives;  /* 1 except for EHVI and FEASIBILITY */
    double beta;          /* UCB */
    double best;          /* LOGEI: the value to improve on */
    double threshold;     /* PE */
    struct gp_ehvi *ehvi; /* EHVI; borrowed */
    size_t n_limits;
    double
        failure_weight; /* of the last limit; 0: it is no model of failures, and counts once. Where
                              a failure is likelier than not, what exceeds 1 counts 31 times */
    struct outcome_bound limits[ACQUISITION_MAX_LIMITS]; /* in the models' units; may be infinite */
};

/* The word used in reasons: "ucb", "logei", "pe", "ehvi", "feasibility". Never NULL. */
const char *acquisition_name(acquisition_kind k);

/* The value at a point where the models have these means and deviations (> 0), n_objectives +
 * n_limits of each. d_mean and d_sd receive its derivatives, or both are NULL. Finite for finite
 * input, except for limits that exclude each other (-infinity). Allocates nothing; with EHVI, one
 * thread at a time. */
double acquisition_value(const struct acquisition *a, const double *mean, const double *sd,
                         double *d_mean, double *d_sd);

/* ln P(min <= c <= max) for c normal, with its derivatives (which may not be NULL). */
double acquisition_log_within(const struct outcome_bound *b, double mean, double sd, double *d_mean,
                              double *d_sd);

#endif
