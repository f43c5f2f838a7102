/* The fit of the hyperparameters: prior, likelihood, gradient, starts.
 *
 * A value costs one Cholesky factor and one inverse. The gradient with respect to all lengthscales
 * then follows from one matrix product: with W = (K^-1 - alpha alpha') / 2 weighted by the
 * derivative of the kernel, the products of W with the inputs give every derivative at once. This
 * is far cheaper than one pass over the matrix for each lengthscale. The category columns and s2
 * have their own sums over the same matrix.
 *
 * The mean is profiled out, so it is not a variable. Scales learnt from the curvature of the last
 * fit are the main saving: a warm fit needs half as many values. See docs/decisions/4004. */
#include "search/regression/fit.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "search/regression/buf.h"
#include "search/regression/cholesky.h"
#include "search/regression/blas_thread_priv.h"
#include "search/regression/lbfgs.h"
#include "search/regression/vec_exp.h"

/* The scale of a parameter before any fit. Among 1, 0.5, 0.3 and 0.15 it needed the fewest values
 * in cold fits of 20 to 500 rows. */
#define FIRST_SCALE 0.3

/* The mixture for spaces with categories: `rastrigin` of ints and floats ends at 3.0 instead of
 * 5.4; in spaces of numbers alone it costs 0.08, 0.09, 0.01 and is not used (decision 4004). A
 * share of 0.3 or 0.5 from BoTorch's prior was no better (bench/notes/gp-tuning.md). */
#define SPARE_SHARE 0.4
#define SPARE_LENGTH 5.0

/* Of unit columns: BoTorch's. */
#define UNIT_NOISE_CENTRE (-4.0)
#define UNIT_NOISE_LEAST 1e-4

/* The median of l_s. With 2, values at a twentieth of the steps have a correlation of 0.7 with
 * those at the end; on learning curves of networks it is 0.6 to 0.9. */
#define STEP_LENGTH 2.0
#define STEP_SPREAD 3.0 /* wide: where early ranks mislead, early values must say nothing */

struct gp_fit_work {
    struct gp_buf a, c;    /* n x ld: K, then L, then K^-1; and c, then G */
    struct gp_buf inverse; /* of the diagonal blocks of L */
    struct gp_buf x, gx, norm, vectors, numbers;
    struct gp_buf z;       /* n_cat x ld */
    struct gp_buf columns; /* n_real x ld: x by column, of at most GP_SMALL_ROWS rows */
    struct gp_buf steps;   /* ld: places of steps; and slopes: n x ld, dK / d ln l_s */
    struct gp_buf slopes;
    struct lbfgs_work *lbfgs;
    size_t lbfgs_n, lbfgs_starts;
    const double *scale; /* of the last fit; a part of `numbers` */
};

/* A running fit. Its pointers refer to a gp_fit_work. */
struct fit {
    const struct gp_columns *c;
    const struct gp_rows *rows;
    const double *y;
    struct gp_kernel k;
    struct gp_scaled scaled;
    double *columns; /* NULL: more than GP_SMALL_ROWS rows */
    double *slopes;  /* NULL: without steps */
    double *a, *inverse, *cov_c, *gx, *w, *u, *alpha, *column_grad;
    size_t ld;
    double prior_rate; /* 6 / lambda */
};

struct gp_fit_work *gp_fit_work_create(void)
{
    return as_calloc(1, sizeof(struct gp_fit_work));
}

void gp_fit_work_free(struct gp_fit_work *w)
{
    if (!w)
        return;
    gp_buf_done(&w->a);
    gp_buf_done(&w->c);
    gp_buf_done(&w->inverse);
    gp_buf_done(&w->x);
    gp_buf_done(&w->gx);
    gp_buf_done(&w->norm);
    gp_buf_done(&w->vectors);
    gp_buf_done(&w->numbers);
    gp_buf_done(&w->z);
    gp_buf_done(&w->columns);
    gp_buf_done(&w->steps);
    gp_buf_done(&w->slopes);
    lbfgs_work_free(w->lbfgs);
    free(w);
}

size_t gp_fit_work_bytes(const struct gp_fit_work *w)
{
    return sizeof(double) * (w->a.cap + w->c.cap + w->inverse.cap + w->x.cap + w->gx.cap +
                             w->norm.cap + w->vectors.cap + w->numbers.cap + w->z.cap +
                             w->columns.cap + w->steps.cap + w->slopes.cap) +
           sizeof(*w);
}

void gp_theta_default(const struct gp_columns *c, double *ret_theta)
{
    size_t n = gp_n_lengths(c);
    for (size_t j = 0; j < n; j++)
        ret_theta[j] = j < c->n_groups ? log(fmax(1, 0.5 * sqrt((double)n))) : log(1.5);
    ret_theta[n] = 0;
    ret_theta[n + 1] = log(1e-3);
    if (c->has_steps)
        ret_theta[n + 2] = log(STEP_LENGTH), ret_theta[n + 3] = 0;
}

void gp_theta_bounds(const struct gp_columns *c, double *ret_lower, double *ret_upper)
{
    size_t n = gp_n_lengths(c);
    for (size_t j = 0; j < n; j++) {
        ret_lower[j] = log(0.005);
        ret_upper[j] = log(100);
    }
    /* with steps the deviation of all values is mostly that of the course */
    ret_lower[n] = log(c->has_steps ? 1e-6 : 1e-3), ret_upper[n] = log(100);
    ret_lower[n + 1] = log(1e-9), ret_upper[n + 1] = c->is_exact ? log(1e-9) : 0;
    if (c->is_unit)
        ret_lower[n] = ret_upper[n] = 0;
    if (c->is_unit && !c->is_exact)
        ret_lower[n + 1] = log(UNIT_NOISE_LEAST);
    if (c->has_steps)
        ret_lower[n + 2] = log(0.005), ret_upper[n + 2] = log(100);
    if (c->has_steps)
        ret_lower[n + 3] = log(1e-3), ret_upper[n + 3] = log(100);
}

/* The prior of a real lengthscale l: a Gamma(3, rate). It holds all lengthscales below about 2, so
 * that a parameter that does nothing keeps trials apart that are the same in effect. In spaces with
 * categories, where such parameters are common, l has with the probability SPARE_SHARE a wide
 * lognormal prior around SPARE_LENGTH times 6 / rate instead. In spaces of numbers alone this was
 * worse (docs/decisions/4004). theta: ln l. Adds the slope to *grad. */
static double negative_log_length_prior(double rate, bool has_spare, double theta, double *grad)
{
    double l = exp(theta), slope = 2 - rate * l;
    if (!has_spare) {
        *grad -= slope;
        return rate * l - 2 * theta;
    }
    double off = theta - log(SPARE_LENGTH * 6 / rate);
    double gamma = log(1 - SPARE_SHARE) + 3 * log(rate) - M_LN2 + 2 * theta - rate * l;
    double spare = log(SPARE_SHARE) - theta - 0.5 * log(2 * M_PI) - 0.5 * off * off;
    double most = fmax(gamma, spare), sum = exp(gamma - most) + exp(spare - most);
    double share = exp(gamma - most) / sum;
    *grad -= share * slope - (1 - share) * (1 + off);
    return -most - log(sum);
}

/* For all lengthscales of smooth columns: long ones, and the longer the more there are, so that
 * trials far from all others are predicted by the trend (docs/decisions/4006). */
static double negative_log_prior_smooth(const struct fit *f, const double *theta, double *grad)
{
    size_t n = gp_n_lengths(f->c);
    double centre = M_SQRT2 + 0.5 * log((double)n), value = 0;
    for (size_t j = 0; j < n; j++) {
        double off = theta[j] - centre;
        value += theta[j] + off * off / 6;
        grad[j] += 1 + off / 3;
    }
    return value;
}

static double negative_log_prior_lengths(const struct fit *f, const double *theta, double *grad)
{
    double value = 0;
    for (size_t j = 0; j < f->c->n_groups; j++)
        value += negative_log_length_prior(f->prior_rate, f->c->n_cat > 0, theta[j], &grad[j]);
    for (size_t j = f->c->n_groups; j < gp_n_lengths(f->c); j++) {
        double off = theta[j] - log(2);
        value += 0.5 * off * off;
        grad[j] += off;
    }
    return value;
}

/* Of the noise of unit columns: theta is the logarithm of e^t. */
static double negative_log_prior_noise(double theta, double *grad)
{
    double off = theta - UNIT_NOISE_CENTRE;
    *grad += 1 + off;
    return theta + 0.5 * off * off;
}

/* Negative log prior, and its gradient added to grad. */
static double negative_log_prior(const struct fit *f, const double *theta, double *grad)
{
    size_t n = gp_n_lengths(f->c);
    double value = f->c->is_smooth ? negative_log_prior_smooth(f, theta, grad)
                                   : negative_log_prior_lengths(f, theta, grad);
    if (f->c->is_unit) {
        value += negative_log_prior_noise(theta[n + 1], &grad[n + 1]);
    } else {
        double s2 = exp(theta[n]), e = exp(theta[n + 1]), v = GP_NOISE_FLOOR + e;
        value += 0.15 * s2 - theta[n] + 0.05 * v - 0.1 * log(v);
        grad[n] += 0.15 * s2 - 1;
        grad[n + 1] += e * (0.05 - 0.1 / v);
    }
    if (f->c->has_steps) {
        double off = theta[n + 2] - log(STEP_LENGTH), course = theta[n + 3];
        value += 0.5 * (off * off + course * course) / (STEP_SPREAD * STEP_SPREAD);
        grad[n + 2] += off / (STEP_SPREAD * STEP_SPREAD);
        grad[n + 3] += course / (STEP_SPREAD * STEP_SPREAD);
    }
    return value;
}

static struct gp_real_columns columns_of(const struct fit *f)
{
    return (struct gp_real_columns){f->columns, f->c->n_real, f->ld};
}

/* Fill f->columns from the scaled rows. */
static void set_columns(struct fit *f)
{
    for (size_t i = 0; i < f->rows->n; i++)
        for (size_t j = 0; j < f->c->n_real; j++)
            f->columns[j * f->ld + i] = f->scaled.x[i * f->scaled.ld + j];
}

static void fill_covariance(struct fit *f)
{
    struct gp_real_columns columns = columns_of(f);
    size_t n = f->rows->n;
    if (f->columns)
        gp_gram_small(&f->k, &f->scaled, &columns, f->rows->z, n, f->a, f->cov_c, f->ld);
    else
        gp_gram(&f->k, &f->scaled, f->rows->z, n, f->a, f->cov_c, f->ld);
}

/* Factor the covariance under f->k with the least jitter that works; false when none does.
 * ret_noise: noise and jitter. */
static bool factor_covariance(struct fit *f, double *ret_noise)
{
    size_t n = f->rows->n;
    gp_scale(&f->k, f->rows, 0, &f->scaled);
    if (f->columns)
        set_columns(f);
    for (int step = 0; step < GP_JITTER_STEPS; step++) {
        double noise = f->k.noise + gp_jitter(step, f->k.s2);
        fill_covariance(f);
        if (f->slopes)
            gp_step_slopes(&f->k, &f->scaled, n, f->a, f->slopes, f->ld);
        for (size_t i = 0; i < n; i++)
            f->a[i * f->ld + i] += noise * gp_noise_factor(f->rows, i);
        *ret_noise = noise;
        if (gp_cholesky(f->a, n, f->ld, f->inverse))
            return true;
    }
    return false;
}

/* Fill w = L^-1 y - m L^-1 1, and alpha = L^-T w; returns w'w. */
static double solve_weights(struct fit *f)
{
    size_t n = f->rows->n;
    memcpy(f->w, f->y, n * sizeof(double));
    for (size_t i = 0; i < n; i++)
        f->u[i] = 1;
    gp_solve_lower(f->a, n, f->ld, f->inverse, f->w, 2, f->ld); /* w and u lie side by side */
    double m =
        blas_need()->ddot((int)n, f->u, 1, f->w, 1) / blas_need()->ddot((int)n, f->u, 1, f->u, 1);
    blas_need()->daxpy((int)n, -m, f->u, 1, f->w, 1);
    memcpy(f->alpha, f->w, n * sizeof(double));
    gp_solve_upper(f->a, n, f->ld, f->inverse, f->alpha, 1, f->ld);
    return blas_need()->ddot((int)n, f->w, 1, f->w, 1);
}

static double log_diagonal(const struct fit *f)
{
    double sum = 0;
    for (size_t i = 0; i < f->rows->n; i++)
        sum += log(f->a[i * f->ld + i]);
    return sum;
}

/* c[j] <- (kinv[j] - own alpha[j]) / 2 * c[j]: a row of G. */
CPU_CLONES static void weigh_row(double *restrict c, const double *restrict kinv,
                                 const double *restrict alpha, double own, size_t n)
{
    for (size_t j = 0; j < n; j++)
        c[j] *= 0.5 * (kinv[j] - own * alpha[j]);
}

/* Turn L in a into K^-1 and c into G = W .* c with zeros from the diagonal to the next multiple of
 * 4; returns tr W, each row by its factor of the noise. */
static double make_g(struct fit *f)
{
    size_t n = f->rows->n;
    double trace = 0;
    gp_cholesky_invert(f->a, n, f->ld);
    for (size_t i = 0; i < n; i++) {
        const double *row = f->a + i * f->ld;
        weigh_row(f->cov_c + i * f->ld, row, f->alpha, f->alpha[i], i);
        for (size_t j = i; j == i || j % 4; j++)
            f->cov_c[i * f->ld + j] = 0;
        trace += 0.5 * gp_noise_factor(f->rows, i) * (row[i] - f->alpha[i] * f->alpha[i]);
    }
    return trace;
}

/* Sums over the pairs i > j of rows of g_ij (x_i - x_j)^2 in each real column, as
 * sum_i x_i (x_i g_i - (G X)_i), where the extra column of ones gives g = G 1. */
static void sum_by_product(struct fit *f)
{
    size_t n = f->rows->n, d = f->c->n_real, ld = f->scaled.ld;
    blas_need()->dsymm(CblasRowMajor, CblasLeft, CblasLower, (int)n, (int)(d + 1), 1, f->cov_c,
                       (int)f->ld, f->scaled.x, (int)ld, 0, f->gx, (int)ld);
    memset(f->column_grad, 0, d * sizeof(double));
    for (size_t i = 0; i < n; i++) {
        const double *x = f->scaled.x + i * ld, *gx = f->gx + i * ld;
        for (size_t j = 0; j < d; j++)
            f->column_grad[j] += x[j] * (x[j] * gx[d] - gx[j]);
    }
}

/* dNLL / d ln l of the real columns, added up by group. */
static void real_gradient(struct fit *f, double *grad)
{
    size_t d = f->c->n_real;
    struct gp_real_columns columns = columns_of(f);
    if (d == 0)
        return;
    if (f->columns)
        gp_square_sums(&columns, f->rows->n, f->cov_c, f->ld, f->column_grad);
    else
        sum_by_product(f);
    for (size_t j = 0; j < d; j++)
        grad[f->c->group ? f->c->group[j] : j] += 2 * f->column_grad[j];
}

/* dNLL / d ln l of the category columns. */
static void category_gradient(struct fit *f, double *grad)
{
    struct gp_categories categories = gp_categories_of(&f->k, &f->scaled);
    gp_category_sums(&categories, f->rows->n, f->cov_c, f->ld, f->column_grad);
    for (size_t j = 0; j < f->c->n_cat; j++)
        grad[f->c->n_groups + j] += 2 * f->k.weight[j] * f->column_grad[j];
}

/* dNLL / d ln l_s, and *ret_course: dNLL / d ln c. The sums of W .* dK of each, when a has K^-1. */
static double step_gradient(const struct fit *f, double *ret_course)
{
    double sum = 0, course = 0;
    for (size_t i = 0; i < f->rows->n; i++) {
        const double *inverse = f->a + i * f->ld, *slope = f->slopes + i * f->ld;
        const double *s = f->scaled.s, own = f->alpha[i];
        for (size_t j = 0; j < i; j++) {
            double w = inverse[j] - own * f->alpha[j];
            sum += w * slope[j];
            course += w * (1 - (s[j] < s[i] ? s[i] : s[j]));
        }
        course += 0.5 * (inverse[i] - own * own) * (1 - s[i]);
    }
    *ret_course = f->k.course * course;
    return sum;
}

/* Value and gradient at theta; NaN when the covariance cannot be factored. */
static double value_at(struct fit *f, const double *theta, double *grad)
{
    size_t n = f->rows->n, lengths = gp_n_lengths(f->c);
    double noise;
    memset(grad, 0, gp_n_theta(f->c) * sizeof(double));
    gp_kernel_set(&f->k, theta);
    if (!isfinite(f->k.s2) || !factor_covariance(f, &noise))
        return NAN;
    double quad = solve_weights(f);
    double value = 0.5 * quad + log_diagonal(f) + negative_log_prior(f, theta, grad);
    double trace = make_g(f);
    real_gradient(f, grad);
    category_gradient(f, grad);
    /* sum W .* K over K without noise: tr(W (K + noise)) = (n - quad) / 2 */
    grad[lengths] += 0.5 * ((double)n - quad) - noise * trace;
    grad[lengths + 1] += (f->k.noise - GP_NOISE_FLOOR) * trace;
    if (f->slopes) {
        double course;
        grad[lengths + 2] += step_gradient(f, &course);
        grad[lengths + 3] += course;
        grad[lengths] -= course; /* K has c, which does not grow with s2 */
    }
    return value;
}

/* Slices of w->numbers, gp_ld(n_theta + n_real) each. */
enum {
    ROW_LENGTH,
    ROW_WEIGHT,
    ROW_COLUMN_GRAD,
    ROW_LOWER,
    ROW_UPPER,
    ROW_GRAD,
    ROW_SCALE,
    ROW_STARTS /* and as many more as there are starts */
};

static as_status reserve_scratch(struct gp_fit_work *w, const struct gp_columns *c, size_t n,
                                 size_t starts, struct as_err *err)
{
    size_t ld = gp_ld(n), ldx = gp_ld(c->n_real + 1), theta = gp_n_theta(c);
    as_status st;
    if ((st = gp_buf_reserve(&w->a, n, ld, err)) < 0 ||
        (st = gp_buf_reserve(&w->c, n, ld, err)) < 0 ||
        (st = gp_buf_reserve(&w->inverse, 1, gp_inverse_size(n), err)) < 0 ||
        (st = gp_buf_reserve(&w->x, n, ldx, err)) < 0 ||
        (st = gp_buf_reserve(&w->gx, n, ldx, err)) < 0 ||
        (st = gp_buf_reserve(&w->norm, 1, ld, err)) < 0 ||
        (st = gp_buf_reserve(&w->z, ld, c->n_cat, err)) < 0 ||
        (n <= GP_SMALL_ROWS && (st = gp_buf_reserve(&w->columns, ld, c->n_real, err)) < 0) ||
        (c->has_steps && ((st = gp_buf_reserve(&w->steps, 1, ld, err)) < 0 ||
                          (st = gp_buf_reserve(&w->slopes, n, ld, err)) < 0)) ||
        (st = gp_buf_reserve(&w->vectors, 3, ld, err)) < 0 ||
        (st = gp_buf_reserve(&w->numbers, starts + ROW_STARTS, gp_ld(theta + c->n_real), err)) < 0)
        return st;
    if (!w->lbfgs || theta > w->lbfgs_n || starts > w->lbfgs_starts) {
        lbfgs_work_free(w->lbfgs);
        w->lbfgs = NULL;
        if ((st = lbfgs_work_create(theta, starts, &w->lbfgs, err)) < 0)
            return st;
        w->lbfgs_n = theta;
        w->lbfgs_starts = starts;
    }
    return AS_OK;
}

static as_status check_input(const struct gp_columns *c, const struct gp_rows *rows,
                             const double *y, struct as_err *err)
{
    if (rows->n == 0)
        return as_fail(err, AS_E_INVAL, "there are no observations to fit to");
    for (size_t i = 0; i < rows->n; i++)
        if (!isfinite(y[i]))
            return as_fail(err, AS_E_INVAL, "value %zu is %g, must be finite", i, y[i]);
    return gp_rows_check(c, rows, err);
}

static double *number_slice(const struct gp_fit_work *w, const struct gp_columns *c, size_t row)
{
    return w->numbers.p + row * gp_ld(gp_n_theta(c) + c->n_real);
}

static struct fit fit_over(const struct gp_columns *c, const struct gp_rows *rows, const double *y,
                           struct gp_fit_work *w)
{
    size_t ld = gp_ld(rows->n), d = gp_n_lengths(c);
    gp_blas_one_thread();
    return (struct fit){
        .c = c,
        .rows = rows,
        .y = y,
        .k = {.c = c,
              .inv_length = number_slice(w, c, ROW_LENGTH),
              .weight = number_slice(w, c, ROW_WEIGHT)},
        .scaled = {w->x.p, gp_ld(c->n_real + 1), w->norm.p, w->z.p, ld,
                   gp_category_any_inactive(rows->z, rows->n * c->n_cat),
                   c->has_steps ? w->steps.p : NULL},
        .columns = rows->n <= GP_SMALL_ROWS ? w->columns.p : NULL,
        .slopes = c->has_steps ? w->slopes.p : NULL,
        .a = w->a.p,
        .inverse = w->inverse.p,
        .cov_c = w->c.p,
        .gx = w->gx.p,
        .w = w->vectors.p,
        .u = w->vectors.p + ld,
        .alpha = w->vectors.p + 2 * ld,
        .column_grad = number_slice(w, c, ROW_COLUMN_GRAD),
        .ld = ld,
        .prior_rate = 6 / sqrt(fmax(1, (double)d / 6)),
    };
}

static void fit_objective(void *ctx, const double *x, const size_t *start, size_t m, double *ret_f,
                          double *ret_g)
{
    struct fit *f = ctx;
    size_t n = gp_n_theta(f->c);
    (void)start;
    for (size_t i = 0; i < m; i++)
        ret_f[i] = value_at(f, x + i * n, ret_g + i * n);
}

as_status gp_fit_value(const struct gp_columns *c, const struct gp_rows *rows, const double *y,
                       const double *theta, struct gp_fit_work *w, double *ret_nll,
                       double *ret_grad, struct as_err *err)
{
    as_status st = check_input(c, rows, y, err);
    if (st < 0 || (st = reserve_scratch(w, c, rows->n, 1, err)) < 0)
        return st;
    struct fit f = fit_over(c, rows, y, w);
    double *grad = number_slice(w, c, ROW_GRAD), value = value_at(&f, theta, grad);
    if (!isfinite(value))
        return as_fail(err, AS_E_NUMERIC,
                       "the covariance of %zu rows is not positive definite, even with a jitter of "
                       "%g of its scale",
                       rows->n, gp_jitter(GP_JITTER_STEPS - 1, 1));
    *ret_nll = value;
    if (ret_grad)
        memcpy(ret_grad, grad, gp_n_theta(c) * sizeof(double));
    return AS_OK;
}

/* Draw around the default: up to a factor of 2 either way in the lengthscales (also that of steps),
 * s2 and c, 4 in the noise. */
static void random_start(const struct gp_columns *c, struct rng *r, double *ret)
{
    size_t n = gp_n_lengths(c);
    gp_theta_default(c, ret);
    for (size_t j = 0; j <= n; j++)
        ret[j] += 0.7 * rng_normal(r);
    ret[n + 1] += 1.4 * rng_normal(r);
    for (size_t j = n + 2; j < gp_n_theta(c); j++)
        ret[j] += 0.7 * rng_normal(r);
}

static size_t set_starts(const struct gp_columns *c, const struct gp_fit_opts *o, bool warm,
                         double *ret)
{
    size_t n = gp_n_theta(c), s = 0;
    struct rng r;
    rng_init(&r, o->key, o->purpose);
    if (warm)
        memcpy(ret + n * s++, o->warm, n * sizeof(double));
    if (!warm || o->cold)
        gp_theta_default(c, ret + n * s++);
    for (size_t i = 0; i < o->n_random; i++)
        random_start(c, &r, ret + n * s++);
    return s;
}

static bool is_usable(const double *theta, size_t n)
{
    for (size_t j = 0; theta && j < n; j++)
        if (!isfinite(theta[j]))
            return false;
    return theta != NULL;
}

/* Limit a scale: not longer than is sensible for the parameter's range, not shorter than any
 * curvature needs. A scale that is not a number becomes the upper limit. */
static double sane_scale(double scale)
{
    return scale >= 1e-2 ? fmin(scale, 1) : scale > 0 ? 1e-2 : 1;
}

static as_status take_best(const struct gp_columns *c, const struct lbfgs_result *results,
                           const double *thetas, size_t starts, double *ret_theta,
                           struct gp_fit_result *ret, struct as_err *err)
{
    size_t best = 0, evals = 0;
    for (size_t s = 0; s < starts; s++) {
        evals += results[s].evals;
        if (results[s].f < results[best].f)
            best = s;
    }
    if (!isfinite(results[best].f))
        return as_fail(err, AS_E_NUMERIC,
                       "the covariance is not positive definite at any of %zu starts", starts);
    memcpy(ret_theta, thetas + best * gp_n_theta(c), gp_n_theta(c) * sizeof(double));
    *ret = (struct gp_fit_result){results[best].f, evals, best, results[best].end != LBFGS_LIMIT};
    return AS_OK;
}

const double *gp_fit_scale(const struct gp_fit_work *w)
{
    return w->scale;
}

/* Set the scale for the next fit: the root of the diagonal of the winner's inverse Hessian if it
 * took enough steps; otherwise the scale that this fit began with. */
static void learn_scale(const struct lbfgs_problem *p, struct gp_fit_work *w,
                        const struct gp_columns *c, size_t winner)
{
    double *diagonal = number_slice(w, c, ROW_GRAD), *scale = number_slice(w, c, ROW_SCALE);
    w->scale = scale;
    if (lbfgs_inverse_hessian(p, w->lbfgs, winner, diagonal) < 3)
        return;
    for (size_t j = 0; j < p->n; j++)
        scale[j] = sane_scale(sqrt(fmax(diagonal[j], 0)));
}

as_status gp_fit(const struct gp_columns *c, const struct gp_rows *rows, const double *y,
                 const struct gp_fit_opts *opts, struct gp_fit_work *w, double *ret_theta,
                 struct gp_fit_result *ret, struct as_err *err)
{
    bool warm = is_usable(opts->warm, gp_n_theta(c));
    size_t starts = (warm ? 1 : 0) + (!warm || opts->cold ? 1 : 0) + opts->n_random;
    as_status st = check_input(c, rows, y, err);
    if (st < 0 || (st = reserve_scratch(w, c, rows->n, starts, err)) < 0)
        return st;
    AS_AUTO(as_freep) struct lbfgs_result *results = as_calloc(starts, sizeof(*results));
    if (!results)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu starts", starts);
    struct fit f = fit_over(c, rows, y, w);
    double *thetas = number_slice(w, c, ROW_STARTS), *scale = number_slice(w, c, ROW_SCALE);
    for (size_t j = 0; j < gp_n_theta(c); j++)
        scale[j] = opts->scale ? sane_scale(opts->scale[j]) : FIRST_SCALE;
    gp_theta_bounds(c, number_slice(w, c, ROW_LOWER), number_slice(w, c, ROW_UPPER));
    set_starts(c, opts, warm, thetas);
    struct lbfgs_problem p = {.fn = fit_objective,
                              .ctx = &f,
                              .n = gp_n_theta(c),
                              .lower = number_slice(w, c, ROW_LOWER),
                              .upper = number_slice(w, c, ROW_UPPER),
                              .scale = scale};
    size_t iters = opts->max_iters ? opts->max_iters : 100;
    struct lbfgs_opts o = {iters, opts->max_evals ? opts->max_evals : 2 * iters,
                           opts->pg_tol > 0 ? opts->pg_tol : 2e-2,
                           opts->f_tol > 0 ? opts->f_tol : 1e-6};
    struct gp_fit_result won;
    lbfgs_minimize(&p, &o, thetas, starts, results, w->lbfgs);
    if ((st = take_best(c, results, thetas, starts, ret_theta, &won, err)) < 0)
        return st;
    learn_scale(&p, w, c, won.start);
    if (ret)
        *ret = won;
    return AS_OK;
}
