/* Functions drawn from the posterior by Matheron's rule (paths.h).
 *
 * The prior part is a sum of random Fourier features. Its cosines are the hot loop, so frequencies
 * are stored in turns (reducing a phase is then exact) and one vectorised loop computes sine and
 * cosine together. All functions share their frequencies, so the features of a point are computed
 * once and multiplied with the weights of all functions in one matrix product. The correction by
 * the observations is one solve for all functions at creation, and one product for each batch of
 * points. */
#include "search/regression/paths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/blas.h"
#include "base/rng.h"
#include "search/regression/buf.h"
#include "search/regression/vec_exp.h"

#define PI 3.14159265358979323846
#define MAX_FREQUENCIES ((size_t)1 << 28) /* entries of the table of categories' frequencies */

/* S paths, F frequencies; a point has F phases, and 2F features: all cosines, then all sines. */
struct gp_paths {
    const struct gp_model *m; /* borrowed */
    struct gp_work *work;
    size_t n_paths, n_features, n_rows;
    /* Frequencies in turns: a whole phase is a period, so that reducing one is exact. */
    struct gp_buf by_real;  /* F x n_real */
    double *by_category;    /* values of all category columns x F */
    size_t *first_value;    /* [n_cat]: the column's first row in by_category */
    struct gp_buf weights;  /* 2F x S, with the amplitude */
    struct gp_buf update;   /* S x n_rows: (K + v I)^-1 (y - g(X) - e) */
    struct gp_buf features; /* batch x 2F */
    struct gp_buf cross;    /* batch x n_rows */
};

void gp_paths_free(struct gp_paths *p)
{
    if (!p)
        return;
    gp_work_free(p->work);
    gp_buf_done(&p->by_real);
    free(p->by_category);
    free(p->first_value);
    gp_buf_done(&p->weights);
    gp_buf_done(&p->update);
    gp_buf_done(&p->features);
    gp_buf_done(&p->cross);
    free(p);
}

/* ---- the prior ---- */

/* ret[i] = cos(2 pi t[i]), sine[i] = sin(2 pi t[i]), within 1e-12 for |t| < 2^40. It uses the
 * double angle of h = pi (t - round t) in [-pi/2, pi/2] and the series of sin h and cos h. The
 * first omitted terms are below 1e-13. There are no branches, so gcc vectorises it. ret may be
 * t. */
CPU_CLONES static void sincos_turns(const double *t, size_t n, double *ret, double *sine)
{
    const double magic = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer */
    for (size_t i = 0; i < n; i++) {
        double h = (t[i] - ((t[i] + magic) - magic)) * PI, q = h * h;
        double s = -8.22063524662433e-18;
        s = s * q + 2.8114572543455206e-15;
        s = s * q - 7.647163731819816e-13;
        s = s * q + 1.6059043836821613e-10;
        s = s * q - 2.505210838544172e-08;
        s = s * q + 2.7557319223985893e-06;
        s = s * q - 1.984126984126984e-04;
        s = s * q + 8.333333333333333e-03;
        s = s * q - 1.6666666666666666e-01;
        s = (s * q + 1.0) * h;
        double c = -1.5619206968586225e-16;
        c = c * q + 4.779477332387385e-14;
        c = c * q - 1.1470745597729725e-11;
        c = c * q + 2.08767569878681e-09;
        c = c * q - 2.755731922398589e-07;
        c = c * q + 2.48015873015873e-05;
        c = c * q - 1.388888888888889e-03;
        c = c * q + 4.1666666666666664e-02;
        c = (c * q - 0.5) * q + 1.0;
        ret[i] = 1.0 - 2.0 * s * s;
        sine[i] = 2.0 * s * c;
    }
}

static void draw_frequencies(struct gp_paths *p, size_t n_values, struct rng *r)
{
    const struct gp_columns *c = gp_model_columns(p->m);
    const double *theta = gp_model_theta(p->m);
    for (size_t f = 0; f < p->n_features; f++) {
        double chi2 = 0;
        for (size_t k = 0; k < 5; k++) {
            double z = rng_normal(r);
            chi2 += z * z;
        }
        double scale = (c->is_smooth ? 1 : sqrt(5 / chi2)) / (2 * PI);
        for (size_t j = 0; j < c->n_real; j++)
            p->by_real.p[f * c->n_real + j] = scale * rng_normal(r) / gp_model_length(p->m, j);
        for (size_t k = 0; k < c->n_cat; k++) {
            double height = scale * exp(-theta[c->n_groups + k]) / sqrt(2);
            size_t end = k + 1 < c->n_cat ? p->first_value[k + 1] : n_values;
            for (size_t v = p->first_value[k]; v < end; v++)
                p->by_category[v * p->n_features + f] = height * rng_normal(r);
        }
    }
}

static void draw_weights(struct gp_paths *p, struct rng *r)
{
    double amplitude = sqrt(gp_model_signal(p->m) / (double)p->n_features);
    for (size_t i = 0; i < 2 * p->n_features; i++) {
        double *row = p->weights.p + i * p->n_paths;
        row[0] = 0; /* the mean function: no prior draw */
        for (size_t s = 1; s < p->n_paths; s++)
            row[s] = amplitude * rng_normal(r);
    }
}

/* Fill `features` for n <= GP_PATHS_BATCH points. */
static void compute_features(struct gp_paths *p, const double *x, const int32_t *z, size_t n)
{
    const struct gp_columns *c = gp_model_columns(p->m);
    size_t F = p->n_features, d = c->n_real;
    double *features = p->features.p;
    if (d > 0)
        blas_need()->dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)F, (int)d, 1, x,
                           (int)d, p->by_real.p, (int)d, 0, features, (int)(2 * F));
    for (size_t i = 0; i < n; i++) {
        double *row = features + i * 2 * F;
        if (d == 0)
            memset(row, 0, F * sizeof *row);
        for (size_t k = 0; z && k < c->n_cat; k++) {
            int32_t value = z[i * c->n_cat + k];
            if (value == GP_INACTIVE)
                continue;
            blas_need()->daxpy((int)F, 1, p->by_category + (p->first_value[k] + (size_t)value) * F,
                               1, row, 1);
        }
        sincos_turns(row, F, row, row + F);
    }
}

/* ret (n x S) = the prior's draws, plus the constant mean. */
static void evaluate_prior(struct gp_paths *p, const double *x, const int32_t *z, size_t n,
                           double *ret)
{
    size_t S = p->n_paths, F = p->n_features;
    compute_features(p, x, z, n);
    for (size_t i = 0; i < n * S; i++)
        ret[i] = gp_model_constant(p->m);
    blas_need()->dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)S, (int)(2 * F), 1,
                       p->features.p, (int)(2 * F), p->weights.p, (int)S, 1, ret, (int)S);
}

/* ---- the update ---- */

static size_t batch_size(size_t n, size_t at)
{
    return n - at < GP_PATHS_BATCH ? n - at : GP_PATHS_BATCH;
}

/* `prior` is scratch: batch x S. */
static void compute_update(struct gp_paths *p, const double *y, double *prior, struct rng *r)
{
    const struct gp_columns *c = gp_model_columns(p->m);
    const double *x = gp_model_x(p->m);
    const int32_t *z = gp_model_z(p->m);
    size_t S = p->n_paths, n = p->n_rows;
    double deviation = sqrt(gp_model_noise(p->m));
    for (size_t at = 0, now; at < n; at += now) {
        now = batch_size(n, at);
        evaluate_prior(p, c->n_real ? x + at * c->n_real : NULL,
                       c->n_cat ? z + at * c->n_cat : NULL, now, prior);
        for (size_t i = 0; i < now; i++)
            for (size_t s = 0; s < S; s++) {
                double e = s == 0 ? 0 : deviation * rng_normal(r);
                p->update.p[s * n + at + i] = y[at + i] - prior[i * S + s] - e;
            }
    }
    if (n > 0)
        gp_model_solve(p->m, p->update.p, S, n);
}

void gp_paths_evaluate(struct gp_paths *p, const struct gp_rows *points, double *ret)
{
    const struct gp_columns *c = gp_model_columns(p->m);
    size_t S = p->n_paths, n = p->n_rows;
    for (size_t at = 0, now; at < points->n; at += now) {
        now = batch_size(points->n, at);
        struct gp_rows batch = {now, c->n_real ? points->x + at * c->n_real : NULL,
                                c->n_cat ? points->z + at * c->n_cat : NULL};
        evaluate_prior(p, batch.x, batch.z, now, ret + at * S);
        if (n == 0)
            continue;
        gp_model_cross(p->m, p->work, &batch, n, p->cross.p);
        blas_need()->dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)now, (int)S, (int)n, 1,
                           p->cross.p, (int)n, p->update.p, (int)n, 1, ret + at * S, (int)S);
    }
}

/* ---- creation ---- */

/* Set where each category column's values begin in the table, and their total number. */
static as_status lay_out_categories(struct gp_paths *p, const uint32_t *n_values, size_t *ret_n,
                                    struct as_err *err)
{
    const struct gp_columns *c = gp_model_columns(p->m);
    const int32_t *z = gp_model_z(p->m);
    size_t total = 0;
    p->first_value = as_calloc(c->n_cat, sizeof *p->first_value);
    if (!p->first_value)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu categories", c->n_cat);
    for (size_t k = 0; k < c->n_cat; k++) {
        p->first_value[k] = total;
        total += n_values[k];
        for (size_t i = 0; i < p->n_rows; i++)
            if (z[i * c->n_cat + k] != GP_INACTIVE && (uint32_t)z[i * c->n_cat + k] >= n_values[k])
                return as_fail(err, AS_E_INVAL,
                               "row %zu has category %d in column %zu, expected below %u", i,
                               z[i * c->n_cat + k], k, n_values[k]);
    }
    if (total > MAX_FREQUENCIES / p->n_features)
        return as_fail(err, AS_E_TOO_LARGE, "%zu categories with %zu features", total,
                       p->n_features);
    *ret_n = total;
    return AS_OK;
}

static as_status reserve_scratch(struct gp_paths *p, size_t n_values, struct as_err *err)
{
    const struct gp_columns *c = gp_model_columns(p->m);
    size_t S = p->n_paths, F = p->n_features;
    as_status st;
    p->work = gp_work_create();
    p->by_category = as_calloc(n_values, F * sizeof *p->by_category);
    if (!p->work || !p->by_category)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu posterior draws", S);
    if ((st = gp_work_reserve(p->work, p->m, GP_PATHS_BATCH, err)) < 0 ||
        (st = gp_buf_reserve(&p->by_real, F, c->n_real, err)) < 0 ||
        (st = gp_buf_reserve(&p->weights, 2 * F, S, err)) < 0 ||
        (st = gp_buf_reserve(&p->update, S, p->n_rows, err)) < 0 ||
        (st = gp_buf_reserve(&p->features, GP_PATHS_BATCH, 2 * F, err)) < 0)
        return st;
    return gp_buf_reserve(&p->cross, GP_PATHS_BATCH, p->n_rows, err);
}

as_status gp_paths_create(const struct gp_model *m, const double *y, size_t n_paths,
                          size_t n_features, const uint32_t *n_values, uint64_t key,
                          uint64_t purpose, struct gp_paths **ret, struct as_err *err)
{
    AS_AUTO(gp_paths_freep) struct gp_paths *p = as_calloc(1, sizeof *p);
    AS_AUTO(as_freep) double *prior = as_calloc(GP_PATHS_BATCH, n_paths * sizeof *prior);
    size_t total_values;
    if (!p || !prior)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu posterior draws", n_paths);
    p->m = m;
    p->n_paths = n_paths;
    p->n_features = n_features;
    p->n_rows = gp_model_observed(m);
    as_status st = lay_out_categories(p, n_values, &total_values, err);
    if (st < 0 || (st = reserve_scratch(p, total_values, err)) < 0)
        return st;
    struct rng r;
    rng_init(&r, key, purpose);
    draw_frequencies(p, total_values, &r);
    draw_weights(p, &r);
    compute_update(p, y, prior, &r);
    *ret = as_steal(p);
    return AS_OK;
}
