/* The long double oracle of the regression tests.
 *
 * Every call builds the full covariance matrix and factors it with the textbook algorithm. It is
 * slow and simple on purpose: it shares no code with the library except the declaration of its
 * inputs. */
#include "tests/search/regression/gp_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/regression/fit.h"

struct gp_case *gp_case_create(size_t n, size_t n_real, size_t n_cat, uint64_t seed)
{
    struct gp_case *g = calloc(1, sizeof(*g));
    struct rng r;
    rng_init(&r, seed, n * 1000 + n_real * 10 + n_cat);
    g->group = calloc(n_real + 1, sizeof(*g->group));
    g->x = calloc(n * n_real + 1, sizeof(double));
    g->y = calloc(n + 1, sizeof(double));
    g->z = calloc(n * n_cat + 1, sizeof(*g->z));
    for (size_t j = 0; j < n_real; j++)
        g->group[j] = (uint32_t)(n_real >= 3 && j == n_real - 1 ? j - 1 : j);
    g->c = (struct gp_columns){n_real, n_cat, n_real >= 3 ? n_real - 1 : n_real, g->group};
    for (size_t i = 0; i < n; i++) {
        size_t twin = i % 7 == 6 ? i - 3 : i; /* some rows twice */
        for (size_t j = 0; j < n_real; j++)
            g->x[i * n_real + j] = twin < i ? g->x[twin * n_real + j] : rng_uniform(&r);
        for (size_t j = 0; j < n_cat; j++)
            g->z[i * n_cat + j] = twin < i ? g->z[twin * n_cat + j] : (int32_t)rng_below(&r, 6) - 1;
        for (size_t j = 0; j < n_real; j++)
            g->y[i] += sin(3 * g->x[i * n_real + j] + (double)j) / (double)(j + 1);
        for (size_t j = 0; j < n_cat; j++)
            g->y[i] += 0.2 * g->z[i * n_cat + j];
        g->y[i] += 0.05 * rng_normal(&r);
    }
    g->rows = (struct gp_rows){n, g->x, g->z};
    g->theta = calloc(gp_n_theta(&g->c) + 2, sizeof(double)); /* room for what steps add */
    gp_theta_default(&g->c, g->theta);
    for (size_t j = 0; j < gp_n_theta(&g->c); j++)
        g->theta[j] += 0.4 * rng_normal(&r);
    return g;
}

void gp_case_set_kind(struct gp_case *g, int kind)
{
    static const double steps[] = {0.28, 1, 0.55, 0, 1, 0.83}; /* of rows 0, 1, … */
    static const double factors[] = {1, 30, 0.2, 4, 100};
    g->c.is_smooth = kind % 2;
    g->c.is_unit = kind == 5;
    g->c.has_steps = kind / 2 == 1;
    g->factors = kind / 2 == 2 ? calloc(g->rows.n + 1, sizeof(double)) : NULL;
    for (size_t i = 0; g->factors && i < g->rows.n; i++)
        g->factors[i] = factors[i % 5];
    g->rows.v = g->factors;
    if (!g->c.has_steps)
        return;
    g->steps = calloc(g->rows.n + 1, sizeof(double));
    for (size_t i = 0; i < g->rows.n; i++)
        g->steps[i] = steps[i % 6];
    g->rows.s = g->steps;
    g->theta[gp_n_theta(&g->c) - 2] = 0.3;
    g->theta[gp_n_theta(&g->c) - 1] = -0.4;
}

void gp_case_free(struct gp_case *g)
{
    free(g->steps);
    free(g->factors);
    free(g->group);
    free(g->x);
    free(g->y);
    free(g->z);
    free(g->theta);
    free(g);
}

static long double covariance(const struct gp_columns *c, const double *theta, const double *xa,
                              const int32_t *za, const double *xb, const int32_t *zb)
{
    long double r2 = 0;
    for (size_t j = 0; j < c->n_real; j++) {
        long double off = ((long double)xa[j] - xb[j]) / expl(theta[c->group ? c->group[j] : j]);
        r2 += off * off;
    }
    for (size_t j = 0; j < c->n_cat; j++) {
        long double l = expl(theta[c->n_groups + j]), t = za[j] == zb[j] ? 0 : 1;
        if ((za[j] < 0) != (zb[j] < 0))
            t = 0.5L;
        r2 += t / (l * l);
    }
    if (c->is_smooth)
        return expl(theta[gp_n_lengths(c)] - r2 / 2);
    long double a = sqrtl(5 * r2);
    return expl(theta[gp_n_lengths(c)]) * (1 + a + a * a / 3) * expl(-a);
}

/* The part of steps: one length for how they agree, lines whose slopes have 8 times the variance,
 * the common course, and a row's own with half of s2. */
static long double with_steps(const struct gp_columns *c, const double *theta, long double k,
                              long double s, long double t, bool is_same)
{
    size_t n = gp_n_lengths(c);
    long double later = s > t ? s : t;
    long double own = is_same ? expl(theta[n]) / 2 : 0;
    return k * (expl(-fabsl(s - t) / expl(theta[n + 2])) + 8 * (1 - s) * (1 - t)) +
           (expl(theta[n + 3]) + own) * (1 - later);
}

static long double between(const struct gp_case *g, const double *theta, const struct gp_rows *p,
                           size_t i, const struct gp_rows *q, size_t j)
{
    long double k = covariance(&g->c, theta, p->x + i * g->c.n_real, p->z + i * g->c.n_cat,
                               q->x + j * g->c.n_real, q->z + j * g->c.n_cat);
    if (!g->c.has_steps)
        return k;
    bool is_same = p == q && i == j;
    return with_steps(&g->c, theta, k, p->s ? p->s[i] : 1, q->s ? q->s[j] : 1, is_same);
}

/* Lower Cholesky factor of the noisy covariance of the first n rows. */
static long double *factor(const struct gp_case *g, const double *theta, size_t n)
{
    long double *l = calloc(n * n + 1, sizeof(*l));
    long double noise = 1e-8L + expl(theta[gp_n_lengths(&g->c) + 1]);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            long double own = noise * (g->rows.v ? g->rows.v[i] : 1);
            long double sum = between(g, theta, &g->rows, i, &g->rows, j) + (i == j ? own : 0);
            for (size_t k = 0; k < j; k++)
                sum -= l[i * n + k] * l[j * n + k];
            l[i * n + j] = i == j ? sqrtl(sum) : sum / l[j * n + j];
        }
    return l;
}

static void solve_lower(const long double *l, size_t n, long double *b)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            b[i] -= l[i * n + k] * b[k];
        b[i] /= l[i * n + i];
    }
}

static long double dot(const long double *a, const long double *b, size_t n)
{
    long double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* L^-1 (y - m), and m. Freed by the caller. */
static long double *whiten(const struct gp_case *g, const long double *l, size_t n,
                           long double *ret_m)
{
    long double *w = calloc(n + 1, sizeof(*w)), *u = calloc(n + 1, sizeof(*u));
    for (size_t i = 0; i < n; i++) {
        w[i] = g->y[i];
        u[i] = 1;
    }
    solve_lower(l, n, w);
    solve_lower(l, n, u);
    *ret_m = n > 0 ? dot(u, w, n) / dot(u, u, n) : 0;
    for (size_t i = 0; i < n; i++)
        w[i] -= *ret_m * u[i];
    free(u);
    return w;
}

/* The mixture of fit.c: a Gamma(3, rate), or with probability 0.4 a lognormal around 30 / rate. */
static long double length_density(long double t, long double rate)
{
    long double off = t - logl(30 / rate);
    return 0.6L * rate * rate * rate / 2 * expl(2 * t - rate * expl(t)) +
           0.4L * expl(-t - off * off / 2) / sqrtl(2 * acosl(-1));
}

double reference_nll(const struct gp_case *g, const double *theta)
{
    size_t n = g->rows.n, lengths = gp_n_lengths(&g->c);
    long double m, *l = factor(g, theta, n), *w = whiten(g, l, n, &m), value = dot(w, w, n) / 2;
    for (size_t i = 0; i < n; i++)
        value += logl(l[i * n + i]);
    long double lambda = sqrtl(fmaxl(1, (long double)lengths / 6));
    for (size_t j = 0; j < lengths; j++) {
        long double t = theta[j], far = t - sqrtl(2) - logl(lengths) / 2;
        if (g->c.is_smooth)
            value += t + far * far / 6;
        else if (j >= g->c.n_groups)
            value += (t - logl(2)) * (t - logl(2)) / 2;
        else if (g->c.n_cat)
            value -= logl(length_density(t, 6 / lambda));
        else
            value += -2 * t + 6 / lambda * expl(t);
    }
    long double v = 1e-8L + expl(theta[lengths + 1]);
    if (g->c.has_steps)
        value += ((theta[lengths + 2] - logl(2)) * (theta[lengths + 2] - logl(2)) +
                  theta[lengths + 3] * theta[lengths + 3]) /
                 18;
    long double t = theta[lengths + 1];
    value += g->c.is_unit
                 ? t + (t + 4) * (t + 4) / 2
                 : -theta[lengths] + 0.15L * expl(theta[lengths]) - 0.1L * logl(v) + 0.05L * v;
    free(l);
    free(w);
    return (double)value;
}

void reference_posterior(const struct gp_case *g, size_t n_observed, const struct gp_rows *p,
                         double *ret_mean, double *ret_cov, double *ret_constant)
{
    size_t n = g->rows.n;
    long double m, *l = factor(g, g->theta, n), *lo = factor(g, g->theta, n_observed);
    long double *w = whiten(g, lo, n_observed, &m);
    long double *v = calloc(p->n * n + 1, sizeof(*v)), *vo = calloc(n + 1, sizeof(*vo));
    for (size_t i = 0; i < p->n; i++) {
        for (size_t j = 0; j < n; j++)
            v[i * n + j] = between(g, g->theta, p, i, &g->rows, j);
        memcpy(vo, v + i * n, n * sizeof(*vo));
        solve_lower(lo, n_observed, vo);
        ret_mean[i] = (double)(m + dot(vo, w, n_observed));
        solve_lower(l, n, v + i * n);
    }
    for (size_t i = 0; i < p->n; i++)
        for (size_t j = 0; j < p->n; j++)
            ret_cov[i * p->n + j] =
                (double)(between(g, g->theta, p, i, p, j) - dot(v + i * n, v + j * n, n));
    *ret_constant = (double)m;
    free(l);
    free(lo);
    free(w);
    free(v);
    free(vo);
}
