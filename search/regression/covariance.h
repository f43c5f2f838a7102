/* The covariance of the Gaussian process, with a lengthscale per group of columns: Matern-5/2, or
 * the squared exponential for smooth columns.
 *
 *   k(p, q) = s2 (1 + a + a^2/3) exp(-a),  a = sqrt(5) r    (Matern-5/2)
 *   k(p, q) = s2 exp(-r^2 / 2)                              (squared exponential)
 *   r^2 = sum_j ((x_pj - x_qj) / l_group(j))^2 + sum_c t_c / l_c^2
 * over real columns j and category columns c; t_c is 0 for equal categories or both inactive, 1/2
 * between active and inactive, 1 for different ones. (C. Rasmussen, C. Williams, "Gaussian
 * processes for machine learning", 2006, eq. 4.17 and 4.9; the categorical part is a squared
 * distance of scaled one-hot vectors, so that k stays positive definite.)
 *
 * Rows may be measured at different steps of a training. A step r of at most R has the place
 * s = ln r / ln R (0 to 1), and with steps
 *   k(p, q) <- k(p, q) (exp(-|s_p - s_q| / l_s) + GP_TREND (1 - s_p) (1 - s_q))
 *              + c min(1 - s_p, 1 - s_q) + s2 GP_OWN_COURSE (1 - s_p), if p and q are the same row
 * The exponential is the covariance of an Ornstein-Uhlenbeck process (eq. B.29): how much a value
 * at one step says of another. Beside it stands a straight line through the last step, whose slope
 * differs from configuration to configuration: a curve that falls from one step to the next will
 * go on falling. The term with c is a random walk down from the last step, common to all
 * configurations: the course that learning curves share. Its variance is fitted apart from s2:
 * curves that fall far together say nothing of how much configurations differ. The last term is
 * noise that an early value has and a final one has not. All but the exponential are 0 at the last
 * step, where predictions are made.
 *
 * Parameters: theta = [ln l of the real groups, ln l of the category columns, ln s2, t], and then
 * ln l_s and ln c with steps; the noise variance is GP_NOISE_FLOOR + e^t. */
#ifndef ASSAY_SEARCH_REGRESSION_COVARIANCE_H
#define ASSAY_SEARCH_REGRESSION_COVARIANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "search/regression/category.h"
#include "search/regression/square.h"

#define GP_NOISE_FLOOR 1e-8
#define GP_INACTIVE (-1) /* category of an inactive parameter */
/* In units of s2, at the first step: the variance of what a value owes to its trial alone. */
#define GP_OWN_COURSE 0.5
/* In units of s2: the variance of that line at the first step. */
#define GP_TREND 8.0

/* What the columns of the inputs are. */
struct gp_columns {
    size_t n_real, n_cat;
    size_t n_groups;       /* lengthscales of real columns */
    const uint32_t *group; /* n_real numbers below n_groups; NULL: column j is group j. Borrowed */
    bool is_smooth;        /* the squared exponential, and the prior of lengthscales for it */
    bool is_unit;          /* a fit leaves s2 at 1, and expects some noise (fit.h) */
    bool is_exact;         /* values have no noise: a fit leaves it at its floor */
    bool has_steps;        /* rows have steps; false: gp_rows.s is not read */
};

/* n rows of inputs, borrowed. */
struct gp_rows {
    size_t n;
    const double *x;  /* n x n_real, row-major, finite; the priors are made for [0,1] */
    const int32_t *z; /* n x n_cat, row-major, >= 0 or GP_INACTIVE */
    const double *s;  /* n places of steps in [0,1]; NULL: all are 1, the last step */
    const double *v;  /* n factors of the noise variance, > 0; NULL: all are 1 */
};

static inline size_t gp_n_lengths(const struct gp_columns *c)
{
    return c->n_groups + c->n_cat;
}

/* Entries of theta. */
static inline size_t gp_n_theta(const struct gp_columns *c)
{
    return gp_n_lengths(c) + (c->has_steps ? 4 : 2);
}

/* AS_E_INVAL: a row has a number that is not finite, a category below -1, a step outside [0,1], or
 * a factor of the noise that is not positive; says where. */
AS_MUST_CHECK as_status gp_rows_check(const struct gp_columns *c, const struct gp_rows *rows,
                                      struct as_err *err);

/* The squared distance of rows a and b on the unit cube; two different categories are 1 apart. */
double gp_row_distance(const struct gp_columns *c, const struct gp_rows *rows, size_t a, size_t b);

/* theta prepared for evaluation. */
struct gp_kernel {
    const struct gp_columns *c; /* borrowed */
    double *inv_length;         /* n_real: 1 / l of each real column; the caller's memory */
    double *weight;             /* n_cat: 1 / l^2; the caller's memory */
    double s2, noise;
    double inv_step, course; /* 1 / l_s, and c; 0 without steps */
};

/* Set all other fields, and the arrays behind inv_length and weight. c, inv_length and weight are
 * set before the call. */
void gp_kernel_set(struct gp_kernel *k, const double *theta);

/* Rows prepared for evaluation. The caller's memory. */
struct gp_scaled {
    double *x;         /* n x ld: (x - 1/2) / l; entry n_real of each row is 1 (see gp_fit) */
    size_t ld;         /* > n_real */
    double *norm;      /* n: squared norms of the real columns in x */
    double *z;         /* n_cat x stride: category columns, one after the other; NULL: not needed */
    size_t stride;     /* >= n */
    bool has_inactive; /* false promises that no category of the rows is inactive */
    double *s;         /* n places of steps; NULL: all are 1. Not NULL for rows with steps */
};

static inline double gp_noise_factor(const struct gp_rows *rows, size_t i)
{
    return rows->v ? rows->v[i] : 1;
}

/* Scale rows from..rows->n-1 of `rows` into the same places of ret. */
void gp_scale(const struct gp_kernel *k, const struct gp_rows *rows, size_t from,
              const struct gp_scaled *ret);

/* Lower triangle (diagonal included, without noise) of the n x n covariance of the first n rows.
 *   z      n x n_cat, row-major: the rows' categories
 *   ret_k  n x ld, row-major; the entries above the diagonal stay unchanged
 *   ret_c  NULL, or as ret_k: c = -2 dk/d(r^2), which is s2 5/3 (1 + a) exp(-a), or k itself */
void gp_gram(const struct gp_kernel *k, const struct gp_scaled *rows, const int32_t *z, size_t n,
             double *ret_k, double *ret_c, size_t ld);

/* Up to so many rows squared differences are computed column by column; larger sets keep matrix
 * products (decision 4003 has the times). */
#define GP_SMALL_ROWS 128

/* The same for n <= GP_SMALL_ROWS rows, whose real columns are c, scaled. Equal up to rounding. */
void gp_gram_small(const struct gp_kernel *k, const struct gp_scaled *rows,
                   const struct gp_real_columns *c, const int32_t *z, size_t n, double *ret_k,
                   double *ret_c, size_t ld);

/* Covariances between m points and the first n rows: ret_k, ret_c as for gp_gram, m x n.
 *   p  m points, scaled; their categories are z, m x n_cat, row-major */
void gp_cross(const struct gp_kernel *k, const struct gp_scaled *rows, size_t n,
              const struct gp_scaled *p, const int32_t *z, size_t m, double *ret_k, double *ret_c,
              size_t ld);

/* The variance of row i before any observation, without noise. */
static inline double gp_variance(const struct gp_kernel *k, const struct gp_scaled *rows, size_t i)
{
    if (!k->c->has_steps || !rows->s)
        return k->s2;
    double left = 1 - rows->s[i];
    return k->s2 * (1 + GP_TREND * left * left) + (GP_OWN_COURSE * k->s2 + k->course) * left;
}

/* Lower triangle of dK / d ln l_s of n rows with steps, from their covariance: ret_d as ret_k of
 * gp_gram; the diagonal is 0. */
void gp_step_slopes(const struct gp_kernel *k, const struct gp_scaled *rows, size_t n,
                    const double *gram, double *ret_d, size_t ld);

/* k between rows i and j of `rows`, without noise: the formula above, term by term. */
double gp_covariance(const struct gp_kernel *k, const struct gp_rows *rows, size_t i, size_t j);

/* The category columns of rows that were scaled. */
static inline struct gp_categories gp_categories_of(const struct gp_kernel *k,
                                                    const struct gp_scaled *rows)
{
    return (struct gp_categories){rows->z, k->c->n_cat, rows->stride, rows->has_inactive};
}

#endif
