/* The posterior of a Gaussian process with given hyperparameters.
 *
 * Life of a model: create, then gp_model_build() with the rows, then gp_model_observe() with the
 * values, then predict; build and observe again as trials come and go.
 *
 * Same bits, cached or cold. The Cholesky factor is *defined* as: the first n_base rows factored at
 * once, each later row appended by a triangular solve, in order (cholesky.h). build() compares its
 * rows with the requested ones, keeps the common rows and computes the rest. A new model that is
 * built with the same arguments has the same bits. A change of y costs O(n^2).
 *
 * Pending trials go last: rows from n_observed on have no value. They enter as if observed at their
 * own posterior mean (T. Desautels, A. Krause, J. Burdick, "Parallelizing exploration-exploitation
 * tradeoffs in GP bandit optimization", JMLR 15, 2014), which leaves the mean as it is and shrinks
 * the deviation: the mean uses the first n_observed rows, the variance all of them. */
#ifndef ASSAY_SEARCH_REGRESSION_MODEL_H
#define ASSAY_SEARCH_REGRESSION_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "search/regression/covariance.h"

struct gp_model;

/* An empty model of such columns (copied, the map as well). Owned by the caller. AS_E_INVAL: a
 * group number is out of range, or a group has no column. AS_E_NOMEM. */
AS_MUST_CHECK as_status gp_model_create(const struct gp_columns *c, struct gp_model **ret,
                                        struct as_err *err);
void gp_model_free(struct gp_model *m);
AS_DEFINE_FREEP(struct gp_model, gp_model_free)
size_t gp_model_bytes(const struct gp_model *m);

/* Set the rows and theta (both copied). The observed rows come first, the pending ones last. The
 * first min(n_base, rows->n) rows are factored at once: pass the number that the last fit saw. The
 * values are dropped: call observe() next.
 * AS_E_NUMERIC  the covariance is not positive definite at the largest jitter, or theta overflows
 * AS_E_INVAL    an input that is not finite, or a category below -1
 * AS_E_NOMEM
 * After an error the model is empty. O(n_base^3 / 3) when the base changed, else O(n^2) for each
 * new row. Sets OpenBLAS to one thread, in the whole process (fit.h says why). */
AS_MUST_CHECK as_status gp_model_build(struct gp_model *m, const double *theta,
                                       const struct gp_rows *rows, size_t n_base,
                                       struct as_err *err);

/* Condition the mean on the values of the first n_observed rows (finite; borrowed). n_observed = 0:
 * the mean is 0 everywhere. AS_E_INVAL: more values than rows, or one that is not finite. O(n^2).
 */
AS_MUST_CHECK as_status gp_model_observe(struct gp_model *m, const double *y, size_t n_observed,
                                         struct as_err *err);

/* The contents of the model. Pointers are views of m until the next build or observe. */
size_t gp_model_rows(const struct gp_model *m);     /* observed and pending */
size_t gp_model_observed(const struct gp_model *m); /* with values */
const struct gp_columns *gp_model_columns(const struct gp_model *m);
const double *gp_model_theta(const struct gp_model *m);
double gp_model_constant(const struct gp_model *m);     /* the profiled mean */
const double *gp_model_alpha(const struct gp_model *m); /* K^-1 (y - mean), n_observed values */
const double *gp_model_x(const struct gp_model *m);     /* rows x n_real, as given */
const int32_t *gp_model_z(const struct gp_model *m);    /* rows x n_cat, as given */
double gp_model_length(const struct gp_model *m, size_t real_column); /* its lengthscale */
double gp_model_signal(const struct gp_model *m);                     /* s2 */
double gp_model_noise(const struct gp_model *m);                      /* v, with jitter if any */

/* The lower factor L of K + v I, row-major: row i starts at L + i * ld, its first i+1 entries
 * count. */
const double *gp_model_lower(const struct gp_model *m, size_t *ret_ld);

/* Scratch of predictions. A predict call never allocates: reserve first, for the largest batch. One
 * thread at a time; several threads may read a const model, each with its own scratch. */
struct gp_work;
struct gp_work *gp_work_create(void); /* NULL: out of memory. Owned by the caller */
void gp_work_free(struct gp_work *w);
AS_DEFINE_FREEP(struct gp_work, gp_work_free)
size_t gp_work_bytes(const struct gp_work *w);

/* Make room for batches of up to `batch` points of this model as it is built now (about 2 * batch *
 * rows doubles). AS_E_NOMEM. */
AS_MUST_CHECK as_status gp_work_reserve(struct gp_work *w, const struct gp_model *m, size_t batch,
                                        struct as_err *err);

/* Posterior mean and variance (of the function: without noise; at least 1e-12) at each of `p` rows.
 *   p         p->n <= the reserved batch (asserted), at the last step (p->s NULL, asserted for a
 *             model with steps); a model without rows has mean 0, variance s2
 *   ret_mean  p->n values
 *   ret_var   p->n values, or NULL: then only the mean is computed, without a solve
 * One dtrsm over the batch: O(n^2) a point. */
void gp_predict(const struct gp_model *m, struct gp_work *w, const struct gp_rows *p,
                double *ret_mean, double *ret_var);

/* The same with gradients with respect to the real columns, p->n x n_real each. Two dtrsm. */
void gp_predict_grad(const struct gp_model *m, struct gp_work *w, const struct gp_rows *p,
                     double *ret_mean, double *ret_var, double *ret_dmean, double *ret_dvar);

/* Joint posterior covariance (p->n x p->n, row-major, both triangles, without noise) and mean. */
void gp_predict_joint(const struct gp_model *m, struct gp_work *w, const struct gp_rows *p,
                      double *ret_mean, double *ret_cov);

/* For draws of whole functions by Matheron's rule: covariances k between points and the first
 * n_rows rows (p->n x n_rows), and b <- (K + v I)^-1 b over the first n_rows rows for each of the
 * n_rhs rows of b (n_rhs x n_rows, row-major). */
void gp_model_cross(const struct gp_model *m, struct gp_work *w, const struct gp_rows *p,
                    size_t n_rows, double *ret_k);
void gp_model_solve(const struct gp_model *m, double *b, size_t n_rhs, size_t n_rows);

/* Leave-one-out predictions of the observed rows, n_observed values each: mean, and variance with
 * noise (Rasmussen and Williams, eq. 5.12; the constant stays). y: what observe() got. O(n^3).
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status gp_model_loo(const struct gp_model *m, const double *y, double *ret_mean,
                                     double *ret_var, struct as_err *err);

#endif
