/* The posterior: rows, factor, values, predictions.
 *
 * The Cholesky factor is defined by its inputs: the first n_base rows are factored at once and each
 * later row is appended by a triangular solve. build() therefore keeps the leading rows that the
 * new request shares with the old one, and a new model gives the same bits. Appending costs O(n^2)
 * and keeps a suggestion fast while trials come and go.
 *
 * The mean uses the rows with values, the variance uses all rows, so pending trials shrink the
 * variance and leave the mean unchanged. Predictions work on batches, because one matrix product
 * over a batch is much faster than one solve for each point. All scratch is reserved before, so a
 * prediction never allocates. */
#include "search/regression/model.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "search/regression/buf.h"
#include "search/regression/cholesky.h"
#include "search/regression/blas_thread_priv.h"
#include "search/regression/panel.h"
#include "search/regression/vec_exp.h"

#define LEAST_VARIANCE 1e-12

/* The memory of up to `cap` rows. */
struct storage {
    struct gp_buf x;         /* cap x n_real, as given */
    struct gp_buf scaled;    /* cap x gp_ld(n_real + 1) */
    struct gp_buf norm;      /* cap */
    struct gp_buf lower;     /* cap x ld */
    struct gp_buf inverse;   /* of the diagonal blocks of lower (cholesky.h) */
    struct gp_buf alpha;     /* 3 x ld: alpha, and scratch for two vectors */
    struct gp_buf z_columns; /* n_cat x cap */
    struct gp_buf steps;     /* cap places of steps; nothing without steps */
    struct gp_buf factors;   /* cap factors of the noise */
    int32_t *z;              /* cap x n_cat, as given */
    size_t cap, ld;
};

struct gp_model {
    struct gp_columns c;
    uint32_t *group;
    struct gp_kernel k;
    double *theta; /* and, in the same piece, 1/l and 1/l^2 of k */
    struct storage s;
    size_t n, n_base, n_observed;
    bool has_inactive; /* some row has an inactive category */
    double noise, constant;
};

struct gp_work {
    struct gp_buf k, c;            /* batch x ld */
    struct gp_buf x, gx, hx, norm; /* the points, scaled; products for gradients */
    struct gp_buf panel;           /* n x GP_PANEL */
    size_t batch;
};

static bool groups_are_sound(const struct gp_columns *c, bool *used, struct as_err *err)
{
    for (size_t j = 0; j < c->n_real; j++) {
        if (c->group[j] >= c->n_groups) {
            as_err_set(err, AS_E_INVAL, "", "column %zu is of group %u, there are %zu groups", j,
                       (unsigned)c->group[j], c->n_groups);
            return false;
        }
        used[c->group[j]] = true;
    }
    for (size_t g = 0; g < c->n_groups; g++)
        if (!used[g]) {
            as_err_set(err, AS_E_INVAL, "", "group %zu has no column", g);
            return false;
        }
    return true;
}

as_status gp_model_create(const struct gp_columns *c, struct gp_model **ret, struct as_err *err)
{
    AS_AUTO(gp_model_freep) struct gp_model *m = as_calloc(1, sizeof(*m));
    AS_AUTO(as_freep) bool *used = as_calloc(c->n_groups, sizeof(*used));
    if (m) {
        m->group = as_calloc(c->n_real, sizeof(*m->group));
        m->theta = as_calloc(gp_n_theta(c) + c->n_real + c->n_cat, sizeof(double));
    }
    if (!m || !used || !m->group || !m->theta)
        return as_fail(err, AS_E_NOMEM, "out of memory for a model of %zu columns",
                       c->n_real + c->n_cat);
    for (size_t j = 0; j < c->n_real; j++)
        m->group[j] = c->group ? c->group[j] : (uint32_t)j;
    m->c = *c;
    m->c.group = m->group;
    if (!groups_are_sound(&m->c, used, err))
        return AS_E_INVAL;
    m->k = (struct gp_kernel){.c = &m->c,
                              .inv_length = m->theta + gp_n_theta(c),
                              .weight = m->theta + gp_n_theta(c) + c->n_real};
    *ret = as_steal(m);
    return AS_OK;
}

static void storage_done(struct storage *s)
{
    gp_buf_done(&s->x);
    gp_buf_done(&s->scaled);
    gp_buf_done(&s->norm);
    gp_buf_done(&s->lower);
    gp_buf_done(&s->inverse);
    gp_buf_done(&s->alpha);
    gp_buf_done(&s->z_columns);
    gp_buf_done(&s->steps);
    gp_buf_done(&s->factors);
    free(s->z);
    *s = (struct storage){0};
}

void gp_model_free(struct gp_model *m)
{
    if (!m)
        return;
    free(m->group);
    free(m->theta);
    storage_done(&m->s);
    free(m);
}

size_t gp_model_bytes(const struct gp_model *m)
{
    const struct storage *s = &m->s;
    size_t numbers = s->x.cap + s->scaled.cap + s->norm.cap + s->lower.cap + s->inverse.cap +
                     s->alpha.cap + s->z_columns.cap + s->steps.cap + s->factors.cap;
    return sizeof(*m) + numbers * sizeof(double) + sizeof(int32_t) * s->cap * m->c.n_cat;
}

static as_status storage_init(struct storage *s, const struct gp_columns *c, size_t cap,
                              struct as_err *err)
{
    as_status st;
    *s = (struct storage){.cap = cap, .ld = gp_ld(cap)};
    if ((st = gp_buf_reserve(&s->x, cap, c->n_real, err)) < 0 ||
        (st = gp_buf_reserve(&s->scaled, cap, gp_ld(c->n_real + 1), err)) < 0 ||
        (st = gp_buf_reserve(&s->norm, cap, 1, err)) < 0 ||
        (st = gp_buf_reserve(&s->lower, cap, s->ld, err)) < 0 ||
        (st = gp_buf_reserve(&s->inverse, 1, gp_inverse_size(cap), err)) < 0 ||
        (st = gp_buf_reserve(&s->alpha, 3, s->ld, err)) < 0 ||
        (st = gp_buf_reserve(&s->z_columns, cap, c->n_cat, err)) < 0 ||
        (st = gp_buf_reserve(&s->factors, cap, 1, err)) < 0 ||
        (c->has_steps && (st = gp_buf_reserve(&s->steps, cap, 1, err)) < 0))
        return st;
    s->z = as_calloc(cap, c->n_cat * sizeof(int32_t));
    if (!s->z)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu rows of %zu categories", cap,
                       c->n_cat);
    return AS_OK;
}

/* Copy the first n rows of one storage into another. */
static void storage_copy(struct storage *to, const struct storage *from, const struct gp_columns *c,
                         size_t n)
{
    if (n == 0)
        return;
    memcpy(to->x.p, from->x.p, n * c->n_real * sizeof(double));
    memcpy(to->scaled.p, from->scaled.p, n * gp_ld(c->n_real + 1) * sizeof(double));
    memcpy(to->norm.p, from->norm.p, n * sizeof(double));
    memcpy(to->inverse.p, from->inverse.p, n * GP_BLOCK * sizeof(double));
    memcpy(to->factors.p, from->factors.p, n * sizeof(double));
    memcpy(to->z, from->z, n * c->n_cat * sizeof(int32_t));
    if (c->has_steps)
        memcpy(to->steps.p, from->steps.p, n * sizeof(double));
    for (size_t i = 0; i < n; i++)
        memcpy(to->lower.p + i * to->ld, from->lower.p + i * from->ld, (i + 1) * sizeof(double));
    for (size_t j = 0; j < c->n_cat; j++)
        memcpy(to->z_columns.p + j * to->cap, from->z_columns.p + j * from->cap,
               n * sizeof(double));
}

static as_status grow_storage(struct gp_model *m, size_t n, struct as_err *err)
{
    if (n <= m->s.cap)
        return AS_OK;
    struct storage next;
    as_status st = storage_init(&next, &m->c, n + n / 8 + 16, err);
    if (st < 0) {
        storage_done(&next);
        return st;
    }
    storage_copy(&next, &m->s, &m->c, m->n);
    storage_done(&m->s);
    m->s = next;
    return AS_OK;
}

static struct gp_scaled scaled_of(const struct gp_model *m)
{
    return (struct gp_scaled){m->s.scaled.p, gp_ld(m->c.n_real + 1), m->s.norm.p, m->s.z_columns.p,
                              m->s.cap,      m->has_inactive,        m->s.steps.p};
}

/* Is row i at the same step as before? */
static bool is_same_step(const struct gp_model *m, const struct gp_rows *rows, size_t i)
{
    return !m->c.has_steps || m->s.steps.p[i] == (rows->s ? rows->s[i] : 1);
}

/* How many rows of the factor can stay: none, or at least the base. */
static size_t rows_in_common(const struct gp_model *m, const double *theta,
                             const struct gp_rows *rows, size_t n_base)
{
    size_t d = m->c.n_real, n_cat = m->c.n_cat, same = 0;
    if (m->n == 0 || n_base != m->n_base ||
        memcmp(theta, m->theta, gp_n_theta(&m->c) * sizeof(double)) != 0)
        return 0;
    while (same < m->n && same < rows->n &&
           (d == 0 || memcmp(rows->x + same * d, m->s.x.p + same * d, d * sizeof(double)) == 0) &&
           (n_cat == 0 ||
            memcmp(rows->z + same * n_cat, m->s.z + same * n_cat, n_cat * sizeof(int32_t)) == 0) &&
           is_same_step(m, rows, same) && m->s.factors.p[same] == gp_noise_factor(rows, same))
        same++;
    return same >= n_base ? same : 0;
}

/* Factor the first n rows at once. */
static as_status factor_base(struct gp_model *m, size_t n, struct as_err *err)
{
    struct gp_scaled scaled = scaled_of(m);
    for (int step = 0; step < GP_JITTER_STEPS && n > 0; step++) {
        m->noise = m->k.noise + gp_jitter(step, m->k.s2);
        gp_gram(&m->k, &scaled, m->s.z, n, m->s.lower.p, NULL, m->s.ld);
        for (size_t i = 0; i < n; i++)
            m->s.lower.p[i * m->s.ld + i] += m->noise * m->s.factors.p[i];
        if (gp_cholesky(m->s.lower.p, n, m->s.ld, m->s.inverse.p))
            return AS_OK;
    }
    m->noise = m->k.noise;
    if (n == 0)
        return AS_OK;
    return as_fail(err, AS_E_NUMERIC,
                   "the covariance of %zu rows is not positive definite, even with a jitter of %g "
                   "of its scale",
                   n, gp_jitter(GP_JITTER_STEPS - 1, 1));
}

/* Append row i. Its remaining variance is that of an observation, so it is at least the noise,
 * whatever the rounding errors. */
static void append_row(struct gp_model *m, size_t i)
{
    struct gp_scaled scaled = scaled_of(m), own = scaled;
    double *row = m->s.lower.p + i * m->s.ld, noise = m->noise * m->s.factors.p[i];
    own.x += i * scaled.ld;
    own.norm += i;
    if (own.s)
        own.s += i;
    gp_cross(&m->k, &scaled, i, &own, m->s.z + i * m->c.n_cat, 1, row, NULL, m->s.ld);
    gp_cholesky_append(m->s.lower.p, i, m->s.ld, m->s.inverse.p,
                       gp_variance(&m->k, &scaled, i) + noise, noise);
}

as_status gp_model_build(struct gp_model *m, const double *theta, const struct gp_rows *rows,
                         size_t n_base, struct as_err *err)
{
    size_t d = m->c.n_real, n_cat = m->c.n_cat, keep;
    gp_blas_one_thread();
    n_base = n_base < rows->n ? n_base : rows->n;
    keep = rows_in_common(m, theta, rows, n_base);
    m->n = keep;
    m->n_observed = 0;
    m->constant = 0;
    m->n_base = n_base;
    as_status st = gp_rows_check(&m->c, rows, err);
    if (st == AS_OK)
        st = grow_storage(m, rows->n, err);
    if (st < 0) {
        m->n = 0;
        return st;
    }
    memcpy(m->theta, theta, gp_n_theta(&m->c) * sizeof(double));
    gp_kernel_set(&m->k, theta);
    if (rows->n > keep && d > 0)
        memcpy(m->s.x.p + keep * d, rows->x + keep * d, (rows->n - keep) * d * sizeof(double));
    if (rows->n > keep && n_cat > 0)
        memcpy(m->s.z + keep * n_cat, rows->z + keep * n_cat,
               (rows->n - keep) * n_cat * sizeof(int32_t));
    for (size_t i = keep; i < rows->n; i++)
        m->s.factors.p[i] = gp_noise_factor(rows, i);
    m->has_inactive = gp_category_any_inactive(m->s.z, rows->n * n_cat);
    struct gp_scaled scaled = scaled_of(m);
    gp_scale(&m->k, rows, keep, &scaled);
    if (keep == 0 && (st = factor_base(m, n_base, err)) < 0)
        return st;
    for (size_t i = keep > n_base ? keep : n_base; i < rows->n; i++)
        append_row(m, i);
    m->n = rows->n;
    return AS_OK;
}

as_status gp_model_observe(struct gp_model *m, const double *y, size_t n_observed,
                           struct as_err *err)
{
    size_t n = n_observed;
    if (n > m->n)
        return as_fail(err, AS_E_INVAL, "there are %zu values for %zu rows", n, m->n);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(y[i]))
            return as_fail(err, AS_E_INVAL, "value %zu is %g, must be finite", i, y[i]);
    m->n_observed = n;
    m->constant = 0;
    if (n == 0)
        return AS_OK;
    gp_blas_one_thread();
    double *alpha = m->s.alpha.p, *ones = alpha + m->s.ld;
    memcpy(alpha, y, n * sizeof(double));
    for (size_t i = 0; i < n; i++)
        ones[i] = 1;
    gp_solve_lower(m->s.lower.p, n, m->s.ld, m->s.inverse.p, alpha, 2, m->s.ld);
    m->constant =
        blas_need()->ddot((int)n, ones, 1, alpha, 1) / blas_need()->ddot((int)n, ones, 1, ones, 1);
    blas_need()->daxpy((int)n, -m->constant, ones, 1, alpha, 1);
    gp_solve_upper(m->s.lower.p, n, m->s.ld, m->s.inverse.p, alpha, 1, m->s.ld);
    return AS_OK;
}

size_t gp_model_rows(const struct gp_model *m)
{
    return m->n;
}

size_t gp_model_observed(const struct gp_model *m)
{
    return m->n_observed;
}

const struct gp_columns *gp_model_columns(const struct gp_model *m)
{
    return &m->c;
}

const double *gp_model_theta(const struct gp_model *m)
{
    return m->theta;
}

double gp_model_constant(const struct gp_model *m)
{
    return m->constant;
}

const double *gp_model_alpha(const struct gp_model *m)
{
    return m->s.alpha.p;
}

const double *gp_model_x(const struct gp_model *m)
{
    return m->s.x.p;
}

const int32_t *gp_model_z(const struct gp_model *m)
{
    return m->s.z;
}

double gp_model_length(const struct gp_model *m, size_t real_column)
{
    return 1 / m->k.inv_length[real_column];
}

double gp_model_signal(const struct gp_model *m)
{
    return m->k.s2;
}

double gp_model_noise(const struct gp_model *m)
{
    return m->noise;
}

const double *gp_model_lower(const struct gp_model *m, size_t *ret_ld)
{
    *ret_ld = m->s.ld;
    return m->s.lower.p;
}

struct gp_work *gp_work_create(void)
{
    return as_calloc(1, sizeof(struct gp_work));
}

void gp_work_free(struct gp_work *w)
{
    if (!w)
        return;
    gp_buf_done(&w->k);
    gp_buf_done(&w->c);
    gp_buf_done(&w->x);
    gp_buf_done(&w->gx);
    gp_buf_done(&w->hx);
    gp_buf_done(&w->norm);
    gp_buf_done(&w->panel);
    free(w);
}

size_t gp_work_bytes(const struct gp_work *w)
{
    return sizeof(*w) + sizeof(double) * (w->k.cap + w->c.cap + w->x.cap + w->gx.cap + w->hx.cap +
                                          w->norm.cap + w->panel.cap);
}

as_status gp_work_reserve(struct gp_work *w, const struct gp_model *m, size_t batch,
                          struct as_err *err)
{
    size_t ld = gp_ld(m->n), ldx = gp_ld(m->c.n_real + 1);
    as_status st;
    w->batch = 0;
    if ((st = gp_buf_reserve(&w->k, batch, ld, err)) < 0 ||
        (st = gp_buf_reserve(&w->c, batch, ld, err)) < 0 ||
        (st = gp_buf_reserve(&w->x, batch, ldx, err)) < 0 ||
        (st = gp_buf_reserve(&w->gx, batch, ldx, err)) < 0 ||
        (st = gp_buf_reserve(&w->hx, batch, ldx, err)) < 0 ||
        (st = gp_buf_reserve(&w->norm, batch, 1, err)) < 0 ||
        (st = gp_buf_reserve(&w->panel, m->n, GP_PANEL, err)) < 0)
        return st;
    w->batch = batch;
    return AS_OK;
}

/* Scale the points into w and fill w->k (and w->c if wanted) with their covariances with the first
 * n rows. Returns the leading dimension. */
static size_t cross_covariances(const struct gp_model *m, struct gp_work *w,
                                const struct gp_rows *p, size_t n, double *ret_k, double *ret_c,
                                size_t ld)
{
    struct gp_scaled rows = scaled_of(m),
                     points = {w->x.p, gp_ld(m->c.n_real + 1), w->norm.p, NULL, 0, false, NULL};
    assert(!p->s || !m->c.has_steps);                           /* at the last step */
    assert(p->n <= w->batch && p->n * gp_ld(m->n) <= w->k.cap); /* reserved since it was built */
    gp_scale(&m->k, p, 0, &points);
    if (n > 0)
        gp_cross(&m->k, &rows, n, &points, p->z, p->n, ret_k, ret_c, ld);
    return ld;
}

static void compute_means(const struct gp_model *m, const double *k, size_t ld, size_t points,
                          double *ret_mean)
{
    for (size_t i = 0; i < points; i++)
        ret_mean[i] = m->constant;
    if (m->n_observed > 0)
        blas_need()->dgemv(CblasRowMajor, CblasNoTrans, (int)points, (int)m->n_observed, 1, k,
                           (int)ld, m->s.alpha.p, 1, 1, ret_mean, 1);
}

/* What is left of a point's variance when the rows explain a part of it. */
static double remaining_variance(const struct gp_model *m, double explained)
{
    double rest = m->k.s2 - explained;
    return rest > LEAST_VARIANCE ? rest : LEAST_VARIANCE;
}

/* k <- (L^-1 k)', and compute the remaining variances. */
static void compute_variances(const struct gp_model *m, double *k, size_t ld, size_t points,
                              double *ret_var)
{
    if (m->n > 0)
        gp_solve_lower(m->s.lower.p, m->n, m->s.ld, m->s.inverse.p, k, points, ld);
    for (size_t i = 0; i < points; i++) {
        double *v = k + i * ld;
        ret_var[i] = remaining_variance(m, m->n > 0 ? blas_need()->ddot((int)m->n, v, 1, v, 1) : 0);
    }
}

void gp_predict(const struct gp_model *m, struct gp_work *w, const struct gp_rows *p,
                double *ret_mean, double *ret_var)
{
    size_t n = ret_var ? m->n : m->n_observed,
           ld = cross_covariances(m, w, p, n, w->k.p, NULL, gp_ld(m->n));
    if (p->n == 0)
        return;
    compute_means(m, w->k.p, ld, p->n, ret_mean);
    if (!ret_var)
        return;
    assert(n * GP_PANEL <= w->panel.cap);
    gp_lower_squares(m->s.lower.p, n, m->s.ld, w->k.p, p->n, ld, w->panel.p, ret_var);
    for (size_t i = 0; i < p->n; i++)
        ret_var[i] = remaining_variance(m, ret_var[i]);
}

/* beta[i] <- beta[i] c[i] and c[i] <- alpha[i] c[i]; alpha has only n_observed entries. */
CPU_CLONES static void weigh_rows(double *restrict beta, double *restrict c,
                                  const double *restrict alpha, size_t n_observed, size_t n)
{
    for (size_t i = 0; i < n; i++)
        beta[i] *= c[i];
    for (size_t i = 0; i < n_observed; i++)
        c[i] *= alpha[i];
}

/* From sum_i w_i c_i x_i (the entries of gx; entry d is sum_i w_i c_i) to minus sum_i w_i dk_i/dx,
 * times `sign`, in the columns' own units. */
static void pull_gradient(const struct gp_model *m, const double *x, const double *gx, double sign,
                          double *ret)
{
    size_t d = m->c.n_real;
    for (size_t j = 0; j < d; j++)
        ret[j] = sign * (x[j] * gx[d] - gx[j]) * m->k.inv_length[j];
}

void gp_predict_grad(const struct gp_model *m, struct gp_work *w, const struct gp_rows *p,
                     double *ret_mean, double *ret_var, double *ret_dmean, double *ret_dvar)
{
    size_t d = m->c.n_real, ldx = gp_ld(d + 1), ld = gp_ld(m->n), n = m->n, points = p->n;
    cross_covariances(m, w, p, n, w->k.p, w->c.p, ld);
    if (points == 0)
        return;
    compute_means(m, w->k.p, ld, points, ret_mean);
    compute_variances(m, w->k.p, ld, points, ret_var);
    memset(w->gx.p, 0, points * ldx * sizeof(double));
    memset(w->hx.p, 0, points * ldx * sizeof(double));
    if (n > 0)
        gp_solve_upper(m->s.lower.p, n, m->s.ld, m->s.inverse.p, w->k.p, points, ld);
    for (size_t i = 0; i < points; i++)
        weigh_rows(w->k.p + i * ld, w->c.p + i * ld, m->s.alpha.p, m->n_observed, n);
    if (n > 0)
        blas_need()->dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)points, (int)(d + 1),
                           (int)n, 1, w->k.p, (int)ld, m->s.scaled.p, (int)ldx, 0, w->hx.p,
                           (int)ldx);
    if (m->n_observed > 0)
        blas_need()->dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)points, (int)(d + 1),
                           (int)m->n_observed, 1, w->c.p, (int)ld, m->s.scaled.p, (int)ldx, 0,
                           w->gx.p, (int)ldx);
    for (size_t i = 0; i < points; i++) {
        const double *x = w->x.p + i * ldx;
        pull_gradient(m, x, w->gx.p + i * ldx, -1, ret_dmean + i * d);
        pull_gradient(m, x, w->hx.p + i * ldx, 2, ret_dvar + i * d);
    }
}

void gp_predict_joint(const struct gp_model *m, struct gp_work *w, const struct gp_rows *p,
                      double *ret_mean, double *ret_cov)
{
    size_t ld = gp_ld(m->n), points = p->n, n = m->n;
    cross_covariances(m, w, p, n, w->k.p, NULL, ld);
    if (points == 0)
        return;
    compute_means(m, w->k.p, ld, points, ret_mean);
    /* The prior between the points: their categories are wanted by column, so row by row here. */
    for (size_t i = 0; i < points; i++)
        for (size_t j = 0; j <= i; j++)
            ret_cov[i * points + j] = gp_covariance(&m->k, p, i, j);
    if (n > 0) {
        gp_solve_lower(m->s.lower.p, n, m->s.ld, m->s.inverse.p, w->k.p, points, ld);
        blas_need()->dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, (int)points, (int)n, -1, w->k.p,
                           (int)ld, 1, ret_cov, (int)points);
    }
    for (size_t i = 0; i < points; i++)
        for (size_t j = 0; j < i; j++)
            ret_cov[j * points + i] = ret_cov[i * points + j];
}

void gp_model_cross(const struct gp_model *m, struct gp_work *w, const struct gp_rows *p,
                    size_t n_rows, double *ret_k)
{
    assert(n_rows <= m->n);
    cross_covariances(m, w, p, n_rows, ret_k, NULL, n_rows);
}

void gp_model_solve(const struct gp_model *m, double *b, size_t n_rhs, size_t n_rows)
{
    assert(n_rows <= m->n);
    if (n_rows == 0 || n_rhs == 0)
        return;
    gp_solve_lower(m->s.lower.p, n_rows, m->s.ld, m->s.inverse.p, b, n_rhs, n_rows);
    gp_solve_upper(m->s.lower.p, n_rows, m->s.ld, m->s.inverse.p, b, n_rhs, n_rows);
}

as_status gp_model_loo(const struct gp_model *m, const double *y, double *ret_mean, double *ret_var,
                       struct as_err *err)
{
    size_t n = m->n_observed, ld = gp_ld(n);
    struct gp_buf inverse = {0};
    as_status st = gp_buf_reserve(&inverse, n, ld, err);
    if (st < 0)
        return st;
    for (size_t i = 0; i < n; i++)
        memcpy(inverse.p + i * ld, m->s.lower.p + i * m->s.ld, (i + 1) * sizeof(double));
    if (n > 0)
        gp_cholesky_invert(inverse.p, n, ld);
    for (size_t i = 0; i < n; i++) {
        ret_var[i] = 1 / inverse.p[i * ld + i];
        ret_mean[i] = y[i] - m->s.alpha.p[i] * ret_var[i];
    }
    gp_buf_done(&inverse);
    return AS_OK;
}
