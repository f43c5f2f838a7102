/* Earlier sweeps as a part of the mean of a surrogate.
 *
 * The values of a sweep that resembles an earlier one are, nearly, c + a w(m(x + shift)): m is the
 * earlier sweep's prediction (search/prior/warm_start_model.h). So a surrogate with guides models
 *   y(x) = sum_k a_k w_k(m_k(x + shift_k)) + Gaussian process
 * where w_k is the warp of the surrogate's own kind, learned from m_k at the sweep's own trials. So
 * two sweeps whose values are monotone functions of each other get nearly the same warped values.
 *
 * A weight a_k is a non-negative garrote (L. Breiman, "Better subset regression using the
 * nonnegative garrote", 1995): with the regression coefficient b of the whitened values and its
 * deviation s it is b (1 - (GUIDE_DEVIATIONS s / b)^2), and 0 where that is negative. So an
 * unrelated sweep has no influence at all most of the time, and a related one nearly its full one;
 * several are fitted by coordinate descent. Shifts (guide_shift.c) are found first, from values
 * that are standardised only. M. Feurer, B. Letham, F. Hutter, E. Bakshy, "Practical transfer
 * learning for Bayesian optimization", 2018, and D. Golovin et al., "Google Vizier", KDD 2017, add
 * means of earlier processes with other weights. */
#ifndef ASSAY_SEARCH_GP_GUIDE_H
#define ASSAY_SEARCH_GP_GUIDE_H

#include "search/prior/warm_start_model.h"
#include "search/regression/training_set.h"
#include "search/regression/warp.h"

/* Models of the earlier sweeps of one specification, made once. Zeroed: not made yet. */
struct guide_store {
    bool is_made;
    struct warm_start_model *models[WARM_START_SWEEPS]; /* NULL: there is nothing to learn */
    struct warm_start_model *plain[WARM_START_SWEEPS];  /* of standardised values; NULL: none */
};
void guide_store_done(struct guide_store *s); /* accepts a zeroed one */
size_t guide_store_bytes(const struct guide_store *s);

struct guides {
    size_t n, n_rows;
    size_t sweep[WARM_START_SWEEPS];                    /* which one of the specification */
    struct warm_start_model *models[WARM_START_SWEEPS]; /* views of the store */
    struct warm_start_model *plain[WARM_START_SWEEPS];  /* views of the store, for the shifts */
    struct gp_warp *warps[WARM_START_SWEEPS];           /* owned */
    double weights[WARM_START_SWEEPS];                  /* a_k */
    double *shift[WARM_START_SWEEPS];                   /* owned: [n_real], added to the features */
    gp_warp_kind kind;                                  /* of the warps */
    bool *shifts; /* [n_real], owned: the real columns that a shift moves */
    size_t n_shifts;
    double *values; /* owned: [n x n_rows]: w_k(m_k) at the rows */
};
void guides_done(struct guides *g); /* accepts a zeroed one */

/* The guides of a surrogate with values at these rows. None (n is 0) without earlier sweeps, with
 * several objectives, or from TRUST_MOST results on. Weights are 0. AS_E_NOMEM; ret untouched on
 * failure. */
AS_MUST_CHECK as_status guides_create(struct guide_store *store, const struct training_set *s,
                                      gp_warp_kind kind, const struct gp_rows *rows,
                                      struct guides *ret, struct as_err *err);

/* Set the shifts from the costs of the rows. *ret_gain: the highest logarithm, among the guides, of
 * the evidence with one less that without. AS_E_NOMEM. */
AS_MUST_CHECK as_status guides_find_shifts(struct guides *g, const struct gp_columns *c,
                                           const struct gp_rows *rows, const double *costs,
                                           double *ret_gain, struct as_err *err);

/* Set the weights for the values y of the rows and these hyperparameters, and subtract from y what
 * the guides explain. O(n^3). AS_E_NOMEM; AS_E_NUMERIC: as gp_model_build. */
AS_MUST_CHECK as_status guides_explain(struct guides *g, const struct gp_columns *c,
                                       const double *theta, const struct gp_rows *rows, double *y,
                                       struct as_err *err);

/* Weights and shifts become 0. */
void guides_drop(struct guides *g, const struct gp_columns *c);

/* Make room for batches of points. AS_E_NOMEM. */
AS_MUST_CHECK as_status guides_reserve(const struct guides *g, size_t batch, struct as_err *err);

/* Add what the guides say to the means at p->n points of a reserved batch, and to their gradients
 * by the real columns (NULL: none). */
void guides_add(const struct guides *g, const struct gp_columns *c, const struct gp_rows *p,
                double *mean, double *dmean);

#endif
