/* The distribution of CMA-ES and its adaptation: cmaes.h has the sources. Numbers only; it knows
 * neither trials nor parameters. */
#ifndef ASSAY_SEARCH_CMAES_DISTRIBUTION_H
#define ASSAY_SEARCH_CMAES_DISTRIBUTION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"

struct distribution {
    size_t d;      /* dimensions */
    bool is_full;  /* else the covariance is diagonal */
    size_t lambda; /* of a generation; mu of them are used */
    size_t mu, generation;
    double *weights; /* [mu], descending, their sum is 1 */
    double mu_eff, c_sigma, d_sigma, c_c, c_1, c_mu, chi;
    double sigma;
    double *mean;          /* [d] */
    double *p_sigma, *p_c; /* [d]: the evolution paths */
    double *cov;           /* [d, d], or [d] */
    double *factor;        /* its Cholesky factor, lower; or its root */
    double *work;          /* [lambda + 2, d] */
};

/* A generation's default size for d dimensions: 4 + 3 ln d. */
size_t distribution_lambda(size_t d);

/* Identity times sigma^2 around `mean` ([d], borrowed). AS_E_NOMEM. ret: distribution_done(). */
AS_MUST_CHECK as_status distribution_make(size_t d, bool is_full, size_t lambda, double sigma,
                                          const double *mean, struct distribution *ret,
                                          struct as_err *err);
/* Multiply the deviation in a dimension of a new distribution. */
void distribution_scale(struct distribution *s, size_t j, double by);
void distribution_done(struct distribution *s); /* accepts a zeroed one */

/* Adapt to a generation. best: [mu, d], the better half, best first. */
void distribution_update(struct distribution *s, const double *best);

/* Draw a point; not bounded. least: [d], the least deviation in each dimension. */
void distribution_draw(const struct distribution *s, struct rng *r, const double *least,
                       double *ret);

/* The standard deviation in a dimension. */
double distribution_deviation(const struct distribution *s, size_t j);

#endif
