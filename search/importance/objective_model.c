/* Trials -> rows -> values that a Gaussian process can be fitted to -> hyperparameters -> model. */
#include "search/importance/objective_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "search/problem/random_stream.h"
#include "search/regression/fit.h"
#include "search/regression/subset.h"

/* Values are cut at worst decile + CUT (worst decile - median). The cut of WARP_PLAIN, by the
 * better quartile, gave the index of a linear function as 0.1 instead of 0.63 (decision 4016). */
#define CUT 3
#define FIT_ROWS 512 /* trials that the fit of the hyperparameters uses */

void objective_model_free(struct objective_model *m)
{
    if (!m)
        return;
    gp_model_free(m->model);
    training_set_free(m->s);
    free(m->all_points);
    free(m->all_costs);
    free(m->x);
    free(m->z);
    free(m->costs);
    free(m->y);
    free(m);
}

/* ---- the trials ---- */

static as_status no_memory(const struct objective_model *m, struct as_err *err)
{
    return as_fail(err, AS_E_NOMEM, "out of memory for a model of %zu trials", m->s->n);
}

static as_status alloc_rows(struct objective_model *m, struct as_err *err)
{
    const struct encoding *e = m->s->enc;
    size_t n = m->s->n;
    m->x = as_calloc(n, e->n_real * sizeof *m->x);
    m->z = as_calloc(n, e->n_category * sizeof *m->z);
    m->y = as_calloc(n, sizeof *m->y);
    m->costs = as_calloc(n, sizeof *m->costs);
    m->all_points = as_calloc(n, e->n * sizeof *m->all_points);
    m->all_costs = as_calloc(n, sizeof *m->all_costs);
    bool has_all = m->x && m->z && m->y && m->costs && m->all_points && m->all_costs;
    return has_all ? AS_OK : no_memory(m, err);
}

static void copy_features(struct objective_model *m, size_t to, const double *x, const int32_t *z)
{
    size_t d = m->s->enc->n_real, c = m->s->enc->n_category;
    if (d > 0)
        memmove(m->x + to * d, x, d * sizeof *x);
    if (c > 0)
        memmove(m->z + to * c, z, c * sizeof *z);
}

/* Trials of the set with a value of the objective. */
static void gather_rows(struct objective_model *m)
{
    const struct training_set *s = m->s;
    const struct encoding *e = s->enc;
    for (size_t i = 0; i < s->n; i++) {
        double cost = s->costs[i * s->spec->n_objectives + m->objective];
        if (!isfinite(cost))
            continue;
        copy_features(m, m->n, s->x + i * e->n_real, s->z + i * e->n_category);
        memcpy(m->all_points + m->n * e->n, training_set_point(s, i), e->n * sizeof *m->all_points);
        m->costs[m->n] = m->all_costs[m->n] = cost;
        m->n++;
    }
    m->n_all = m->n;
}

/* Move the chosen rows (ascending) to the front. */
static void keep_rows(struct objective_model *m, const size_t *chosen, size_t n)
{
    const struct encoding *e = m->s->enc;
    for (size_t k = 0; k < n; k++) {
        copy_features(m, k, m->x + chosen[k] * e->n_real, m->z + chosen[k] * e->n_category);
        m->costs[k] = m->costs[chosen[k]];
    }
    m->n = n;
}

static as_status read_rows(struct objective_model *m, struct as_err *err)
{
    static const struct gp_subset_size size = {
        IMPORTANCE_MAX_TRIALS / 5, IMPORTANCE_MAX_TRIALS / 10, IMPORTANCE_MAX_TRIALS * 7 / 10};
    as_status st = alloc_rows(m, err);
    if (st < 0)
        return st;
    gather_rows(m);
    if (m->n <= IMPORTANCE_MAX_TRIALS)
        return AS_OK;
    AS_AUTO(as_freep) size_t *chosen = as_calloc(IMPORTANCE_MAX_TRIALS, sizeof *chosen);
    if (!chosen)
        return no_memory(m, err);
    struct gp_rows all = {m->n, m->x, m->z};
    size_t n;
    st = gp_subset(&m->s->columns, &all, m->costs, &size, chosen, &n, err);
    if (st < 0)
        return st;
    keep_rows(m, chosen, n);
    return AS_OK;
}

static bool all_equal(const double *v, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (v[i] != v[0])
            return false;
    return true;
}

/* Set the reason if there can be no model. */
static bool explain_absence(struct objective_model *m)
{
    size_t least = 2 * m->s->enc->n_varied + 2;
    if (m->s->enc->n_varied == 0)
        snprintf(m->reason, sizeof m->reason, "no parameter can vary");
    else if (m->n_all < least)
        snprintf(m->reason, sizeof m->reason,
                 "%zu trial%s a value; it takes %zu (two for each parameter, and two)", m->n_all,
                 m->n_all == 1 ? " has" : "s have", least);
    else if (all_equal(m->costs, m->n))
        snprintf(m->reason, sizeof m->reason, "all trials have the same value");
    return m->reason[0] != '\0';
}

/* ---- the model ---- */

/* Convert costs to the values that the model is fitted to: cut far on the bad side, mean 0,
 * deviation 1. WARP_PLAIN is not used: it cuts by the better quartile. If most trials lie close to
 * the best one, it removes the rest of the space, which importance must describe
 * (docs/decisions/4016). */
static as_status standardise_costs(struct objective_model *m, struct as_err *err)
{
    size_t n = m->n;
    double *y = m->y;
    memcpy(y, m->costs, n * sizeof *y);
    qsort(y, n, sizeof *y, as_order_f64);
    m->unit = fmax(fabs(y[0]), fabs(y[n - 1])); /* so that no square overflows */
    double median = y[n / 2] / m->unit, bad = y[n - 1 - n / 10] / m->unit;
    double most = bad + CUT * (bad - median), mean = 0, square = 0;
    for (size_t i = 0; i < n; i++) {
        y[i] = bad > median ? fmin(m->costs[i] / m->unit, most) : m->costs[i] / m->unit;
        mean += y[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++)
        square += (y[i] - mean) * (y[i] - mean) / (double)n;
    if (!(square > 0))
        return as_fail(err, AS_E_NUMERIC, "the values cannot be told apart");
    m->mean = mean;
    m->span = sqrt(square);
    for (size_t i = 0; i < n; i++)
        y[i] = (y[i] - mean) / m->span;
    return AS_OK;
}

/* Fit the hyperparameters, to every k-th row if there are many. */
static as_status fit_theta(const struct objective_model *m, double *theta, struct as_err *err)
{
    size_t d = m->s->enc->n_real, c = m->s->enc->n_category;
    size_t stride = (m->n + FIT_ROWS - 1) / FIT_ROWS, n = 0;
    AS_AUTO(gp_fit_work_freep) struct gp_fit_work *work = gp_fit_work_create();
    AS_AUTO(as_freep) double *x = as_calloc(m->n, d * sizeof *x);
    AS_AUTO(as_freep) int32_t *z = as_calloc(m->n, c * sizeof *z);
    AS_AUTO(as_freep) double *y = as_calloc(m->n, sizeof *y);
    if (!work || !x || !z || !y)
        return no_memory(m, err);
    for (size_t i = 0; i < m->n; i += stride, n++) {
        memcpy(x + n * d, m->x + i * d, d * sizeof *x);
        memcpy(z + n * c, m->z + i * c, c * sizeof *z);
        y[n] = m->y[i];
    }
    struct gp_fit_opts opts = {.cold = true,
                               .n_random = 1,
                               .key = m->s->spec->seed,
                               .purpose = SEARCH_DRAW_IMPORTANCE}; /* its stream 0 */
    struct gp_rows rows = {n, x, z};
    return gp_fit(&m->s->columns, &rows, y, &opts, work, theta, NULL, err);
}

/* 1 - (squared error of leave-one-out predictions) / (variance of the values). */
static as_status measure_r2(struct objective_model *m, const struct gp_model *model,
                            struct as_err *err)
{
    AS_AUTO(as_freep) double *mean = as_calloc(m->n, sizeof *mean);
    AS_AUTO(as_freep) double *var = as_calloc(m->n, sizeof *var);
    if (!mean || !var)
        return no_memory(m, err);
    as_status st = gp_model_loo(model, m->y, mean, var, err);
    if (st < 0)
        return st;
    double center = 0, missed = 0, total = 0;
    for (size_t i = 0; i < m->n; i++)
        center += m->y[i] / (double)m->n;
    for (size_t i = 0; i < m->n; i++) {
        missed += (m->y[i] - mean[i]) * (m->y[i] - mean[i]);
        total += (m->y[i] - center) * (m->y[i] - center);
    }
    m->r2 = total > 0 ? 1 - missed / total : 0;
    return AS_OK;
}

static as_status build_model(struct objective_model *m, struct as_err *err)
{
    AS_AUTO(gp_model_freep) struct gp_model *model = NULL;
    AS_AUTO(as_freep) double *theta = as_calloc(gp_n_theta(&m->s->columns), sizeof *theta);
    struct gp_rows rows = {m->n, m->x, m->z};
    as_status st;
    if (!theta)
        return no_memory(m, err);
    if ((st = standardise_costs(m, err)) < 0 || (st = fit_theta(m, theta, err)) < 0 ||
        (st = gp_model_create(&m->s->columns, &model, err)) < 0 ||
        (st = gp_model_build(model, theta, &rows, m->n, err)) < 0 ||
        (st = gp_model_observe(model, m->y, m->n, err)) < 0 || (st = measure_r2(m, model, err)) < 0)
        return st;
    m->model = as_steal(model);
    return AS_OK;
}

as_status objective_model_create(const struct search_spec *spec, const struct history *history,
                                 size_t objective, struct objective_model **ret, struct as_err *err)
{
    AS_AUTO(objective_model_freep) struct objective_model *m = as_calloc(1, sizeof *m);
    if (!m)
        return as_fail_nomem(err);
    if (objective >= spec->n_objectives)
        return as_fail(err, AS_E_INVAL, "objective %zu of %zu", objective, spec->n_objectives);
    m->objective = objective;
    m->r2 = NAN;
    as_status st = training_set_create(spec, history, NULL, &m->s, err);
    if (st < 0 || (st = read_rows(m, err)) < 0)
        return st;
    if (!explain_absence(m)) {
        st = build_model(m, err); /* the fit may find that the values do not suffice */
        if (st == AS_E_NUMERIC) {
            m->r2 = NAN;
            snprintf(m->reason, sizeof m->reason, "no model could be fitted to the trials");
        } else if (st < 0) {
            return st;
        }
    }
    *ret = as_steal(m);
    return AS_OK;
}
