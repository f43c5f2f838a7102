/* The optimiser of the acquisition over continuous and discrete parameters. The acquisition has
 * many local maxima, so several starts climb at once (optimize_moves.c) and share every batched
 * prediction. The best end that was not tried is the suggestion. A small finite space is evaluated
 * completely instead. */
#include "search/gp/optimize_priv.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "search/population/design.h"
#include "search/population/enumeration.h"
#include "search/prior/trust.h"
#include "search/problem/random_stream.h"

#define ENUMERATE_ALL 1024 /* a space of at most this many configurations is evaluated completely */
#define BOLTZMANN 2.0

void gp_optimizer_work_done(struct gp_optimizer_work *w)
{
    gp_work_free(w->predict);
    lbfgs_work_free(w->lbfgs);
    *w = (struct gp_optimizer_work){0};
}

size_t gp_optimizer_work_bytes(const struct gp_optimizer_work *w)
{
    return w->predict ? gp_work_bytes(w->predict) : 0;
}

static void search_done(struct search *s)
{
    free(s->points);
    free(s->values);
    free(s->x);
    free(s->z);
    free(s->mean);
    free(s->var);
    free(s->dmean);
    free(s->dvar);
    free(s->dx);
    free(s->scale);
    free(s->lower);
    free(s->upper);
    free(s->start);
    free(s->trial);
}

static as_status reserve_models(struct search *s, struct as_err *err)
{
    struct gp_optimizer_work *w = s->w;
    if (!w->predict && !(w->predict = gp_work_create()))
        return as_fail(err, AS_E_NOMEM, "out of memory for predictions");
    as_status st = w->lbfgs ? AS_OK : lbfgs_work_create(s->d, STARTS, &w->lbfgs, err);
    if (st < 0)
        return st;
    for (size_t k = 0; k < s->n_models; k++) {
        st = surrogate_reserve(&s->p->models[k], w->predict, BATCH, err);
        if (st < 0)
            return st;
    }
    return AS_OK;
}

static as_status allocate_search(struct search *s, struct as_err *err)
{
    size_t d = s->d, n_real = s->e->n_real, m = s->n_models;
    s->points = as_calloc(BATCH, d * sizeof(double));
    s->values = as_calloc(BATCH, sizeof(double));
    s->x = as_calloc(BATCH, n_real * sizeof(double));
    s->z = as_calloc(BATCH, s->e->n_category * sizeof(int32_t));
    s->mean = as_calloc(BATCH, m * sizeof(double));
    s->var = as_calloc(BATCH, m * sizeof(double));
    s->dmean = as_calloc(STARTS * m, n_real * sizeof(double));
    s->dvar = as_calloc(STARTS * m, n_real * sizeof(double));
    s->dx = as_calloc(n_real, sizeof(double));
    s->scale = as_calloc(d, sizeof(double));
    s->lower = as_calloc(STARTS, d * sizeof(double));
    s->upper = as_calloc(STARTS, d * sizeof(double));
    s->start = as_calloc(STARTS, d * sizeof(double));
    s->trial = as_calloc(STARTS, d * sizeof(double));
    if (!s->points || !s->values || !s->x || !s->z || !s->mean || !s->var || !s->dmean ||
        !s->dvar || !s->dx || !s->scale || !s->lower || !s->upper || !s->start || !s->trial)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu candidates", (size_t)BATCH);
    return reserve_models(s, err);
}

/* What kinds of parameters there are, and the scale of each. */
static void read_space(struct search *s)
{
    const double *theta = gp_model_theta(s->p->models[0].model);
    for (size_t i = 0; i < s->d; i++) {
        const struct encoded_param *p = &s->e->params[i];
        s->has_numeric |= p->kind == ENCODED_CONTINUOUS || is_wide(p);
        s->has_discrete |= is_discrete(p);
        s->scale[i] = p->real >= 0 ? exp(theta[p->length]) : 1;
    }
}

/* ---- values ---- */

double optimize_value(const struct search *s, size_t i, size_t stride, double *d_mean, double *d_sd)
{
    double mean[ACQUISITION_MAX_MODELS], sd[ACQUISITION_MAX_MODELS];
    for (size_t k = 0; k < s->n_models; k++) {
        mean[k] = s->mean[k * stride + i];
        sd[k] = sqrt(s->var[k * stride + i]);
    }
    return acquisition_value(s->p->acquisition, mean, sd, d_mean, d_sd);
}

struct gp_rows optimize_features(struct search *s, const double *points, size_t n)
{
    const struct encoding *e = s->e;
    for (size_t i = 0; i < n; i++)
        encoding_features(e, points + i * s->d, s->x + i * e->n_real, s->z + i * e->n_category);
    return (struct gp_rows){n, s->x, s->z};
}

void optimize_values(struct search *s, const double *points, size_t n, double *ret)
{
    (void)optimize_features(s, points, n);
    optimize_values_of_features(s, points, n, ret);
}

void optimize_values_of_features(struct search *s, const double *points, size_t n, double *ret)
{
    struct gp_rows rows = {n, s->x, s->z};
    for (size_t k = 0; k < s->n_models; k++)
        surrogate_predict(&s->p->models[k], s->w->predict, &rows, s->mean + k * BATCH,
                          s->var + k * BATCH);
    for (size_t i = 0; i < n; i++) {
        ret[i] = optimize_value(s, i, BATCH, NULL, NULL);
        if (s->p->priors)
            ret[i] += trust_log(s->p->priors, s->p->set, points + i * s->d, NULL);
    }
}

/* ---- starts ---- */

static size_t best_of(const double *v, size_t from, size_t to)
{
    size_t at = from;
    for (size_t i = from + 1; i < to; i++) {
        if (v[i] > v[at])
            at = i;
    }
    return at;
}

/* Draw one of n with probability proportional to exp(2 x its standardised value). */
static size_t draw_start(const double *v, size_t n, struct rng *r)
{
    double sum = 0, square = 0, top = v[best_of(v, 0, n)], total = 0;
    for (size_t i = 0; i < n; i++)
        sum += v[i];
    double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        square += (v[i] - mean) * (v[i] - mean);
    double sd = sqrt(square / (double)n);
    double eta = sd > 0 && isfinite(sd) ? BOLTZMANN / sd : 0;
    for (size_t i = 0; i < n; i++)
        total += exp(eta * (v[i] - top));
    double place = rng_uniform(r) * total;
    for (size_t i = 0; i < n; i++) {
        place -= exp(eta * (v[i] - top));
        if (place < 0)
            return i;
    }
    return n - 1;
}

static void add_start(struct search *s, size_t *taken, size_t i)
{
    for (size_t j = 0; j < s->n_starts; j++) {
        if (taken[j] == i)
            return;
    }
    taken[s->n_starts] = i;
    memcpy(s->start + s->n_starts * s->d, s->points + i * s->d, s->d * sizeof *s->start);
    s->best[s->n_starts++] = s->values[i];
}

static void choose_starts(struct search *s, size_t n, size_t n_global)
{
    size_t taken[STARTS] = {0};
    struct rng r;
    rng_init(&r, s->p->set->spec->seed, s->p->number << 8 | SEARCH_DRAW_GP_START);
    if (n > n_global)
        add_start(s, taken, best_of(s->values, n_global, n));
    if (n_global)
        add_start(s, taken, best_of(s->values, 0, n_global));
    for (size_t tries = 0; s->n_starts < STARTS && tries < 4 * STARTS; tries++)
        add_start(s, taken, draw_start(s->values, n, &r));
}

/* ---- the end ---- */

static void fill_found(struct search *s, const double *point, size_t candidates, double *ret_point,
                       struct gp_found *ret)
{
    optimize_values(s, point, 1, &ret->value);
    ret->is_found = true;
    ret->candidates = candidates;
    for (size_t k = 0; k < s->n_models; k++) {
        ret->mean[k] = s->mean[k * BATCH];
        ret->sd[k] = sqrt(s->var[k * BATCH]);
    }
    memcpy(ret_point, point, s->d * sizeof *point);
}

/* The best of the values but that at `at`; NAN: there is none. */
static double runner_up(const double *v, size_t n, size_t at)
{
    double best = NAN;
    for (size_t i = 0; i < n; i++)
        if (i != at && !(v[i] <= best))
            best = v[i];
    return best;
}

/* Choose the best end that was not tried; the second best is the runner-up. */
static bool choose_end(struct search *s, size_t candidates, double *ret_point, struct gp_found *ret)
{
    size_t at = STARTS;
    for (size_t i = 0; i < s->n_starts; i++) {
        bool better = at == STARTS || s->best[i] > s->best[at];
        if (better && !training_set_tried(s->p->set, s->start + i * s->d, DESIGN_TOLERANCE))
            at = i;
    }
    if (at == STARTS)
        return false;
    ret->runner_up = runner_up(s->best, s->n_starts, at);
    fill_found(s, s->start + at * s->d, candidates, ret_point, ret);
    return true;
}

/* The raw candidates and their values: s->points, s->values. */
static as_status read_candidates(struct search *s, size_t *ret_n, size_t *ret_global,
                                 struct as_err *err)
{
    as_status st =
        gp_candidates(s->p->set, &s->p->region, s->p->number, s->points, ret_n, ret_global, err);
    if (st == AS_OK && *ret_n)
        optimize_values(s, s->points, *ret_n, s->values);
    return st;
}

/* If every end was tried before, take the best raw candidate; no raw candidate was tried. */
static as_status settle_for_raw(struct search *s, double *ret_point, struct gp_found *ret,
                                struct as_err *err)
{
    size_t n, n_global;
    as_status st = read_candidates(s, &n, &n_global, err);
    if (st < 0 || !n)
        return st;
    ret->runner_up = NAN;
    size_t at = best_of(s->values, 0, n);
    memcpy(s->start, s->points + at * s->d, s->d * sizeof *s->start);
    fill_found(s, s->start, n, ret_point, ret);
    return AS_OK;
}

/* Remove the points outside the region's branch. Returns how many stay. */
static size_t keep_branch(const struct search *s, double *points, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (branch_holds(s->e, s->p->region.branch, points + i * s->d))
            memmove(points + kept++ * s->d, points + i * s->d, s->d * sizeof *points);
    }
    return kept;
}

/* For small finite spaces: evaluate all untried configurations, in batches. */
static as_status evaluate_all(struct search *s, double *ret_point, struct gp_found *ret,
                              struct as_err *err)
{
    AS_AUTO(as_freep) double *left = as_calloc(ENUMERATE_ALL, s->d * sizeof *left);
    AS_AUTO(as_freep) double *values = as_calloc(ENUMERATE_ALL, sizeof *values);
    if (!left || !values)
        return as_fail(err, AS_E_NOMEM, "out of memory for the configurations that are left");
    struct enumerated found = {0};
    as_status st = enumerate_untried(s->p->set, ENUMERATE_ALL, left, &found, err);
    if (st < 0)
        return st;
    if (!found.n)
        return as_fail(err, AS_E_EXHAUSTED, "every configuration of the space was tried");
    found.n = keep_branch(s, left, found.n);
    if (!found.n)
        return AS_OK;
    for (size_t i = 0; i < found.n; i += BATCH)
        optimize_values(s, left + i * s->d, found.n - i < BATCH ? found.n - i : BATCH, values + i);
    size_t at = best_of(values, 0, found.n);
    ret->runner_up = runner_up(values, found.n, at);
    fill_found(s, left + at * s->d, found.n, ret_point, ret);
    return AS_OK;
}

static as_status climb_from_candidates(struct search *s, double *ret_point, struct gp_found *ret,
                                       struct as_err *err)
{
    size_t n, n_global;
    as_status st = read_candidates(s, &n, &n_global, err);
    if (st < 0 || !n)
        return st;
    choose_starts(s, n, n_global);
    optimize_improve(s);
    return choose_end(s, n, ret_point, ret) ? AS_OK : settle_for_raw(s, ret_point, ret, err);
}

as_status gp_optimize(const struct gp_optimizer_problem *p, struct gp_optimizer_work *w,
                      double *ret_point, struct gp_found *ret, struct as_err *err)
{
    AS_AUTO(search_done) struct search s = {.p = p, .e = p->set->enc, .w = w};
    struct gp_found found = {0};
    s.d = s.e->n;
    s.n_models = p->acquisition->n_objectives + p->acquisition->n_limits;
    as_status st = allocate_search(&s, err);
    if (st < 0)
        return st;
    read_space(&s);
    if (enumeration_bound(s.e) <= ENUMERATE_ALL)
        st = evaluate_all(&s, ret_point, &found, err);
    else
        st = climb_from_candidates(&s, ret_point, &found, err);
    if (st < 0)
        return st;
    *ret = found;
    return AS_OK;
}

as_status gp_describe(const struct gp_optimizer_problem *p, struct gp_optimizer_work *w,
                      const double *point, struct gp_found *ret, struct as_err *err)
{
    AS_AUTO(search_done) struct search s = {.p = p, .e = p->set->enc, .w = w};
    s.d = s.e->n;
    s.n_models = p->acquisition->n_objectives + p->acquisition->n_limits;
    as_status st = allocate_search(&s, err);
    if (st < 0)
        return st;
    struct gp_found found = {.runner_up = NAN};
    fill_found(&s, point, 1, s.start, &found);
    *ret = found;
    return AS_OK;
}
