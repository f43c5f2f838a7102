/* Guides: predictions of earlier sweeps, their warps, and their weights. There are at most
 * WARM_START_SWEEPS of them and TRUST_MOST rows, so the weights may have a factor of their own,
 * which is computed for the hyperparameters of the fit before. */
#include "search/gp/guide.h"

#include <math.h>
#include <string.h>

#include "search/gp/guide_priv.h"
#include "search/prior/trust.h"
#include "search/regression/model.h"

/* A bar of 1.5 instead of two deviations left 1.10, 1.18, 0.96, 0.96 of the regret after random
 * sweeps and 0.25, 0.08, 0.08, 0.31 after shifted ones, at 10, 20, 30, 50 trials: no difference
 * beyond the noise (decision 4011). */
#define GUIDE_DEVIATIONS 2.0 /* of a weight above 0, before it counts */
#define WEIGHT_MOST 2.0
#define DESCENTS 50
#define CHUNK 16 /* points whose guides are added at once */

void guide_store_done(struct guide_store *s)
{
    for (size_t k = 0; k < WARM_START_SWEEPS; k++) {
        warm_start_model_free(s->models[k]);
        warm_start_model_free(s->plain[k]);
    }
    *s = (struct guide_store){0};
}

size_t guide_store_bytes(const struct guide_store *s)
{
    size_t bytes = 0;
    for (size_t k = 0; k < WARM_START_SWEEPS; k++) {
        bytes += s->models[k] ? warm_start_model_bytes(s->models[k]) : 0;
        bytes += s->plain[k] ? warm_start_model_bytes(s->plain[k]) : 0;
    }
    return bytes;
}

void guides_done(struct guides *g)
{
    for (size_t k = 0; k < WARM_START_SWEEPS; k++) {
        gp_warp_free(g->warps[k]);
        free(g->shift[k]);
    }
    free(g->shifts);
    free(g->values);
    *g = (struct guides){0};
}

static as_status fill_store(struct guide_store *store, const struct training_set *s,
                            struct as_err *err)
{
    const struct warm_start *w = s->spec->earlier;
    for (size_t k = 0; k < w->n && !store->is_made; k++) {
        as_status st = AS_OK;
        if (!store->models[k])
            st = warm_start_model_create(w, k, WARM_START_WARPED, s->enc, &s->columns,
                                         &store->models[k], err);
        if (st == AS_OK && !store->plain[k])
            st = warm_start_model_create(w, k, WARM_START_STANDARDISED, s->enc, &s->columns,
                                         &store->plain[k], err);
        if (st < 0)
            return st;
    }
    store->is_made = true;
    return AS_OK;
}

/* Numbers that are always active have one column, which is their place. */
static as_status list_shifts(struct guides *g, const struct encoding *e, struct as_err *err)
{
    g->shifts = as_calloc(e->n_real, sizeof *g->shifts);
    if (!g->shifts)
        return as_fail_nomem(err);
    for (size_t j = 0; j < e->n; j++)
        if (e->params[j].real >= 0 && !e->params[j].is_conditional) {
            g->shifts[e->params[j].real] = true;
            g->n_shifts++;
        }
    return AS_OK;
}

as_status guides_create(struct guide_store *store, const struct training_set *s, gp_warp_kind kind,
                        const struct gp_rows *rows, struct guides *ret, struct as_err *err)
{
    AS_AUTO(guides_done) struct guides g = {.n_rows = rows->n, .kind = kind};
    if (!s->spec->earlier || s->spec->n_objectives != 1 ||
        s->n_completed + s->n_failed >= TRUST_MOST)
        return AS_OK;
    as_status st = fill_store(store, s, err);
    if (st < 0 || (st = list_shifts(&g, s->enc, err)) < 0)
        return st;
    g.values = as_calloc(WARM_START_SWEEPS, rows->n * sizeof *g.values);
    if (!g.values)
        return as_fail_nomem(err);
    for (size_t k = 0; k < WARM_START_SWEEPS; k++) {
        struct warm_start_model *m = store->models[k], *plain = store->plain[k];
        if (!m)
            continue;
        if ((st = warm_start_model_reserve(m, rows->n, err)) < 0 ||
            (plain && (st = warm_start_model_reserve(plain, rows->n, err)) < 0))
            return st;
        g.shift[g.n] = as_calloc(s->columns.n_real, sizeof(double));
        if (!g.shift[g.n])
            return as_fail_nomem(err);
        g.sweep[g.n] = k;
        g.plain[g.n] = plain;
        g.models[g.n++] = m;
    }
    *ret = g;
    g = (struct guides){0};
    return AS_OK;
}

/* ---- predictions ---- */

/* What guide k says at p->n points, before its warp. x is scratch, [p->n x n_real]. */
static void predict(const struct guides *g, size_t k, size_t n_real, const struct gp_rows *p,
                    double *x, double *ret, double *ret_slope)
{
    for (size_t i = 0; i < p->n; i++)
        for (size_t j = 0; j < n_real; j++)
            x[i * n_real + j] = p->x[i * n_real + j] + g->shift[k][j];
    warm_start_model_predict(g->models[k], &(struct gp_rows){p->n, x, p->z}, ret, ret_slope);
}

as_status guides_reserve(const struct guides *g, size_t batch, struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t k = 0; k < g->n && st == AS_OK; k++)
        st = warm_start_model_reserve(g->models[k], batch, err);
    return st;
}

void guides_add(const struct guides *g, const struct gp_columns *c, const struct gp_rows *p,
                double *mean, double *dmean)
{
    double value[CHUNK], slope[CHUNK * 2 * SPACE_MAX_PARAMS], x[CHUNK * 2 * SPACE_MAX_PARAMS];
    size_t n_real = c->n_real;
    for (size_t k = 0; k < g->n; k++)
        for (size_t from = 0; from < p->n && g->weights[k] > 0; from += CHUNK) {
            size_t n = p->n - from < CHUNK ? p->n - from : CHUNK;
            struct gp_rows some = {n, p->x + from * n_real, p->z + from * c->n_cat};
            predict(g, k, n_real, &some, x, value, dmean ? slope : NULL);
            for (size_t i = 0; i < n; i++) {
                mean[from + i] += g->weights[k] * gp_warp_forward(g->warps[k], value[i]);
                double by = g->weights[k] * gp_warp_forward_slope(g->warps[k], value[i]);
                for (size_t j = 0; dmean && j < n_real; j++)
                    dmean[(from + i) * n_real + j] += by * slope[i * n_real + j];
            }
        }
}

/* ---- whitened values ---- */

/* Inner products of whitened values with the constant profiled out: <u, v> = u'K^-1 v less the
 * product of their parts along 1. */
struct whitening {
    size_t n;
    struct gp_model *model;
    double *one; /* [n]: K^-1 1 */
    double sum;  /* 1'K^-1 1 */
};

static void whitening_done(struct whitening *w)
{
    gp_model_free(w->model);
    free(w->one);
}

double guide_dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* <u, v>; solved: K^-1 u. */
static double product(const struct whitening *w, const double *solved, const double *u,
                      const double *v)
{
    return guide_dot(solved, v, w->n) -
           guide_dot(w->one, u, w->n) * guide_dot(w->one, v, w->n) / w->sum;
}

static as_status whiten(struct whitening *w, const struct gp_columns *c, const double *theta,
                        const struct gp_rows *rows, struct as_err *err)
{
    w->n = rows->n;
    w->one = as_calloc(w->n, sizeof(double));
    if (!w->one)
        return as_fail_nomem(err);
    as_status st = gp_model_create(c, &w->model, err);
    if (st < 0 || (st = gp_model_build(w->model, theta, rows, w->n, err)) < 0)
        return st;
    for (size_t i = 0; i < w->n; i++)
        w->one[i] = 1;
    gp_model_solve(w->model, w->one, 1, w->n);
    for (size_t i = 0; i < w->n; i++)
        w->sum += w->one[i];
    return AS_OK;
}

/* Set the values and the warp of guide k at its shift. x is scratch, [rows->n x n_real]. */
static as_status evaluate(struct guides *g, size_t k, size_t n_real, const struct gp_rows *rows,
                          double *x, struct as_err *err)
{
    double *values = g->values + k * rows->n;
    struct gp_warp *warp = NULL;
    predict(g, k, n_real, rows, x, values, NULL);
    as_status st = gp_warp_create(g->kind, values, rows->n, &warp, err);
    if (st < 0)
        return st;
    gp_warp_free(g->warps[k]);
    g->warps[k] = warp;
    memcpy(values, gp_warp_values(warp), rows->n * sizeof *values);
    return AS_OK;
}

as_status guides_find_shifts(struct guides *g, const struct gp_columns *c,
                             const struct gp_rows *rows, const double *costs, double *ret_gain,
                             struct as_err *err)
{
    double gain = 0, most = 0;
    for (size_t k = 0; k < g->n; k++) {
        as_status st = guide_find_shift(g, k, c, rows, costs, &gain, err);
        if (st < 0)
            return st;
        most = fmax(most, gain);
    }
    *ret_gain = most;
    return AS_OK;
}

void guides_drop(struct guides *g, const struct gp_columns *c)
{
    for (size_t k = 0; k < g->n; k++) {
        g->weights[k] = 0;
        memset(g->shift[k], 0, c->n_real * sizeof(double));
    }
}

/* ---- weights ---- */

/* The weights of guide.h, given the Gram matrix of the whitened guides and their products with
 * the whitened values. */
static void descend(struct guides *g, double gram[][WARM_START_SWEEPS], const double *with)
{
    const double square = GUIDE_DEVIATIONS * GUIDE_DEVIATIONS;
    memset(g->weights, 0, sizeof g->weights);
    for (int round = 0; round < DESCENTS; round++)
        for (size_t k = 0; k < g->n; k++) {
            double rest = with[k];
            for (size_t j = 0; j < g->n; j++)
                rest -= j == k ? 0 : gram[k][j] * g->weights[j];
            double left = rest > 0 && gram[k][k] > 0 ? rest / gram[k][k] - square / rest : 0;
            g->weights[k] = fmin(WEIGHT_MOST, fmax(0, left));
        }
}

as_status guides_explain(struct guides *g, const struct gp_columns *c, const double *theta,
                         const struct gp_rows *rows, double *y, struct as_err *err)
{
    AS_AUTO(whitening_done) struct whitening w = {0};
    size_t n = rows->n;
    double gram[WARM_START_SWEEPS][WARM_START_SWEEPS], with[WARM_START_SWEEPS];
    if (!g->n)
        return AS_OK;
    as_status st = whiten(&w, c, theta, rows, err);
    AS_AUTO(as_freep) double *solved = as_calloc(g->n, n * sizeof *solved);
    AS_AUTO(as_freep) double *x = as_calloc(n, c->n_real * sizeof *x);
    if (st < 0 || !solved || !x)
        return st < 0 ? st : as_fail_nomem(err);
    for (size_t k = 0; k < g->n; k++)
        if ((st = evaluate(g, k, c->n_real, rows, x, err)) < 0)
            return st;
    memcpy(solved, g->values, g->n * n * sizeof *solved);
    gp_model_solve(w.model, solved, g->n, n);
    for (size_t k = 0; k < g->n; k++) {
        const double *own = g->values + k * n;
        with[k] = product(&w, solved + k * n, own, y);
        for (size_t j = 0; j < g->n; j++)
            gram[k][j] = product(&w, solved + k * n, own, g->values + j * n);
    }
    descend(g, gram, with);
    for (size_t k = 0; k < g->n; k++)
        for (size_t i = 0; i < n; i++)
            y[i] -= g->weights[k] * g->values[k * n + i];
    return AS_OK;
}
