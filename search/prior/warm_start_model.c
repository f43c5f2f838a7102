/* The fit is gp_fit() of the sweep's own models, from the defaults and one random start. It has the
 * snapshot's trials, at most 100, so a fit takes milliseconds; the model is kept with the sweep's
 * caches. Columns that no trial of the snapshot has are masked, so a new parameter does not look
 * like one that was always at its default. */
#include "search/prior/warm_start_model.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "search/problem/random_stream.h"
#include "search/regression/fit.h"
#include "search/regression/model.h"
#include "search/regression/warp.h"

#define RANDOM_STARTS 1

struct warm_start_model {
    struct gp_model *model;
    struct gp_warp *warp;   /* NULL: standardised by these two */
    double mean, deviation; /* of the costs */
    struct gp_work *work;
    size_t n_real, n_cat, batch;
    bool *real, *category; /* [n_real], [n_cat]: some trial of the snapshot has this column */
    double *x;             /* [batch x n_real] */
    int32_t *z;            /* [batch x n_cat] */
    double *var, *dvar;    /* [batch], [batch x n_real]: of no use */
};

void warm_start_model_free(struct warm_start_model *m)
{
    if (!m)
        return;
    gp_model_free(m->model);
    gp_warp_free(m->warp);
    gp_work_free(m->work);
    free(m->real);
    free(m->category);
    free(m->x);
    free(m->z);
    free(m->var);
    free(m->dvar);
    free(m);
}

size_t warm_start_model_bytes(const struct warm_start_model *m)
{
    return sizeof *m + gp_model_bytes(m->model) + gp_work_bytes(m->work) +
           m->batch * (2 * m->n_real * sizeof(double) + m->n_cat * sizeof(int32_t));
}

as_status warm_start_model_reserve(struct warm_start_model *m, size_t batch, struct as_err *err)
{
    as_status st = gp_work_reserve(m->work, m->model, batch, err);
    if (st < 0 || batch <= m->batch)
        return st;
    if ((st = as_grow(&m->x, batch * m->n_real + 1, sizeof *m->x, err)) < 0 ||
        (st = as_grow(&m->z, batch * m->n_cat + 1, sizeof *m->z, err)) < 0 ||
        (st = as_grow(&m->var, batch, sizeof *m->var, err)) < 0 ||
        (st = as_grow(&m->dvar, batch * m->n_real + 1, sizeof *m->dvar, err)) < 0)
        return st;
    m->batch = batch;
    return AS_OK;
}

/* The features without the columns that the snapshot does not know. */
static struct gp_rows mask(const struct warm_start_model *m, const struct gp_rows *p, double *x,
                           int32_t *z)
{
    for (size_t i = 0; i < p->n; i++) {
        for (size_t j = 0; j < m->n_real; j++)
            x[i * m->n_real + j] = m->real[j] ? p->x[i * m->n_real + j] : 0;
        for (size_t j = 0; j < m->n_cat; j++)
            z[i * m->n_cat + j] = m->category[j] ? p->z[i * m->n_cat + j] : GP_INACTIVE;
    }
    return (struct gp_rows){p->n, x, z};
}

void warm_start_model_predict(struct warm_start_model *m, const struct gp_rows *p, double *ret,
                              double *ret_slope)
{
    struct gp_rows rows = mask(m, p, m->x, m->z);
    if (ret_slope)
        gp_predict_grad(m->model, m->work, &rows, ret, m->var, ret_slope, m->dvar);
    else
        gp_predict(m->model, m->work, &rows, ret, NULL);
    for (size_t i = 0; i < p->n; i++) {
        double slope = m->warp ? gp_warp_inverse_slope(m->warp, ret[i]) : m->deviation;
        ret[i] = m->warp ? gp_warp_inverse(m->warp, ret[i]) : m->mean + m->deviation * ret[i];
        for (size_t j = 0; ret_slope && j < m->n_real; j++)
            ret_slope[i * m->n_real + j] *= m->real[j] ? slope : 0;
    }
}

void warm_start_model_joint(struct warm_start_model *m, const struct gp_rows *p, double *ret,
                            double *ret_cov)
{
    struct gp_rows rows = mask(m, p, m->x, m->z);
    assert(!m->warp);
    gp_predict_joint(m->model, m->work, &rows, ret, ret_cov);
    for (size_t i = 0; i < p->n; i++)
        ret[i] = m->mean + m->deviation * ret[i];
    for (size_t i = 0; i < p->n * p->n; i++)
        ret_cov[i] *= m->deviation * m->deviation;
}

/* ---- the fit ---- */

struct rows {
    double *x;
    int32_t *z;
};

static void rows_done(struct rows *r)
{
    free(r->x);
    free(r->z);
}

static void find_known(const struct warm_start_sweep *s, const struct encoding *e,
                       struct warm_start_model *m)
{
    for (size_t i = 0; i < s->n_trials; i++)
        for (size_t j = 0; j < e->n; j++) {
            const struct encoded_param *p = &e->params[j];
            if (!s->known[i * e->n + j])
                continue;
            if (p->category >= 0)
                m->category[p->category] = true;
            for (int c = 0; p->real >= 0 && c < 1 + p->is_conditional; c++)
                m->real[p->real + c] = true;
            for (int c = 0; p->order_real >= 0 && c < 1 + p->is_conditional; c++)
                m->real[p->order_real + c] = true;
        }
}

static as_status fit(const struct warm_start_sweep *s, const double *y, const struct gp_columns *c,
                     const struct gp_rows *rows, struct warm_start_model *m, struct as_err *err)
{
    AS_AUTO(as_freep) double *theta = as_calloc(gp_n_theta(c), sizeof *theta);
    AS_AUTO(gp_fit_work_freep) struct gp_fit_work *work = gp_fit_work_create();
    const struct gp_fit_opts opts = {
        .cold = true, .n_random = RANDOM_STARTS, .key = s->n_trials, .purpose = SEARCH_DRAW_GP_FIT};
    if (!theta || !work)
        return as_fail_nomem(err);
    as_status st = gp_fit(c, rows, y, &opts, work, theta, NULL, err);
    if (st < 0 || (st = gp_model_create(c, &m->model, err)) < 0 ||
        (st = gp_model_build(m->model, theta, rows, rows->n, err)) < 0)
        return st;
    return gp_model_observe(m->model, y, rows->n, err);
}

/* Transform the costs into y. AS_E_NUMERIC: they overflow. */
static as_status transform(const struct warm_start_sweep *s, warm_start_values values,
                           struct warm_start_model *m, double *y, struct as_err *err)
{
    size_t n = s->n_trials;
    if (values == WARM_START_WARPED) {
        as_status st = gp_warp_create(WARP_HALF_RANK, s->costs, n, &m->warp, err);
        if (st == AS_OK)
            memcpy(y, gp_warp_values(m->warp), n * sizeof *y);
        return st;
    }
    memcpy(y, s->costs, n * sizeof *y);
    if (!gp_standardise(y, n, &m->mean, &m->deviation))
        return as_fail(err, AS_E_NUMERIC, "the costs of an earlier sweep overflow");
    return AS_OK;
}

/* AS_E_NUMERIC: no model. */
static as_status make(const struct warm_start_sweep *s, warm_start_values values,
                      const struct encoding *e, const struct gp_columns *c,
                      struct warm_start_model *m, struct as_err *err)
{
    size_t n = s->n_trials;
    AS_AUTO(as_freep) double *y = as_calloc(n, sizeof *y);
    AS_AUTO(rows_done)
    struct rows r = {as_calloc(n, c->n_real * sizeof(double)),
                     as_calloc(n, c->n_cat * sizeof(int32_t))};
    m->n_real = c->n_real;
    m->n_cat = c->n_cat;
    m->real = as_calloc(c->n_real, sizeof *m->real);
    m->category = as_calloc(c->n_cat, sizeof *m->category);
    m->work = gp_work_create();
    if (!y || !r.x || !r.z || !m->real || !m->category || !m->work)
        return as_fail_nomem(err);
    as_status st = transform(s, values, m, y, err);
    if (st < 0)
        return st;
    find_known(s, e, m);
    for (size_t i = 0; i < n; i++)
        encoding_features(e, s->points + i * e->n, r.x + i * c->n_real, r.z + i * c->n_cat);
    struct gp_rows rows = {n, r.x, r.z};
    rows = mask(m, &rows, r.x, r.z);
    return fit(s, y, c, &rows, m, err);
}

as_status warm_start_model_create(const struct warm_start *w, size_t k, warm_start_values values,
                                  const struct encoding *e, const struct gp_columns *c,
                                  struct warm_start_model **ret, struct as_err *err)
{
    const struct warm_start_sweep *s = &w->sweeps[k];
    AS_AUTO(warm_start_model_freep) struct warm_start_model *m = as_calloc(1, sizeof *m);
    struct as_err why = {0};
    if (!m)
        return as_fail_nomem(err);
    if (s->n_trials < WARM_START_MODEL_LEAST || !(s->costs[s->n_trials - 1] > s->costs[0]))
        return AS_OK;
    as_status st = make(s, values, e, c, m, &why);
    if (st == AS_E_NUMERIC)
        return AS_OK;
    if (st < 0) {
        if (err)
            *err = why;
        return st;
    }
    *ret = as_steal(m);
    return AS_OK;
}
