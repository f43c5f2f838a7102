/* The hyperparameters of a Gaussian process: their priors, and the most probable ones.
 *
 * Minimises -log p(y | theta) - log p(theta) over ln l, ln s2 and t; the densities are of the
 * values themselves (no Jacobian), constants dropped. The mean is constant and profiled:
 * m = 1'K^-1 y / 1'K^-1 1. Priors, with lambda = sqrt(max(1, d/6)) for d lengthscales in all:
 *   real lengthscale  Gamma(3, 6/lambda)     -2 ln l + 6 l / lambda
 *   category          LogNormal(ln 2, 1)     (ln l - ln 2)^2 / 2
 *   of smooth columns, both instead:
 *                     LogNormal(sqrt(2) + ln(d) / 2, sqrt(3)), by value
 *   s2                Gamma(2, 0.15)         -ln s2 + 0.15 s2
 *   noise v           Gamma(1.1, 0.05)       -0.1 ln v + 0.05 v
 *   of unit columns, which have no s2, instead:
 *                     LogNormal(-4, 1) of e^t, by value
 *   l_s of steps      LogNormal(ln 2, 3)     (ln l - ln 2)^2 / 18, by ln l
 *   c of steps        LogNormal(0, 3)        (ln c)^2 / 18, by ln c
 * Those of smooth and of unit columns are of C. Hvarfner, E. Hellsten, L. Nardi, "Vanilla Bayesian
 * optimization performs great in high dimensions", ICML 2024, and of BoTorch, which follows it.
 * Bounds: l, l_s 0.005..100, s2 1e-3..100 (from 1e-6 on with steps; 1 of unit columns), c
 * 1e-3..100, e^t 1e-9..1, from 1e-4 on of unit columns, of exact columns 1e-9. The other priors
 * were chosen by measurement: bench/search-quality. */
#ifndef ASSAY_SEARCH_REGRESSION_FIT_H
#define ASSAY_SEARCH_REGRESSION_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "search/regression/covariance.h"

struct gp_fit_opts {
    const double *warm;    /* theta of an earlier fit to start from, or NULL. Borrowed */
    const double *scale;   /* gp_fit_scale of that fit, or NULL. Borrowed */
    bool cold;             /* also start from gp_theta_default; always without warm */
    size_t n_random;       /* also start from this many draws around the default */
    uint64_t key, purpose; /* of the draws: rng_init(key, purpose) */
    size_t max_iters;      /* of each start; 0: 100 */
    size_t max_evals;      /* of each start; 0: twice max_iters */
    double pg_tol, f_tol;  /* 0: 2e-2 (of the gradient times scale) and 1e-6 */
};

struct gp_fit_result {
    double nll;     /* the minimum: negative log posterior, constants dropped */
    size_t evals;   /* values with gradient, over all starts */
    size_t start;   /* which start won: in the order warm, default, random */
    bool converged; /* false: it reached max_iters or max_evals. Not an error */
};

/* Scratch of fits, kept between them: grows to 2 n^2 doubles (3 n^2 with steps) and stays there.
 * One thread at a time. */
struct gp_fit_work;
struct gp_fit_work *gp_fit_work_create(void); /* NULL: out of memory. Owned by the caller */
void gp_fit_work_free(struct gp_fit_work *w);
AS_DEFINE_FREEP(struct gp_fit_work, gp_fit_work_free)
size_t gp_fit_work_bytes(const struct gp_fit_work *w);

/* Fit to n >= 1 observations. A warm theta that is not finite is ignored.
 *   y          n values, standardised by the caller (warp.h), finite; borrowed
 *   ret_theta  gp_n_theta(c) values; untouched on failure
 *   ret        may be NULL
 * AS_E_NUMERIC  every start fails numerically or has no finite value
 * AS_E_INVAL    an input that is not finite, a category below -1, n = 0
 * AS_E_NOMEM
 * O(n^3) a value. The same inputs give the same bits on one machine. Sets OpenBLAS to one thread in
 * the whole process: more threads are slower at these sizes and change bits. */
AS_MUST_CHECK as_status gp_fit(const struct gp_columns *c, const struct gp_rows *rows,
                               const double *y, const struct gp_fit_opts *opts,
                               struct gp_fit_work *w, double *ret_theta, struct gp_fit_result *ret,
                               struct as_err *err);

/* The scale of each entry of theta, from the curvature that the last gp_fit with w met. With it the
 * next fit, a few trials later, needs half as many values. gp_n_theta values; a view of w until its
 * next use, so copy it. */
const double *gp_fit_scale(const struct gp_fit_work *w);

/* l = max(1, sqrt(d)/2) for real columns, 1.5 for categories, s2 = 1, v = 1e-3, l_s = 2, c = 1. */
void gp_theta_default(const struct gp_columns *c, double *ret_theta);

/* Bounds of theta, gp_n_theta(c) each. */
void gp_theta_bounds(const struct gp_columns *c, double *ret_lower, double *ret_upper);

/* The value and gradient that gp_fit minimises, at one theta: for tests and measurements. ret_grad
 * may be NULL. AS_E_NUMERIC: not positive definite past the largest jitter. AS_E_INVAL, AS_E_NOMEM.
 */
AS_MUST_CHECK as_status gp_fit_value(const struct gp_columns *c, const struct gp_rows *rows,
                                     const double *y, const double *theta, struct gp_fit_work *w,
                                     double *ret_nll, double *ret_grad, struct as_err *err);

#endif
