/* Stochastic dual coordinate ascent for linear models with a square penalty (Shalev-Shwartz and
 * Zhang 2013, 2014: Prox-SDCA, option V), as the local solver of CoCoA+ (Ma et al. 2015). Pure.
 *
 * The problem: P(W) = 1/n sum of loss_i(W^T x_i) + lambda/2 |W|^2, where a row x_i ends with the
 * constant 1, so that the last row of W is the bias. Each row has dual variables a_i, as many as
 * the model has outputs; they make the weights W(a) = 1/(lambda n) sum of x_i a_i^T. The dual
 * D(a) = - 1/n sum of conjugate_i(-a_i) - lambda/2 |W(a)|^2 is never above P, and the gap between
 * them bounds how far P(W(a)) is above the best one.
 *
 * Losses: the cross-entropy of softmax, for targets that are one 1 among 0, and the mean over the
 * outputs of squared errors. All vectors of a row are of `out` numbers. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_SDCA_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_SDCA_H

#include <stddef.h>
#include <stdint.h>

typedef enum sdca_loss { SDCA_SOFTMAX, SDCA_SQUARES } sdca_loss;

struct sdca_problem {
    sdca_loss loss;
    size_t in, out;  /* weights are [in + 1, out] */
    double lambda_n; /* lambda x n, of the rows of all workers */
    double workers;  /* that change their rows' duals at the same time, and add what that changes */
};

/* Rows of one worker; all borrowed. */
struct sdca_rows {
    size_t n;
    const float *x; /* [n, in] */
    const float *y; /* [n, out] */
};

/* The change of one row's duals, to change [out], where the weights are w. */
void sdca_row(const struct sdca_problem *p, const float *x, const float *y, const double *w,
              const float *alpha, double *change);

/* Changes the duals alpha [n, out] of all rows, one after another in `order` [n]. w [in + 1, out]:
 * the weights as this worker sees them, in which its own changes count for those of all workers;
 * carried on. change: [out], room. */
void sdca_pass(const struct sdca_problem *p, const struct sdca_rows *rows, const int32_t *order,
               double *w, float *alpha, double *change);

/* w [in + 1, out] += these rows' part of W(alpha). */
void sdca_add_weights(const struct sdca_problem *p, const struct sdca_rows *rows,
                      const float *alpha, double *w);

/* Sums over rows: of the loss at w, and of the conjugate at -alpha. z: [out], room. */
struct sdca_values {
    double loss, conjugate;
};
struct sdca_values sdca_values(const struct sdca_problem *p, const struct sdca_rows *rows,
                               const double *w, const float *alpha, double *z);

#endif
