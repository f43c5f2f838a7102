/* Figures for what is decided here are in decision 4023. */
#include "search/regression/local_noise.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "search/regression/model.h"

#define LEAST_NOISE 0.02 /* variance, of values of deviation 1: less needs no places */
#define FIRST_NOISE 0.01 /* of the model whose residuals come first */
#define ROUNDS 4
/* By so much for each group of near rows must the logarithm of the evidence grow: about twice what
 * chance gives. */
#define BETTER 1.0
#define FACTOR_MOST 1e4 /* either way */
#define NEAREST_SHARE 6 /* a sixth of the rows is near, */
#define NEAREST_LEAST 5 /* but at least so many */
#define NEAREST_MOST 15
#define HELD 0.5 /* the weight of one more residual, which is as expected */

struct places {
    const struct gp_columns *c;
    struct gp_rows rows; /* its v are the factors of this round */
    const double *y;
    struct gp_model *model;
    double *theta, *factors, *next, *mean, *var;
};

static void places_done(struct places *p)
{
    gp_model_free(p->model);
    free(p->theta);
    free(p->factors);
    free(p->next);
    free(p->mean);
    free(p->var);
}

static as_status reserve(struct places *p, struct as_err *err)
{
    size_t n = p->rows.n;
    p->theta = as_calloc(gp_n_theta(p->c), sizeof *p->theta);
    p->factors = as_calloc(n, sizeof *p->factors);
    p->next = as_calloc(n, sizeof *p->next);
    p->mean = as_calloc(n, sizeof *p->mean);
    p->var = as_calloc(n, sizeof *p->var);
    if (!p->theta || !p->factors || !p->next || !p->mean || !p->var)
        return as_fail(err, AS_E_NOMEM, "out of memory for the noise of %zu values", n);
    return gp_model_create(p->c, &p->model, err);
}

/* How many rows are near a row, itself included. */
static size_t near_rows(size_t n)
{
    size_t most = n / NEAREST_SHARE;
    return most < NEAREST_LEAST ? NEAREST_LEAST : most > NEAREST_MOST ? NEAREST_MOST : most;
}

/* The rows nearest to row i, which is the first of them. */
static size_t nearest(const struct places *p, size_t i, size_t ret[NEAREST_MOST])
{
    size_t n = p->rows.n, most = near_rows(n), found = 0;
    double far[NEAREST_MOST];
    for (size_t j = 0; j < n; j++) {
        double r = j == i ? -1 : gp_row_distance(p->c, &p->rows, i, j);
        size_t at = found;
        while (at > 0 && r < far[at - 1])
            at--;
        if (at == most)
            continue;
        found += found < most;
        memmove(far + at + 1, far + at, (found - 1 - at) * sizeof *far);
        memmove(ret + at + 1, ret + at, (found - 1 - at) * sizeof *ret);
        far[at] = r;
        ret[at] = j;
    }
    return found;
}

/* New factors from the residuals of the model. A residual says as much of the noise as the noise
 * has of its variance; in the first round, whose noise is a guess, all. */
static as_status change_factors(struct places *p, bool is_first, struct as_err *err)
{
    size_t n = p->rows.n, near[NEAREST_MOST];
    double noise = gp_model_noise(p->model), mean_log = 0;
    as_status st = gp_model_loo(p->model, p->y, p->mean, p->var, err);
    if (st < 0)
        return st;
    for (size_t i = 0; i < n; i++) {
        double sum = HELD, weight = HELD;
        size_t n_near = nearest(p, i, near);
        for (size_t k = 0; k < n_near; k++) {
            size_t j = near[k];
            double off = p->y[j] - p->mean[j];
            double share = is_first ? 1 : fmin(1, noise * p->factors[j] / p->var[j]);
            sum += share * off * off / p->var[j];
            weight += share;
        }
        p->next[i] = p->factors[i] * sum / weight;
        mean_log += log(p->next[i]) / (double)n;
    }
    for (size_t i = 0; i < n; i++)
        p->factors[i] = fmin(FACTOR_MOST, fmax(1 / FACTOR_MOST, p->next[i] / exp(mean_log)));
    return AS_OK;
}

static as_status do_round(struct places *p, bool is_first, struct gp_fit_work *w, double *ret_nll,
                          struct as_err *err)
{
    struct gp_fit_result result;
    const struct gp_fit_opts opts = {.cold = true};
    as_status st = gp_model_build(p->model, p->theta, &p->rows, p->rows.n, err);
    if (st < 0 || (st = gp_model_observe(p->model, p->y, p->rows.n, err)) < 0 ||
        (st = change_factors(p, is_first, err)) < 0)
        return st;
    st = gp_fit(p->c, &p->rows, p->y, &opts, w, p->theta, &result, err);
    if (st == AS_OK)
        *ret_nll = result.nll;
    return st;
}

as_status local_noise_fit(const struct gp_columns *c, const struct gp_rows *rows, const double *y,
                          struct gp_fit_work *w, double *ret_theta, double *ret_v,
                          struct as_err *err)
{
    AS_AUTO(places_done)
    struct places p = {.c = c, .rows = {rows->n, rows->x, rows->z, rows->s, NULL}, .y = y};
    const struct gp_fit_opts opts = {.cold = true};
    struct gp_fit_result first;
    double best, nll = 0;
    as_status st = gp_fit(c, &p.rows, y, &opts, w, ret_theta, &first, err);
    for (size_t i = 0; i < rows->n && st == AS_OK; i++)
        ret_v[i] = 1;
    if (st < 0 || rows->n < LOCAL_NOISE_ROWS || exp(ret_theta[gp_n_lengths(c) + 1]) < LEAST_NOISE ||
        (st = reserve(&p, err)) < 0)
        return st;
    for (size_t i = 0; i < rows->n; i++)
        p.factors[i] = 1;
    p.rows.v = p.factors;
    gp_theta_default(c, p.theta);
    p.theta[gp_n_lengths(c) + 1] = log(FIRST_NOISE);
    best = first.nll - BETTER * (double)rows->n / (double)near_rows(rows->n);
    for (int round = 0; round < ROUNDS; round++) {
        st = do_round(&p, round == 0, w, &nll, err);
        if (st < 0) /* what was found before holds */
            return st == AS_E_NUMERIC ? AS_OK : st;
        if (nll >= best)
            continue;
        best = nll;
        memcpy(ret_theta, p.theta, gp_n_theta(c) * sizeof *ret_theta);
        memcpy(ret_v, p.factors, rows->n * sizeof *ret_v);
    }
    return AS_OK;
}
