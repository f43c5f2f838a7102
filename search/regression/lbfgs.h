/* Minimise smooth functions in a box: projected L-BFGS, several starts at once.
 *
 * Two-loop recursion (J. Nocedal, "Updating quasi-Newton matrices with limited storage", Math.
 * Comp. 35, 1980) on the free variables, those not held at a bound by the gradient; projected line
 * search with the Armijo rule (D. Bertsekas, "Projected Newton methods", SIAM J. Control Optim. 20,
 * 1982) and quadratic interpolation. The starts advance together, so that each round is one call of
 * the objective with all points that need a value. This makes it fast on a Gaussian process. Each
 * start runs as it would alone, if the objective's values do not depend on the other points of the
 * batch. Nothing is allocated while iterating. */
#ifndef ASSAY_SEARCH_REGRESSION_LBFGS_H
#define ASSAY_SEARCH_REGRESSION_LBFGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "base/status.h"

/* Value and gradient at m points.
 *   x       m x n, row-major; borrowed, within the box
 *   start   m indices: the start to which each row belongs
 *   ret_f   m values; one that is not finite counts as infinitely bad
 *   ret_g   m x n gradients */
typedef void (*lbfgs_fn)(void *ctx, const double *x, const size_t *start, size_t m, double *ret_f,
                         double *ret_g);

struct lbfgs_problem {
    lbfgs_fn fn;
    void *ctx;
    size_t n;            /* variables */
    const double *lower; /* lower[i] <= upper[i], finite or infinite; equal: held fixed. Borrowed */
    const double *upper;
    size_t bounds_stride; /* 0: all starts share one box; n: start s has lower + s * n */
    const double *scale;  /* n: iterate in x / scale; NULL: 1. A lengthscale is a good scale */
};

struct lbfgs_opts {
    size_t max_iters; /* steps of each start */
    size_t max_evals; /* values of each start, its first included */
    double pg_tol;    /* done when no entry of the projected gradient, times its scale, is larger */
    double f_tol;     /* done when a step gains less than f_tol * max(1, |f|) */
};
#define LBFGS_DEFAULTS                                                                             \
    ((struct lbfgs_opts){.max_iters = 100, .max_evals = 200, .pg_tol = 1e-5, .f_tol = 1e-9})

/* How a start ended. None of them is an error. */
typedef enum lbfgs_end {
    LBFGS_GRADIENT, /* converged by pg_tol */
    LBFGS_VALUE,    /* converged by f_tol */
    LBFGS_STUCK,    /* no step along the descent direction gains anything */
    LBFGS_LIMIT,    /* max_iters or max_evals */
    LBFGS_BAD_START /* the first value or gradient is not finite */
} lbfgs_end;

struct lbfgs_result {
    double f; /* at the point left in x; infinite after LBFGS_BAD_START */
    size_t iters, evals;
    lbfgs_end end;
};

/* Room for up to max_starts starts of up to max_n variables. Owned by the caller.
 * AS_E_NOMEM. One thread at a time. */
struct lbfgs_work;
AS_MUST_CHECK as_status lbfgs_work_create(size_t max_n, size_t max_starts, struct lbfgs_work **ret,
                                          struct as_err *err);
void lbfgs_work_free(struct lbfgs_work *w);
AS_DEFINE_FREEP(struct lbfgs_work, lbfgs_work_free)

/* Minimise from each of `starts` points.
 *   x        starts x p->n: in, the starts (they are moved into the box first); out, the best
 *            points found
 *   results  starts entries
 *   w        made for at least p->n and `starts` (asserted)
 * The value at a returned point is never worse than at its start. */
void lbfgs_minimize(const struct lbfgs_problem *p, const struct lbfgs_opts *opts, double *x,
                    size_t starts, struct lbfgs_result *results, struct lbfgs_work *w);

/* After lbfgs_minimize: the diagonal of the inverse Hessian that start `start` estimated, in the
 * problem's own variables. Its root is a good `scale` for a problem like this one. Returns the
 * number of steps that it uses; 0: nothing is known, and ret_diagonal is untouched. O(n^2). */
size_t lbfgs_inverse_hessian(const struct lbfgs_problem *p, struct lbfgs_work *w, size_t start,
                             double *ret_diagonal);

#endif
