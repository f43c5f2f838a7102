/* Shared by guide.c and guide_shift.c. */
#ifndef ASSAY_SEARCH_GP_GUIDE_PRIV_H
#define ASSAY_SEARCH_GP_GUIDE_PRIV_H

#include "search/gp/guide.h"
#include "search/regression/model.h"

/* Inner products of whitened values with the constant profiled out: <u, v> = u'K^-1 v less the
 * product of their parts along 1. */
struct whitening {
    const struct gp_columns *c;
    const struct gp_rows *rows;
    const double *y;
    size_t n;
    struct gp_model *model;
    double *one;      /* [n]: K^-1 1 */
    double *solved_y; /* [n]: K^-1 y */
    double sum;       /* 1'K^-1 1 */
    double *x;        /* [n x n_real]: scratch of guide_evaluate() */
};

/* a'b of n values. */
double guide_dot(const double *a, const double *b, size_t n);

/* <u, v>; solved: K^-1 u. */
double guide_product(const struct whitening *w, const double *solved, const double *u,
                     const double *v);

/* Set the values and the warp of guide k at its shift. slope: NULL, or [n x n_real]: the gradients
 * of the values by the real columns. AS_E_NOMEM. */
AS_MUST_CHECK as_status guide_evaluate(struct guides *g, size_t k, const struct whitening *w,
                                       double *slope, struct as_err *err);

/* Find the shift of guide k, and evaluate it there (guide_shift.c). *ret_freedom: by how much the
 * square of its weight's deviations must be higher, because the shift was chosen. AS_E_NOMEM. */
AS_MUST_CHECK as_status guide_find_shift(struct guides *g, size_t k, const struct whitening *w,
                                         double *ret_freedom, struct as_err *err);

#endif
