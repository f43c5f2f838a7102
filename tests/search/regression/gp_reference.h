/* The Gaussian process from the textbook, in long double and with O(n^3) for every call: the oracle
 * for search/regression. Rasmussen and Williams, 2006, equations 2.25, 2.26 and 2.30. */
#ifndef ASSAY_TESTS_SEARCH_REGRESSION_GP_REFERENCE_H
#define ASSAY_TESTS_SEARCH_REGRESSION_GP_REFERENCE_H

#include "base/rng.h"
#include "search/regression/covariance.h"

/* Random inputs for tests, with the arrays that they point to. Owned by the caller,
 * gp_case_free(). */
struct gp_case {
    struct gp_columns c;
    struct gp_rows rows;
    uint32_t *group;
    double *x, *y, *theta, *steps, *factors;
    int32_t *z;
};

/* n rows, some of them equal; real columns in [0,1], the last two of them in one group if there are
 * three or more; categories of up to five values or inactive; y a smooth function with noise; theta
 * at random near the default. A test may set c.is_smooth. */
struct gp_case *gp_case_create(size_t n, size_t n_real, size_t n_cat, uint64_t seed);

/* Every kind of kernel, for loops of GP_CASE_KINDS: smooth or not, with steps, or with factors of
 * the noise; smooth with factors is of unit variance. */
#define GP_CASE_KINDS 6
void gp_case_set_kind(struct gp_case *g, int kind);
void gp_case_free(struct gp_case *g);

/* Negative log posterior as in fit.h. */
double reference_nll(const struct gp_case *g, const double *theta);

/* Posterior at `p` (p->n points): mean from the first n_observed rows, joint covariance from all
 * rows (p->n x p->n, without noise). ret_constant: the profiled mean. */
void reference_posterior(const struct gp_case *g, size_t n_observed, const struct gp_rows *p,
                         double *ret_mean, double *ret_cov, double *ret_constant);

#endif
