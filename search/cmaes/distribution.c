/* Equations have the numbers of the tutorial that cmaes.h names. The covariance is updated as a
 * matrix and factored again after each generation, by Cholesky and not by eigenvectors: any
 * square root of the covariance gives draws of it, and the factor is cheap enough to compute all
 * generations again for each suggestion (decision 4012). With many parameters only the diagonal
 * is adapted. Steps are shortened to what a draw can be, because results of other methods take
 * part. */
#include "search/cmaes/distribution.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SIGMA_LEAST 1e-12
#define SIGMA_MOST 1.0 /* the places are in [0, 1] */

size_t distribution_lambda(size_t d)
{
    return 4 + (size_t)(3 * log((double)(d ? d : 1)));
}

/* The tutorial's table 1, with its equations' numbers. */
static void set_constants(struct distribution *s)
{
    double d = s->d ? (double)s->d : 1, sum = 0, squares = 0;
    for (size_t i = 0; i < s->mu; i++) {
        s->weights[i] = log((double)s->lambda / 2 + 0.5) - log((double)i + 1); /* (49) */
        sum += s->weights[i];
    }
    for (size_t i = 0; i < s->mu; i++) {
        s->weights[i] /= sum;
        squares += s->weights[i] * s->weights[i];
    }
    s->mu_eff = 1 / squares;
    s->c_sigma = (s->mu_eff + 2) / (d + s->mu_eff + 5);                             /* (55) */
    s->d_sigma = 1 + 2 * fmax(0, sqrt((s->mu_eff - 1) / (d + 1)) - 1) + s->c_sigma; /* (55) */
    s->c_c = (4 + s->mu_eff / d) / (d + 4 + 2 * s->mu_eff / d);                     /* (56) */
    s->c_1 = 2 / ((d + 1.3) * (d + 1.3) + s->mu_eff);                               /* (57) */
    s->c_mu =
        2 * (0.25 + s->mu_eff + 1 / s->mu_eff - 2) / ((d + 2) * (d + 2) + s->mu_eff); /* (58) */
    if (!s->is_full) { /* a diagonal learns faster: Ros and Hansen, section 3 */
        s->c_1 *= (d + 2) / 3;
        s->c_mu *= (d + 2) / 3;
    }
    s->c_1 = fmin(s->c_1, 0.5);
    s->c_mu = fmin(s->c_mu, 1 - s->c_1);
    s->chi = sqrt(d) * (1 - 1 / (4 * d) + 1 / (21 * d * d));
}

as_status distribution_make(size_t d, bool is_full, size_t lambda, double sigma, const double *mean,
                            struct distribution *ret, struct as_err *err)
{
    size_t n_cov = is_full ? d * d : d;
    struct distribution s = {.d = d, .is_full = is_full, .lambda = lambda, .mu = lambda / 2};
    s.weights = as_calloc(s.mu, sizeof *s.weights);
    s.mean = as_calloc(d, sizeof *s.mean);
    s.p_sigma = as_calloc(d, sizeof *s.p_sigma);
    s.p_c = as_calloc(d, sizeof *s.p_c);
    s.cov = as_calloc(n_cov, sizeof *s.cov);
    s.factor = as_calloc(n_cov, sizeof *s.factor);
    s.work = as_calloc(lambda + 2, d * sizeof *s.work);
    if (!s.weights || !s.mean || !s.p_sigma || !s.p_c || !s.cov || !s.factor || !s.work) {
        distribution_done(&s);
        return as_fail(err, AS_E_NOMEM, "out of memory for a suggestion");
    }
    s.sigma = sigma;
    memcpy(s.mean, mean, d * sizeof *mean);
    for (size_t j = 0; j < d; j++)
        s.cov[is_full ? j * d + j : j] = s.factor[is_full ? j * d + j : j] = 1;
    set_constants(&s);
    *ret = s;
    return AS_OK;
}

void distribution_scale(struct distribution *s, size_t j, double by)
{
    size_t at = s->is_full ? j * s->d + j : j;
    s->factor[at] *= by;
    s->cov[at] *= by * by;
}

void distribution_done(struct distribution *s)
{
    free(s->weights);
    free(s->mean);
    free(s->p_sigma);
    free(s->p_c);
    free(s->cov);
    free(s->factor);
    free(s->work);
    *s = (struct distribution){0};
}

/* ---- the factor ---- */

/* A pivot that rounding has taken below what the covariance can have is put there. */
static void factorize(struct distribution *s)
{
    size_t d = s->d;
    if (!s->is_full) {
        for (size_t j = 0; j < d; j++)
            s->factor[j] = sqrt(s->cov[j]);
        return;
    }
    for (size_t i = 0; i < d; i++) {
        double *row = s->factor + i * d;
        for (size_t j = 0; j <= i; j++) {
            const double *col = s->factor + j * d;
            double sum = s->cov[i * d + j];
            for (size_t k = 0; k < j; k++)
                sum -= row[k] * col[k];
            row[j] = i == j ? sqrt(fmax(sum, 1e-14 * s->cov[i * d + i])) : sum / col[j];
        }
    }
}

/* z = factor^-1 y */
static void whiten(const struct distribution *s, const double *y, double *z)
{
    for (size_t i = 0; i < s->d; i++) {
        const double *row = s->factor + i * s->d;
        double sum = y[i];
        for (size_t k = 0; s->is_full && k < i; k++)
            sum -= row[k] * z[k];
        z[i] = sum / (s->is_full ? row[i] : s->factor[i]);
    }
}

static double norm(const double *x, size_t d)
{
    double sum = 0;
    for (size_t j = 0; j < d; j++)
        sum += x[j] * x[j];
    return sqrt(sum);
}

/* ---- adaptation ---- */

/* Steps from the mean in units of sigma, [mu, d], shortened to what a draw can be: Hansen 2011,
 * (2). */
static void read_steps(struct distribution *s, const double *best, double *steps, double *z)
{
    double longest = sqrt((double)s->d) + 2 * (double)s->d / ((double)s->d + 2);
    for (size_t i = 0; i < s->mu; i++) {
        double *y = steps + i * s->d;
        for (size_t j = 0; j < s->d; j++)
            y[j] = (best[i * s->d + j] - s->mean[j]) / s->sigma;
        whiten(s, y, z);
        double length = norm(z, s->d), by = length > longest ? longest / length : 1;
        for (size_t j = 0; j < s->d; j++)
            y[j] *= by;
    }
}

/* The rank-one and the rank-mu update: (47). */
static void adapt_covariance(struct distribution *s, const double *steps, bool stalled)
{
    size_t d = s->d;
    double keep = 1 - s->c_1 - s->c_mu + (stalled ? s->c_1 * s->c_c * (2 - s->c_c) : 0);
    for (size_t i = 0; i < d; i++) {
        for (size_t j = s->is_full ? 0 : i; j <= i; j++) {
            double sum = s->c_1 * s->p_c[i] * s->p_c[j];
            for (size_t k = 0; k < s->mu; k++)
                sum += s->c_mu * s->weights[k] * steps[k * d + i] * steps[k * d + j];
            double *c = s->is_full ? &s->cov[i * d + j] : &s->cov[i];
            *c = keep * *c + sum;
        }
    }
    factorize(s);
}

void distribution_update(struct distribution *s, const double *best)
{
    size_t d = s->d;
    double *steps = s->work, *z = s->work + s->mu * d, *move = z + d;
    read_steps(s, best, steps, z);
    memset(move, 0, d * sizeof *move);
    for (size_t k = 0; k < s->mu; k++)
        for (size_t j = 0; j < d; j++)
            move[j] += s->weights[k] * steps[k * d + j];
    for (size_t j = 0; j < d; j++)
        s->mean[j] += s->sigma * move[j];
    whiten(s, move, z);
    double root = sqrt(s->c_sigma * (2 - s->c_sigma) * s->mu_eff);
    for (size_t j = 0; j < d; j++)
        s->p_sigma[j] = (1 - s->c_sigma) * s->p_sigma[j] + root * z[j]; /* (43) */
    s->generation++;
    double length = norm(s->p_sigma, d);
    double settled = sqrt(1 - pow(1 - s->c_sigma, 2 * (double)s->generation));
    bool stalled = length / settled >= (1.4 + 2 / ((double)d + 1)) * s->chi;
    root = stalled ? 0 : sqrt(s->c_c * (2 - s->c_c) * s->mu_eff);
    for (size_t j = 0; j < d; j++)
        s->p_c[j] = (1 - s->c_c) * s->p_c[j] + root * move[j]; /* (45) */
    adapt_covariance(s, steps, stalled);
    s->sigma *= exp(fmin(1, s->c_sigma / s->d_sigma * (length / s->chi - 1))); /* (44) */
    s->sigma = fmin(SIGMA_MOST, fmax(SIGMA_LEAST, s->sigma));
}

/* ---- draws ---- */

double distribution_deviation(const struct distribution *s, size_t j)
{
    return s->sigma * sqrt(s->cov[s->is_full ? j * s->d + j : j]);
}

void distribution_draw(const struct distribution *s, struct rng *r, const double *least,
                       double *ret)
{
    double *z = s->work;
    for (size_t j = 0; j < s->d; j++)
        z[j] = rng_normal(r);
    for (size_t i = 0; i < s->d; i++) {
        const double *row = s->factor + i * s->d;
        double y = s->is_full ? 0 : s->factor[i] * z[i], has = distribution_deviation(s, i);
        for (size_t k = 0; s->is_full && k <= i; k++)
            y += row[k] * z[k];
        ret[i] = s->mean[i] + s->sigma * y * (has < least[i] ? least[i] / has : 1);
    }
}
