/* Trials -> a model -> functions drawn from it -> indices of each function -> means and quantiles.
 *
 * The functions are functions of the unit cube: one uniform number for each parameter, active or
 * not, as the samplers draw them. So they are defined everywhere, an inactive parameter has no
 * effect, and the inputs are independent (also within a region: region.h). */
#include "search/importance/importance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#include "search/space/encoding.h"
#include "search/regression/fit.h"
#include "search/regression/paths.h"
#include "search/regression/training_set.h"
#include "search/regression/subset.h"
#include "search/importance/ped_anova.h"
#include "search/importance/region.h"
#include "search/problem/random_stream.h"
#include "search/importance/sensitivity.h"

/* Values are cut at worst decile + CUT (worst decile - median). The cut of WARP_PLAIN, by the
 * better quartile, gave the index of a linear function as 0.1 instead of 0.63 (decision 4016). */
#define CUT 3
#define DRAWS 48              /* functions */
#define FUNCTIONS (DRAWS + 1) /* and the posterior mean, first */
#define FEATURES 512          /* of their priors */
#define FIT_ROWS 512          /* trials that the fit of the hyperparameters uses */
#define MAX_SAMPLES 1024
#define MIN_SAMPLES 128
#define BUDGET 1.5e7 /* covariances and features over all points: limits the number of samples */

/* Streams of SEARCH_DRAW_IMPORTANCE: the counter's high word is `stream << 8 | purpose`. */
enum stream { STREAM_FIT, STREAM_PATHS, STREAM_DESIGN };

static uint64_t purpose_of(uint64_t stream)
{
    return stream << 8 | SEARCH_DRAW_IMPORTANCE;
}

void importance_free(struct importance *i)
{
    if (!i)
        return;
    free(i->parameters);
    free(i);
}

/* ---- the trials ---- */

struct rows {
    size_t n, n_all; /* rows of the model; trials with a value */
    double *x, *y;   /* owned; y are costs */
    int32_t *z;
    double *all_points, *all_costs; /* owned; of all n_all trials */
};

static void rows_done(struct rows *r)
{
    free(r->x);
    free(r->y);
    free(r->z);
    free(r->all_points);
    free(r->all_costs);
}

static as_status rows_alloc(struct rows *r, const struct encoding *e, size_t n, struct as_err *err)
{
    r->x = as_calloc(n, e->n_real * sizeof *r->x);
    r->z = as_calloc(n, e->n_category * sizeof *r->z);
    r->y = as_calloc(n, sizeof *r->y);
    r->all_points = as_calloc(n, e->n * sizeof *r->all_points);
    r->all_costs = as_calloc(n, sizeof *r->all_costs);
    if (!r->x || !r->z || !r->y || !r->all_points || !r->all_costs)
        return as_fail(err, AS_E_NOMEM, "out of memory for the importance of %zu trials", n);
    return AS_OK;
}

static void copy_features(struct rows *r, size_t to, const struct training_set *s, size_t from)
{
    size_t d = s->enc->n_real, c = s->enc->n_category;
    if (d > 0)
        memmove(r->x + to * d, s->x + from * d, d * sizeof *r->x);
    if (c > 0)
        memmove(r->z + to * c, s->z + from * c, c * sizeof *r->z);
}

/* Trials of the set with a value of this objective. */
static void gather_rows(struct rows *r, const struct training_set *s, size_t objective)
{
    for (size_t i = 0; i < s->n; i++) {
        double cost = s->costs[i * s->spec->n_objectives + objective];
        if (!isfinite(cost))
            continue;
        copy_features(r, r->n, s, i);
        memcpy(r->all_points + r->n * s->enc->n, training_set_point(s, i),
               s->enc->n * sizeof *r->all_points);
        r->y[r->n] = r->all_costs[r->n] = cost;
        r->n++;
    }
    r->n_all = r->n;
}

/* Move the chosen rows (ascending) to the front. */
static void keep_rows(struct rows *r, const struct encoding *e, const size_t *chosen, size_t n)
{
    size_t d = e->n_real, c = e->n_category;
    for (size_t k = 0; k < n; k++) {
        memmove(r->x + k * d, r->x + chosen[k] * d, d * sizeof *r->x);
        memmove(r->z + k * c, r->z + chosen[k] * c, c * sizeof *r->z);
        r->y[k] = r->y[chosen[k]];
    }
    r->n = n;
}

static as_status rows_read(const struct training_set *s, size_t objective, struct rows *r,
                           struct as_err *err)
{
    static const struct gp_subset_size size = {
        IMPORTANCE_MAX_TRIALS / 5, IMPORTANCE_MAX_TRIALS / 10, IMPORTANCE_MAX_TRIALS * 7 / 10};
    as_status st = rows_alloc(r, s->enc, s->n, err);
    if (st < 0)
        return st;
    gather_rows(r, s, objective);
    if (r->n <= IMPORTANCE_MAX_TRIALS)
        return AS_OK;
    AS_AUTO(as_freep) size_t *chosen = as_calloc(IMPORTANCE_MAX_TRIALS, sizeof *chosen);
    if (!chosen)
        return as_fail(err, AS_E_NOMEM, "out of memory for the importance of %zu trials", r->n);
    struct gp_rows all = {r->n, r->x, r->z};
    size_t n;
    st = gp_subset(&s->columns, &all, r->y, &size, chosen, &n, err);
    if (st < 0)
        return st;
    keep_rows(r, s->enc, chosen, n);
    return AS_OK;
}

/* ---- the model ---- */

/* Convert costs to the values that the model is fitted to: cut far on the bad side, mean 0,
 * deviation 1. WARP_PLAIN is not used: it cuts by the better quartile. If most trials lie close to
 * the best one, it removes the rest of the space, which importance must describe
 * (docs/decisions/4016). */
static as_status standardise_costs(const double *costs, size_t n, double *ret, struct as_err *err)
{
    memcpy(ret, costs, n * sizeof *ret);
    qsort(ret, n, sizeof *ret, as_order_f64);
    double unit = fmax(fabs(ret[0]), fabs(ret[n - 1])); /* so that no square overflows */
    double median = ret[n / 2] / unit, bad = ret[n - 1 - n / 10] / unit;
    double most = bad + CUT * (bad - median), mean = 0, square = 0;
    for (size_t i = 0; i < n; i++) {
        ret[i] = bad > median ? fmin(costs[i] / unit, most) : costs[i] / unit;
        mean += ret[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++)
        square += (ret[i] - mean) * (ret[i] - mean) / (double)n;
    if (!(square > 0))
        return as_fail(err, AS_E_NUMERIC, "the values cannot be told apart");
    for (size_t i = 0; i < n; i++)
        ret[i] = (ret[i] - mean) / sqrt(square);
    return AS_OK;
}

/* Fit the hyperparameters, to every k-th row if there are many. */
static as_status fit_theta(const struct training_set *s, const struct rows *r, const double *y,
                           double *theta, struct as_err *err)
{
    size_t d = s->enc->n_real, c = s->enc->n_category;
    size_t stride = (r->n + FIT_ROWS - 1) / FIT_ROWS, n = 0;
    AS_AUTO(gp_fit_work_freep) struct gp_fit_work *work = gp_fit_work_create();
    AS_AUTO(as_freep) double *x = as_calloc(r->n, d * sizeof *x);
    AS_AUTO(as_freep) int32_t *z = as_calloc(r->n, c * sizeof *z);
    AS_AUTO(as_freep) double *some_y = as_calloc(r->n, sizeof *some_y);
    if (!work || !x || !z || !some_y)
        return as_fail(err, AS_E_NOMEM, "out of memory for the importance of %zu trials", r->n);
    for (size_t i = 0; i < r->n; i += stride, n++) {
        memcpy(x + n * d, r->x + i * d, d * sizeof *x);
        memcpy(z + n * c, r->z + i * c, c * sizeof *z);
        some_y[n] = y[i];
    }
    struct gp_fit_opts opts = {
        .cold = true, .n_random = 1, .key = s->spec->seed, .purpose = purpose_of(STREAM_FIT)};
    struct gp_rows rows = {n, x, z};
    return gp_fit(&s->columns, &rows, some_y, &opts, work, theta, NULL, err);
}

/* 1 - (squared error of leave-one-out predictions) / (variance of the values). */
static as_status measure_r2(const struct gp_model *m, const double *y, size_t n, double *ret,
                            struct as_err *err)
{
    AS_AUTO(as_freep) double *mean = as_calloc(n, sizeof *mean);
    AS_AUTO(as_freep) double *var = as_calloc(n, sizeof *var);
    if (!mean || !var)
        return as_fail(err, AS_E_NOMEM, "out of memory for the importance of %zu trials", n);
    as_status st = gp_model_loo(m, y, mean, var, err);
    if (st < 0)
        return st;
    double center = 0, missed = 0, total = 0;
    for (size_t i = 0; i < n; i++)
        center += y[i] / (double)n;
    for (size_t i = 0; i < n; i++) {
        missed += (y[i] - mean[i]) * (y[i] - mean[i]);
        total += (y[i] - center) * (y[i] - center);
    }
    *ret = total > 0 ? 1 - missed / total : 0;
    return AS_OK;
}

static as_status build_model(const struct training_set *s, const struct rows *r, const double *y,
                             struct gp_model **ret, double *ret_r2, struct as_err *err)
{
    AS_AUTO(gp_model_freep) struct gp_model *m = NULL;
    AS_AUTO(as_freep) double *theta = as_calloc(gp_n_theta(&s->columns), sizeof *theta);
    struct gp_rows rows = {r->n, r->x, r->z};
    as_status st;
    if (!theta)
        return as_fail(err, AS_E_NOMEM, "out of memory for the importance of %zu trials", r->n);
    if ((st = fit_theta(s, r, y, theta, err)) < 0 ||
        (st = gp_model_create(&s->columns, &m, err)) < 0 ||
        (st = gp_model_build(m, theta, &rows, r->n, err)) < 0 ||
        (st = gp_model_observe(m, y, r->n, err)) < 0 ||
        (st = measure_r2(m, y, r->n, ret_r2, err)) < 0)
        return st;
    *ret = as_steal(m);
    return AS_OK;
}

/* ---- the indices ---- */

/* Functions of the unit cube: a point is mapped into a region, then to a configuration's
 * features. */
struct cube {
    const struct training_set *s;
    struct gp_paths *paths;      /* owned */
    const struct region *region; /* of the parameters that are measured now */
    double *u;                   /* owned: one point */
    double *x;                   /* owned: GP_PATHS_BATCH x n_real */
    int32_t *z;                  /* owned: GP_PATHS_BATCH x n_category */
};

static void cube_done(struct cube *c)
{
    gp_paths_free(c->paths);
    free(c->u);
    free(c->x);
    free(c->z);
}

static void cube_point(struct cube *c, const double *u)
{
    memcpy(c->u, u, c->s->enc->n * sizeof *c->u);
    region_map(c->region, c->u);
    encoding_from_unit(c->s->enc, c->u, c->u);
}

static as_status cube_evaluate(void *ctx, const double *u, size_t n, double *ret,
                               struct as_err *err)
{
    (void)err;
    struct cube *c = ctx;
    const struct encoding *e = c->s->enc;
    for (size_t at = 0, now; at < n; at += now) {
        now = n - at < GP_PATHS_BATCH ? n - at : GP_PATHS_BATCH;
        for (size_t i = 0; i < now; i++) {
            cube_point(c, u + (at + i) * e->n);
            encoding_features(e, c->u, c->x + i * e->n_real, c->z + i * e->n_category);
        }
        struct gp_rows rows = {now, c->x, c->z};
        gp_paths_evaluate(c->paths, &rows, ret + at * FUNCTIONS);
    }
    return AS_OK;
}

static bool cube_allowed(void *ctx, const double *u)
{
    struct cube *c = ctx;
    cube_point(c, u);
    return encoding_allows(c->s->enc, c->u, c->s->scratch);
}

static as_status cube_create(const struct training_set *s, const struct gp_model *m,
                             const double *y, struct cube *ret, struct as_err *err)
{
    const struct encoding *e = s->enc;
    AS_AUTO(as_freep) uint32_t *n_values = as_calloc(e->n_category, sizeof *n_values);
    ret->s = s;
    ret->u = as_calloc(e->n, sizeof *ret->u);
    ret->x = as_calloc(GP_PATHS_BATCH, e->n_real * sizeof *ret->x);
    ret->z = as_calloc(GP_PATHS_BATCH, e->n_category * sizeof *ret->z);
    if (!n_values || !ret->u || !ret->x || !ret->z)
        return as_fail(err, AS_E_NOMEM, "out of memory for importance");
    for (size_t i = 0; i < e->n; i++)
        if (e->params[i].category >= 0)
            n_values[e->params[i].category] = (uint32_t)e->params[i].levels;
    return gp_paths_create(m, y, FUNCTIONS, FEATURES, n_values, s->spec->seed,
                           purpose_of(STREAM_PATHS), &ret->paths, err);
}

static double clip_index(double v)
{
    return fmin(fmax(v, 0), 1);
}

/* values[0] belongs to the mean function; the draws follow and are sorted. The interval is
 * stretched to hold the estimate: draws are rougher than the mean, so a parameter without effect on
 * the mean has a small effect on each draw. */
static void summarise_draws(double *values, double *ret, double *ret_low, double *ret_high)
{
    double *draws = values + 1;
    qsort(draws, DRAWS, sizeof *draws, as_order_f64);
    *ret = clip_index(values[0]);
    *ret_low = fmin(*ret, clip_index(draws[(size_t)(0.05 * (DRAWS - 1))]));
    *ret_high = fmax(*ret, clip_index(draws[(size_t)ceil(0.95 * (DRAWS - 1))]));
}

/* Points for each set: a power of two, within the budget. */
static size_t choose_samples(const struct training_set *s, size_t n_rows)
{
    size_t samples = MAX_SAMPLES;
    double each = (double)(s->enc->n_lengths + 2) * (double)(n_rows + FEATURES);
    while (samples > MIN_SAMPLES && (double)samples * each > BUDGET)
        samples /= 2;
    return samples;
}

/* The parameters of one region: inputs[0..n) are their numbers, places[0..n) their entries. */
static as_status measure_region(struct cube *c, const struct region *region, size_t samples,
                                const size_t *inputs, const size_t *places, size_t n,
                                struct importance *imp, struct as_err *err)
{
    AS_AUTO(as_freep) double *first = as_calloc(n, FUNCTIONS * sizeof *first);
    AS_AUTO(as_freep) double *total = as_calloc(n, FUNCTIONS * sizeof *total);
    if (!first || !total)
        return as_fail(err, AS_E_NOMEM, "out of memory for importance");
    c->region = region;
    struct sensitivity_problem p = {.d = c->s->enc->n,
                                    .n_functions = FUNCTIONS,
                                    .rows = samples,
                                    .key = c->s->spec->seed,
                                    .hi = purpose_of(STREAM_DESIGN),
                                    .evaluate = cube_evaluate,
                                    .allowed = space_is_constrained(c->s->enc->space) ? cube_allowed
                                                                                      : NULL,
                                    .ctx = c,
                                    .resample = true};
    as_status st = sensitivity_estimate(&p, inputs, n, first, total, err);
    if (st < 0)
        return st;
    for (size_t k = 0; k < n; k++) {
        struct importance_parameter *q = &imp->parameters[places[k]];
        summarise_draws(first + k * FUNCTIONS, &q->first, &q->first_low, &q->first_high);
        summarise_draws(total + k * FUNCTIONS, &q->total, &q->total_low, &q->total_high);
    }
    return AS_OK;
}

/* Entries are in the space's order; `numbers` says which parameter each is. Those of one region are
 * measured together. */
static as_status measure_all(struct cube *c, size_t samples, const size_t *numbers,
                             struct importance *imp, struct as_err *err)
{
    const struct space *space = c->s->enc->space;
    AS_AUTO(as_freep) bool *is_done = as_calloc(imp->n, sizeof *is_done);
    AS_AUTO(as_freep) size_t *inputs = as_calloc(imp->n, sizeof *inputs);
    AS_AUTO(as_freep) size_t *places = as_calloc(imp->n, sizeof *places);
    if (!is_done || !inputs || !places)
        return as_fail(err, AS_E_NOMEM, "out of memory for importance");
    for (size_t k = 0; k < imp->n; k++) {
        if (is_done[k])
            continue;
        AS_AUTO(region_freep) struct region *region = NULL;
        as_status st = region_create(space, numbers[k], &region, err);
        if (st < 0)
            return st;
        size_t n = 0;
        for (size_t l = k; l < imp->n; l++) {
            AS_AUTO(region_freep) struct region *other = NULL;
            if (is_done[l])
                continue;
            st = region_create(space, numbers[l], &other, err);
            if (st < 0)
                return st;
            if (!region_equal(region, other))
                continue;
            is_done[l] = true;
            inputs[n] = numbers[l];
            places[n++] = l;
        }
        st = measure_region(c, region, samples, inputs, places, n, imp, err);
        if (st < 0)
            return st;
    }
    return AS_OK;
}

/* ---- all of it ---- */

/* An entry for each parameter that can vary; ret_numbers[k] is entry k's parameter. */
static as_status add_parameters(const struct training_set *s, const struct rows *r,
                                size_t *ret_numbers, struct importance *imp, struct as_err *err)
{
    const struct encoding *e = s->enc;
    AS_AUTO(as_freep) double *top = as_calloc(e->n, sizeof *top);
    imp->parameters = as_calloc(e->n, sizeof *imp->parameters);
    if (!top || !imp->parameters)
        return as_fail(err, AS_E_NOMEM, "out of memory for importance");
    as_status st = ped_anova(e, r->all_points, r->all_costs, r->n_all, top, err);
    if (st < 0)
        return st;
    for (size_t i = 0; i < e->n; i++) {
        if (e->params[i].kind == ENCODED_CONSTANT)
            continue;
        ret_numbers[imp->n] = i;
        imp->parameters[imp->n++] =
            (struct importance_parameter){.name = e->space->params[i].name,
                                          .is_conditional = e->params[i].is_conditional,
                                          .top = top[i]};
    }
    return AS_OK;
}

static bool all_equal(const double *v, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (v[i] != v[0])
            return false;
    return true;
}

/* Set the reason if there can be no indices, before a model is fitted. */
static bool explain_absence(struct importance *imp, const struct training_set *s,
                            const struct rows *r)
{
    size_t least = 2 * s->enc->n_lengths + 2;
    if (s->enc->n_lengths == 0)
        snprintf(imp->reason, sizeof imp->reason, "no parameter can vary");
    else if (r->n_all < least)
        snprintf(imp->reason, sizeof imp->reason,
                 "%zu trial%s a value; it takes %zu (two for each parameter, and two)", r->n_all,
                 r->n_all == 1 ? " has" : "s have", least);
    else if (all_equal(r->y, r->n))
        snprintf(imp->reason, sizeof imp->reason, "all trials have the same value");
    return imp->reason[0] != '\0';
}

static as_status explore_model(const struct training_set *s, const struct rows *r,
                               struct importance *imp, struct as_err *err)
{
    AS_AUTO(gp_model_freep) struct gp_model *m = NULL;
    AS_AUTO(cube_done) struct cube cube = {0};
    AS_AUTO(as_freep) size_t *numbers = as_calloc(s->enc->n, sizeof *numbers);
    AS_AUTO(as_freep) double *y = as_calloc(r->n, sizeof *y);
    if (!numbers || !y)
        return as_fail(err, AS_E_NOMEM, "out of memory for importance");
    as_status st = standardise_costs(r->y, r->n, y, err);
    if (st == AS_OK) /* both may find that the values do not suffice */
        st = build_model(s, r, y, &m, &imp->r2, err);
    if (st == AS_E_NUMERIC) {
        snprintf(imp->reason, sizeof imp->reason, "no model could be fitted to the trials");
        return AS_OK;
    }
    if (st < 0)
        return st;
    if (imp->r2 < IMPORTANCE_MIN_R2) {
        snprintf(imp->reason, sizeof imp->reason,
                 "the model explains too little of the values: R2 is %.2f, it takes %g", imp->r2,
                 IMPORTANCE_MIN_R2);
        return AS_OK;
    }
    if ((st = cube_create(s, m, y, &cube, err)) < 0 ||
        (st = add_parameters(s, r, numbers, imp, err)) < 0)
        return st;
    st = measure_all(&cube, choose_samples(s, r->n), numbers, imp, err);
    if (st == AS_E_EXHAUSTED) {
        imp->n = 0;
        snprintf(imp->reason, sizeof imp->reason,
                 "the constraints allow too small a part of the space");
        return AS_OK;
    }
    return st;
}

as_status importance_compute(const struct search_spec *spec, const struct history *history,
                             size_t objective, struct importance **ret, struct as_err *err)
{
    AS_AUTO(importance_freep) struct importance *imp = as_calloc(1, sizeof *imp);
    AS_AUTO(training_set_freep) struct training_set *s = NULL;
    AS_AUTO(rows_done) struct rows r = {0};
    if (!imp)
        return as_fail(err, AS_E_NOMEM, "out of memory for importance");
    if (objective >= spec->n_objectives)
        return as_fail(err, AS_E_INVAL, "objective %zu of %zu", objective, spec->n_objectives);
    as_status st = training_set_create(spec, history, NULL, &s, err);
    if (st < 0 || (st = rows_read(s, objective, &r, err)) < 0)
        return st;
    *imp = (struct importance){.method = "gp-sobol", .trials = r.n_all, .r2 = NAN};
    if (!explain_absence(imp, s, &r) && (st = explore_model(s, &r, imp, err)) < 0)
        return st;
    *ret = as_steal(imp);
    return AS_OK;
}
