/* A plain model, whose transform is affine, so that its deviations are those of the metric. It is
 * fitted for this question alone: no state and no cache of the suggestions takes part, and the
 * answer depends on the trials only. */
#include "search/incumbent.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "search/regression/local_noise.h"
#include "search/regression/model.h"
#include "search/regression/subset.h"
#include "search/regression/training_set.h"
#include "search/regression/warp.h"

#define ROWS_MOST 640
/* A value is worse than the best one by noise if it is so by at most so many deviations of the
 * noise: about as far apart as two of a hundred values of one mean are. */
#define REACH 4.0

struct finding {
    struct training_set *set;
    size_t n;       /* rows */
    size_t *trials; /* of the rows, ascending */
    double *x;      /* features */
    int32_t *z;
    double *costs, *v;  /* v: factors of the noise */
    double *mean, *var; /* what the model says of the rows */
    double *theta;
    struct gp_warp *warp;
    struct gp_model *model;
    struct gp_fit_work *fit;
    struct gp_work *work;
};

static void finding_done(struct finding *f)
{
    training_set_free(f->set);
    free(f->trials);
    free(f->x);
    free(f->z);
    free(f->costs);
    free(f->v);
    free(f->mean);
    free(f->var);
    free(f->theta);
    gp_warp_free(f->warp);
    gp_model_free(f->model);
    gp_fit_work_free(f->fit);
    gp_work_free(f->work);
}

static as_status reserve(struct finding *f, struct as_err *err)
{
    size_t n = f->set->n_completed;
    f->trials = as_calloc(n, sizeof *f->trials);
    f->x = as_calloc(n, f->set->columns.n_real * sizeof *f->x);
    f->z = as_calloc(n, f->set->columns.n_cat * sizeof *f->z);
    f->costs = as_calloc(n, sizeof *f->costs);
    f->v = as_calloc(n, sizeof *f->v);
    f->mean = as_calloc(n, sizeof *f->mean);
    f->var = as_calloc(n, sizeof *f->var);
    f->theta = as_calloc(gp_n_theta(&f->set->columns), sizeof *f->theta);
    f->fit = gp_fit_work_create();
    f->work = gp_work_create();
    bool ok = f->trials && f->x && f->z && f->costs && f->v && f->mean && f->var && f->theta &&
              f->fit && f->work;
    return ok ? AS_OK : as_fail_nomem(err);
}

static void take_row(struct finding *f, size_t row, size_t trial)
{
    const struct training_set *s = f->set;
    size_t n_real = s->columns.n_real, n_cat = s->columns.n_cat;
    f->trials[row] = trial;
    f->costs[row] = s->costs[trial];
    memcpy(f->x + row * n_real, s->x + trial * n_real, n_real * sizeof *f->x);
    memcpy(f->z + row * n_cat, s->z + trial * n_cat, n_cat * sizeof *f->z);
}

static struct gp_rows rows_of(const struct finding *f)
{
    return (struct gp_rows){f->n, f->x, f->z, NULL, NULL};
}

/* The completed trials, or the best, the newest and a spread of them. */
static as_status take_rows(struct finding *f, struct as_err *err)
{
    const struct gp_subset_size size = {ROWS_MOST / 4, ROWS_MOST / 4, ROWS_MOST / 2};
    for (size_t i = 0; i < f->set->n; i++)
        if (f->set->state[i] == OBSERVED_COMPLETED)
            take_row(f, f->n++, i);
    if (f->n <= ROWS_MOST)
        return AS_OK;
    AS_AUTO(as_freep) size_t *chosen = as_calloc(ROWS_MOST, sizeof *chosen);
    struct gp_rows all = rows_of(f);
    if (!chosen)
        return as_fail_nomem(err);
    as_status st = gp_subset(&f->set->columns, &all, f->costs, &size, chosen, &f->n, err);
    for (size_t k = 0; k < f->n && st == AS_OK; k++)
        take_row(f, k, f->trials[chosen[k]]);
    return st;
}

/* Fit the model and predict all rows. */
static as_status predict_rows(struct finding *f, struct as_err *err)
{
    const struct gp_columns *c = &f->set->columns;
    struct gp_rows rows = rows_of(f);
    as_status st = gp_warp_create(WARP_PLAIN, f->costs, f->n, &f->warp, err);
    if (st < 0)
        return st;
    const double *y = gp_warp_values(f->warp);
    if ((st = local_noise_fit(c, &rows, y, f->fit, f->theta, f->v, err)) < 0 ||
        (st = gp_model_create(c, &f->model, err)) < 0)
        return st;
    const struct gp_rows weighed = {rows.n, rows.x, rows.z, NULL, f->v};
    if ((st = gp_model_build(f->model, f->theta, &weighed, rows.n, err)) < 0 ||
        (st = gp_model_observe(f->model, y, rows.n, err)) < 0 ||
        (st = gp_work_reserve(f->work, f->model, rows.n, err)) < 0)
        return st;
    gp_predict(f->model, f->work, &rows, f->mean, f->var);
    return AS_OK;
}

/* The deviation of a value of row i about its mean, as the model sees values. */
static double noise_at(const struct finding *f, size_t i)
{
    return sqrt(gp_model_noise(f->model) * f->v[i]);
}

/* May the noise explain that row i is told to be worse than the luckiest one? */
static bool is_within_noise(const struct finding *f, size_t i, size_t luckiest)
{
    const double *y = gp_warp_values(f->warp);
    double noise = hypot(noise_at(f, i), noise_at(f, luckiest)) / M_SQRT2;
    return y[i] - y[luckiest] <= REACH * noise;
}

static void choose(const struct finding *f, struct incumbent *ret)
{
    const struct training_set *s = f->set;
    size_t luckiest = 0;
    while (f->trials[luckiest] != s->best)
        luckiest++;
    size_t at = luckiest;
    for (size_t i = 0; i < f->n; i++)
        if (s->feasible[f->trials[i]] && f->mean[i] < f->mean[at] &&
            is_within_noise(f, i, luckiest))
            at = i;
    double unit = gp_warp_inverse_slope(f->warp, f->mean[at]);
    double mean = gp_warp_inverse(f->warp, f->mean[at]);
    ret->is_by_model = true;
    ret->number = s->trials[f->trials[at]].number;
    ret->value = s->trials[f->trials[at]].values[0];
    ret->mean = s->spec->maximize[0] ? -mean : mean;
    ret->deviation = unit * sqrt(f->var[at]);
    ret->noise = unit * noise_at(f, at);
}

as_status incumbent_find(const struct search_spec *spec, const struct history *history,
                         struct incumbent *ret, struct as_err *err)
{
    AS_AUTO(finding_done) struct finding f = {0};
    struct incumbent found = {0};
    struct as_err why = {0};
    as_status st = training_set_create(spec, history, NULL, &f.set, err);
    if (st < 0)
        return st;
    const struct training_set *s = f.set;
    found.is_known = spec->n_objectives == 1 && s->best != TRAINING_SET_NONE;
    if (found.is_known) {
        found.number = found.luckiest = s->trials[s->best].number;
        found.value = s->trials[s->best].values[0];
    }
    if (!found.is_known || s->repeats.noise != NOISE_SEEN || s->n_completed < LOCAL_NOISE_ROWS ||
        !s->enc->n_varied) {
        *ret = found;
        return AS_OK;
    }
    if ((st = reserve(&f, &why)) == AS_OK && (st = take_rows(&f, &why)) == AS_OK &&
        (st = predict_rows(&f, &why)) == AS_OK)
        choose(&f, &found);
    if (st < 0 && st != AS_E_NUMERIC) {
        if (err)
            *err = why;
        return st;
    }
    *ret = found;
    return AS_OK;
}
