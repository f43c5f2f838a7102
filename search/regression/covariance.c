/* Covariances of whole blocks.
 *
 * Squared distances come from one matrix product: |a - b|^2 = |a|^2 + |b|^2 - 2 a'b, with inputs
 * that are centred at 1/2 and divided by the lengthscales. Category columns add their part
 * (category.h). The kernel function then runs over complete rows, so that gcc vectorises the
 * exponential (vec_exp.h). The product may give a slightly negative squared distance for close
 * points, so it is cut at 0. */
#include "search/regression/covariance.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/blas.h"
#include "search/regression/vec_exp.h"

as_status gp_rows_check(const struct gp_columns *c, const struct gp_rows *rows, struct as_err *err)
{
    for (size_t i = 0; i < rows->n; i++) {
        for (size_t j = 0; j < c->n_real; j++)
            if (!isfinite(rows->x[i * c->n_real + j]))
                return as_fail(err, AS_E_INVAL, "row %zu, column %zu is %g, must be finite", i, j,
                               rows->x[i * c->n_real + j]);
        for (size_t j = 0; j < c->n_cat; j++)
            if (rows->z[i * c->n_cat + j] < GP_INACTIVE)
                return as_fail(err, AS_E_INVAL, "row %zu, category %zu is %d, must be at least -1",
                               i, j, (int)rows->z[i * c->n_cat + j]);
        if (c->has_steps && rows->s && !(rows->s[i] >= 0 && rows->s[i] <= 1))
            return as_fail(err, AS_E_INVAL, "row %zu has a step at %g, must be within 0 and 1", i,
                           rows->s[i]);
        if (!(gp_noise_factor(rows, i) > 0) || !isfinite(gp_noise_factor(rows, i)))
            return as_fail(err, AS_E_INVAL, "row %zu has %g times the noise, must be > 0", i,
                           rows->v[i]);
    }
    return AS_OK;
}

double gp_row_distance(const struct gp_columns *c, const struct gp_rows *rows, size_t a, size_t b)
{
    double sum = 0;
    for (size_t j = 0; j < c->n_real; j++) {
        double off = rows->x[a * c->n_real + j] - rows->x[b * c->n_real + j];
        sum += off * off;
    }
    for (size_t j = 0; j < c->n_cat; j++)
        sum += rows->z[a * c->n_cat + j] != rows->z[b * c->n_cat + j];
    return sum;
}

void gp_kernel_set(struct gp_kernel *k, const double *theta)
{
    const struct gp_columns *c = k->c;
    for (size_t j = 0; j < c->n_real; j++)
        k->inv_length[j] = exp(-theta[c->group ? c->group[j] : j]);
    for (size_t j = 0; j < c->n_cat; j++)
        k->weight[j] = exp(-2 * theta[c->n_groups + j]);
    k->s2 = exp(theta[gp_n_lengths(c)]);
    k->noise = GP_NOISE_FLOOR + exp(theta[gp_n_lengths(c) + 1]);
    k->inv_step = c->has_steps ? exp(-theta[gp_n_lengths(c) + 2]) : 0;
    k->course = c->has_steps ? exp(theta[gp_n_lengths(c) + 3]) : 0;
}

void gp_scale(const struct gp_kernel *k, const struct gp_rows *rows, size_t from,
              const struct gp_scaled *ret)
{
    size_t d = k->c->n_real, n_cat = k->c->n_cat;
    for (size_t i = from; i < rows->n; i++) {
        const double *x = rows->x + i * d;
        double *to = ret->x + i * ret->ld, sum = 0;
        for (size_t j = 0; j < d; j++) {
            to[j] = (x[j] - 0.5) * k->inv_length[j];
            sum += to[j] * to[j];
        }
        to[d] = 1;
        ret->norm[i] = sum;
        if (ret->s)
            ret->s[i] = rows->s ? rows->s[i] : 1;
        for (size_t j = 0; ret->z && j < n_cat; j++)
            ret->z[j * ret->stride + i] = rows->z[i * n_cat + j];
    }
}

/* Turn -2 x_i'x_j (and the categories) in k[] into the covariance, and c. NaN stays NaN, so that an
 * overflow is noticed. */
CPU_CLONES static void matern(double *restrict k, double *restrict c, const double *restrict norm,
                              size_t n, double own, double s2)
{
    for (size_t j = 0; j < n; j++) {
        double r2 = k[j] + (norm[j] + own);
        double a = sqrt(5 * (r2 < 0 ? 0 : r2)), scaled = s2 * vec_exp_nonpos(-a);
        k[j] = (1 + a + a * a * (1.0 / 3)) * scaled;
        c[j] = (5.0 / 3) * (1 + a) * scaled;
    }
}

/* The same without c. */
CPU_CLONES static void matern_value(double *restrict k, const double *restrict norm, size_t n,
                                    double own, double s2)
{
    for (size_t j = 0; j < n; j++) {
        double r2 = k[j] + (norm[j] + own);
        double a = sqrt(5 * (r2 < 0 ? 0 : r2));
        k[j] = (1 + a + a * a * (1.0 / 3)) * (s2 * vec_exp_nonpos(-a));
    }
}

/* The same for the squared exponential, of which c is k itself. */
CPU_CLONES static void squared_exponential(double *restrict k, const double *restrict norm,
                                           size_t n, double own, double s2)
{
    for (size_t j = 0; j < n; j++) {
        double r2 = k[j] + (norm[j] + own);
        k[j] = s2 * vec_exp_nonpos(-0.5 * (r2 < 0 ? 0 : r2));
    }
}

/* Of rows at two steps: how much a value of one says of the other, and the line. */
CPU_INLINE double step_factor(double s, double own, double inv_step)
{
    double gap = s < own ? own - s : s - own;
    return vec_exp_nonpos(-gap * inv_step) + GP_TREND * (1 - s) * (1 - own);
}

/* The part of steps, for a row at `own`: factor and common course. */
CPU_CLONES static void add_steps(double *restrict k, const double *restrict s, size_t n, double own,
                                 double inv_step, double course)
{
    for (size_t j = 0; j < n; j++) {
        double last = s[j] < own ? own : s[j];
        k[j] = k[j] * step_factor(s[j], own, inv_step) + course * (1 - last);
    }
}

/* The factor alone, for c. */
CPU_CLONES static void scale_by_steps(double *restrict c, const double *restrict s, size_t n,
                                      double own, double inv_step)
{
    for (size_t j = 0; j < n; j++)
        c[j] *= step_factor(s[j], own, inv_step);
}

void gp_step_slopes(const struct gp_kernel *k, const struct gp_scaled *rows, size_t n,
                    const double *gram, double *ret_d, size_t ld)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            double gap = fabs(rows->s[i] - rows->s[j]) * k->inv_step, share = exp(-gap);
            double course = k->course * (1 - fmax(rows->s[i], rows->s[j]));
            double factor = share + GP_TREND * (1 - rows->s[i]) * (1 - rows->s[j]);
            ret_d[i * ld + j] = (gram[i * ld + j] - course) * share / factor * gap;
        }
        ret_d[i * ld + i] = 0;
    }
}

/* A row of a block: n entries that hold -2 x'x, or squared distances and norms of 0. `own` is the
 * place of its step. */
static void finish_row(const struct gp_kernel *k, const struct gp_scaled *rows, const double *norms,
                       size_t n, double norm, double own, const int32_t *z, double *ret_k,
                       double *ret_c)
{
    struct gp_categories categories = gp_categories_of(k, rows);
    gp_category_add(&categories, z, k->weight, n, ret_k);
    if (k->c->is_smooth) {
        squared_exponential(ret_k, norms, n, norm, k->s2);
        if (ret_c)
            memcpy(ret_c, ret_k, n * sizeof *ret_c);
    } else if (ret_c)
        matern(ret_k, ret_c, norms, n, norm, k->s2);
    else
        matern_value(ret_k, norms, n, norm, k->s2);
    if (!k->c->has_steps)
        return;
    add_steps(ret_k, rows->s, n, own, k->inv_step, k->course);
    if (ret_c)
        scale_by_steps(ret_c, rows->s, n, own, k->inv_step);
}

static double step_of(const struct gp_scaled *rows, size_t i)
{
    return rows->s ? rows->s[i] : 1;
}

void gp_gram(const struct gp_kernel *k, const struct gp_scaled *rows, const int32_t *z, size_t n,
             double *ret_k, double *ret_c, size_t ld)
{
    size_t d = k->c->n_real;
    if (d > 0)
        blas_need()->dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, (int)n, (int)d, -2, rows->x,
                           (int)rows->ld, 0, ret_k, (int)ld);
    for (size_t i = 0; i < n; i++) {
        double *row = ret_k + i * ld;
        for (size_t j = 0; d == 0 && j <= i; j++)
            row[j] = 0;
        finish_row(k, rows, rows->norm, i + 1, rows->norm[i], step_of(rows, i), z + i * k->c->n_cat,
                   row, ret_c ? ret_c + i * ld : NULL);
        row[i] = gp_variance(k, rows, i); /* exactly */
    }
}

void gp_gram_small(const struct gp_kernel *k, const struct gp_scaled *rows,
                   const struct gp_real_columns *c, const int32_t *z, size_t n, double *ret_k,
                   double *ret_c, size_t ld)
{
    static const double zeros[GP_SMALL_ROWS];
    assert(n <= GP_SMALL_ROWS);
    gp_square_gram(c, n, ret_k, ld);
    for (size_t i = 0; i < n; i++) {
        finish_row(k, rows, zeros, i + 1, 0, step_of(rows, i), z + i * k->c->n_cat, ret_k + i * ld,
                   ret_c ? ret_c + i * ld : NULL);
        ret_k[i * ld + i] = gp_variance(k, rows, i); /* exactly */
    }
}

void gp_cross(const struct gp_kernel *k, const struct gp_scaled *rows, size_t n,
              const struct gp_scaled *p, const int32_t *z, size_t m, double *ret_k, double *ret_c,
              size_t ld)
{
    size_t d = k->c->n_real;
    if (d > 0 && n > 0 && m > 0)
        blas_need()->dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)m, (int)n, (int)d, -2,
                           p->x, (int)p->ld, rows->x, (int)rows->ld, 0, ret_k, (int)ld);
    for (size_t i = 0; i < m; i++) {
        double *row = ret_k + i * ld;
        for (size_t j = 0; d == 0 && j < n; j++)
            row[j] = 0;
        finish_row(k, rows, rows->norm, n, p->norm[i], step_of(p, i), z + i * k->c->n_cat, row,
                   ret_c ? ret_c + i * ld : NULL);
    }
}

double gp_covariance(const struct gp_kernel *k, const struct gp_rows *rows, size_t i, size_t j)
{
    const double *a = rows->x + i * k->c->n_real, *b = rows->x + j * k->c->n_real;
    const int32_t *za = rows->z + i * k->c->n_cat, *zb = rows->z + j * k->c->n_cat;
    double r2 = 0;
    for (size_t q = 0; q < k->c->n_real; q++) {
        double off = (a[q] - b[q]) * k->inv_length[q];
        r2 += off * off;
    }
    for (size_t q = 0; q < k->c->n_cat; q++)
        r2 += za[q] == zb[q] ? 0 : k->weight[q] * ((za[q] < 0) != (zb[q] < 0) ? 0.5 : 1);
    double s = sqrt(5 * r2);
    double value = k->s2 * (k->c->is_smooth ? exp(-0.5 * r2) : (1 + s + s * s / 3) * exp(-s));
    if (!k->c->has_steps || !rows->s)
        return value;
    double gap = fabs(rows->s[i] - rows->s[j]), last = fmax(rows->s[i], rows->s[j]);
    double own = i == j ? k->s2 * GP_OWN_COURSE * (1 - last) : 0;
    double line = GP_TREND * (1 - rows->s[i]) * (1 - rows->s[j]);
    return value * (exp(-gap * k->inv_step) + line) + k->course * (1 - last) + own;
}
