/* Functions drawn from the posterior of a Gaussian process.
 *
 * A draw is a whole function. It can be evaluated anywhere, any number of times, in O(rows) for
 * each point. It is a draw of the prior plus a correction by the observations (Matheron's rule):
 *   f(x) = g(x) + k(x, X) (K + v I)^-1 (y - g(X) - e),   e ~ N(0, v)
 * (J. Wilson, V. Borovitskiy, A. Terenin, P. Mostowsky, M. Deisenroth, "Efficiently sampling
 * functions from Gaussian process posteriors", ICML 2020). The prior is approximated by random
 * Fourier features, the correction is exact. So draws are right at the data. Between the data their
 * variance has an error of about 1 / sqrt(n_features) of the prior's variance. The spectral density
 * of the Matern-5/2 kernel is a multivariate t distribution of 5 degrees of freedom, that of the
 * squared exponential a normal distribution. Categories
 * are one-hot columns of height 1 / sqrt(2), which gives their part of the distance exactly
 * (covariance.h); an inactive one is all zeros.
 *
 * Draws under one key share their frequencies. The hyperparameters are the model's: draws do not
 * contain the uncertainty of these. Pending rows are not used. */
#ifndef ASSAY_SEARCH_REGRESSION_PATHS_H
#define ASSAY_SEARCH_REGRESSION_PATHS_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "search/regression/model.h"

#define GP_PATHS_BATCH 256 /* points that are evaluated together */

struct gp_paths;

/* Draw n_paths >= 1 functions; the first is not a draw but the posterior mean.
 *   m           borrowed: it must outlive the paths, and must not be built or observed again
 *   y           the gp_model_observed(m) values that it was given; borrowed
 *   n_features  frequencies, at least 1; 512 is good
 *   n_values    of each category column, how many values it can have (at least what the model's
 *               rows hold); NULL when there is no such column. Borrowed
 *   key, purpose  of the draws: rng_init(key, purpose)
 *   ret         owned by the caller, gp_paths_free()
 * AS_E_INVAL    a row of the model has a category that is not below n_values
 * AS_E_TOO_LARGE, AS_E_NOMEM
 * O(rows (rows + n_features) n_paths). Equal arguments give equal bits on one machine. */
AS_MUST_CHECK as_status gp_paths_create(const struct gp_model *m, const double *y, size_t n_paths,
                                        size_t n_features, const uint32_t *n_values, uint64_t key,
                                        uint64_t purpose, struct gp_paths **ret,
                                        struct as_err *err);
void gp_paths_free(struct gp_paths *p);
AS_DEFINE_FREEP(struct gp_paths, gp_paths_free)

/* The values of all functions at any number of points.
 *   points  categories below n_values, or GP_INACTIVE; borrowed
 *   ret     points->n x n_paths, row-major
 * Allocates nothing; uses scratch space in `p`, so one thread at a time. */
void gp_paths_evaluate(struct gp_paths *p, const struct gp_rows *points, double *ret);

#endif
