/* The optimiser of the acquisition over continuous and discrete parameters. The acquisition has
 * many local maxima, so several starts climb at once and share every batched prediction. Continuous
 * climbs (L-BFGS) and sweeps over the levels of discrete parameters alternate until neither
 * improves. Near a constraint the climb steps back to the border and then takes random steps along
 * it, because gradients do not know constraints. A small finite space is evaluated completely
 * instead. */
#include "search/gp/optimize.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "search/population/design.h"
#include "search/population/enumeration.h"
#include "search/prior/trust.h"
#include "search/problem/draw.h"

#define STARTS 4
#define ROUNDS 6
#define NEIGHBOURS 16 /* of one discrete parameter; a parameter with more levels is relaxed */
#define BATCH CANDIDATES_MAX
#define ENUMERATE_ALL 1024 /* a space of at most this many configurations is evaluated completely */
#define HALVINGS 12        /* when stepping back from a point that is not allowed */
#define POLISH_STEPS 4     /* random steps along the border of the allowed region, */
#define POLISH_POINTS 16   /* this many at once for each start */
#define BOLTZMANN 2.0

/* The local search stops after this many operations; a prediction takes 2 n^2. */
#define WORK_OPERATIONS 2.0e9
#define WORK_LEAST 512
#define WORK_MOST 20000

struct search {
    const struct gp_optimizer_problem *p;
    const struct encoding *e;
    struct gp_optimizer_work *w;
    size_t d, n_models;
    bool has_numeric, has_discrete, has_wide, refused;
    size_t left;           /* predictions that the local search may still make */
    double *points;        /* [BATCH x d] */
    double *values;        /* [BATCH] */
    double *x;             /* [BATCH x n_real] */
    int32_t *z;            /* [BATCH x n_category] */
    double *mean, *var;    /* [models x BATCH] */
    double *dmean, *dvar;  /* [models x STARTS x n_real] */
    double *dx;            /* [n_real] */
    double *scale;         /* [d] */
    double *lower, *upper; /* [STARTS x d] */
    size_t n_starts;
    double *start; /* [STARTS x d] */
    double *trial; /* [STARTS x d] */
    double best[STARTS];
    size_t owner[BATCH];
};

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

static bool is_wide(const struct encoded_param *p)
{
    return p->kind == ENCODED_LEVELS && p->levels > NEIGHBOURS;
}

static bool is_discrete(const struct encoded_param *p)
{
    return p->kind == ENCODED_LEVELS || p->kind == ENCODED_CHOICE;
}

static void evaluate_candidates(struct search *s)
{
    const double *theta = gp_model_theta(s->p->models[0].model);
    size_t rows = 1;
    for (size_t k = 0; k < s->n_models; k++) {
        size_t n = gp_model_rows(s->p->models[k].model);
        rows = n > rows ? n : rows;
    }
    double work = WORK_OPERATIONS / (2.0 * (double)rows * (double)rows * (double)s->n_models);
    s->left = (size_t)fmin(WORK_MOST, fmax(WORK_LEAST, work));
    for (size_t i = 0; i < s->d; i++) {
        const struct encoded_param *p = &s->e->params[i];
        s->has_numeric |= p->kind == ENCODED_CONTINUOUS || is_wide(p);
        s->has_wide |= is_wide(p);
        s->has_discrete |= is_discrete(p);
        s->scale[i] = p->real >= 0 ? exp(theta[p->length]) : 1;
    }
}

/* ---- values ---- */

static double value_at(const struct search *s, size_t i, size_t stride, double *d_mean,
                       double *d_sd)
{
    double mean[ACQUISITION_MAX_MODELS], sd[ACQUISITION_MAX_MODELS];
    for (size_t k = 0; k < s->n_models; k++) {
        mean[k] = s->mean[k * stride + i];
        sd[k] = sqrt(s->var[k * stride + i]);
    }
    return acquisition_value(s->p->acquisition, mean, sd, d_mean, d_sd);
}

static struct gp_rows batch_features(struct search *s, const double *points, size_t n)
{
    const struct encoding *e = s->e;
    for (size_t i = 0; i < n; i++)
        encoding_features(e, points + i * s->d, s->x + i * e->n_real, s->z + i * e->n_category);
    return (struct gp_rows){n, s->x, s->z};
}

static void evaluate_batch(struct search *s, const double *points, size_t n, double *ret)
{
    struct gp_rows rows = batch_features(s, points, n);
    for (size_t k = 0; k < s->n_models; k++)
        surrogate_predict(&s->p->models[k], s->w->predict, &rows, s->mean + k * BATCH,
                          s->var + k * BATCH);
    for (size_t i = 0; i < n; i++) {
        ret[i] = value_at(s, i, BATCH, NULL, NULL);
        if (s->p->priors)
            ret[i] += trust_log(s->p->priors, s->p->set, points + i * s->d, NULL);
    }
}

/* Add what the priors say to minus the acquisition and its gradient. */
static void add_priors(const struct search *s, const double *point, double *f, double *g)
{
    double slope[SPACE_MAX_PARAMS];
    *f -= trust_log(s->p->priors, s->p->set, point, slope);
    for (size_t j = 0; j < s->d; j++)
        g[j] -= slope[j];
}

/* lbfgs_fn: minus the acquisition. */
static void negative_acquisition(void *ctx, const double *points, const size_t *start, size_t n,
                                 double *ret_f, double *ret_g)
{
    struct search *s = ctx;
    (void)start;
    size_t n_real = s->e->n_real;
    struct gp_rows rows = batch_features(s, points, n);
    for (size_t k = 0; k < s->n_models; k++)
        surrogate_predict_grad(&s->p->models[k], s->w->predict, &rows, s->mean + k * BATCH,
                               s->var + k * BATCH, s->dmean + k * STARTS * n_real,
                               s->dvar + k * STARTS * n_real);
    for (size_t i = 0; i < n; i++) {
        double by_mean[ACQUISITION_MAX_MODELS], by_sd[ACQUISITION_MAX_MODELS];
        ret_f[i] = -value_at(s, i, BATCH, by_mean, by_sd);
        memset(s->dx, 0, n_real * sizeof *s->dx);
        for (size_t k = 0; k < s->n_models; k++) {
            const double *dm = s->dmean + (k * STARTS + i) * n_real;
            const double *dv = s->dvar + (k * STARTS + i) * n_real;
            double by_var = 0.5 * by_sd[k] / sqrt(s->var[k * BATCH + i]);
            for (size_t j = 0; j < n_real; j++)
                s->dx[j] -= by_mean[k] * dm[j] + by_var * dv[j];
        }
        encoding_pull_gradient(s->e, points + i * s->d, s->dx, ret_g + i * s->d);
        if (s->p->priors)
            add_priors(s, points + i * s->d, &ret_f[i], ret_g + i * s->d);
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

/* ---- moves ---- */

/* Accept a trial point if it is better. True: better by more than rounding. */
static bool accept_trial(struct search *s, size_t i, const double *point, double value)
{
    double gain = value - s->best[i];
    if (!(gain > 0))
        return false;
    memcpy(s->start + i * s->d, point, s->d * sizeof *point);
    s->best[i] = value;
    return gain > 1e-9 * fmax(1, fabs(value));
}

/* Move a point that is not allowed back towards the start, which is allowed, up to the border. */
static void retreat_to_border(struct search *s, const double *from, double *point)
{
    const struct training_set *set = s->p->set;
    double good = 0, bad = 1;
    double *to = s->points, *at = s->points + s->d; /* free between batches */
    memcpy(to, point, s->d * sizeof *to);
    memcpy(point, from, s->d * sizeof *point);
    for (int i = 0; i < HALVINGS; i++) {
        double t = 0.5 * (good + bad);
        for (size_t j = 0; j < s->d; j++)
            at[j] = from[j] + t * (to[j] - from[j]);
        encoding_snap(s->e, at);
        if (encoding_allows(s->e, at, set->scratch)) {
            memcpy(point, at, s->d * sizeof *point);
            good = t;
        } else {
            bad = t;
        }
    }
}

static void set_bounds(struct search *s, bool relax)
{
    for (size_t i = 0; i < s->n_starts; i++) {
        for (size_t j = 0; j < s->d; j++) {
            const struct encoded_param *p = &s->e->params[j];
            bool is_free = p->kind == ENCODED_CONTINUOUS || (relax && is_wide(p));
            size_t at = i * s->d + j;
            double lower = s->p->region.centre ? s->p->region.lower[j] : 0;
            double upper = s->p->region.centre ? s->p->region.upper[j] : 1;
            s->lower[at] = is_free ? lower : s->start[at];
            s->upper[at] = is_free ? upper : s->start[at];
        }
    }
}

static bool climb_starts(struct search *s, bool relax)
{
    struct lbfgs_problem problem = {.fn = negative_acquisition,
                                    .ctx = s,
                                    .n = s->d,
                                    .lower = s->lower,
                                    .upper = s->upper,
                                    .bounds_stride = s->d,
                                    .scale = s->scale};
    struct lbfgs_opts opts = LBFGS_DEFAULTS;
    struct lbfgs_result results[STARTS];
    opts.max_iters = 60;
    opts.max_evals = 90;
    opts.f_tol = 1e-8;
    set_bounds(s, relax);
    memcpy(s->trial, s->start, s->n_starts * s->d * sizeof *s->trial);
    lbfgs_minimize(&problem, &opts, s->trial, s->n_starts, results, s->w->lbfgs);
    for (size_t i = 0; i < s->n_starts; i++) {
        double *point = s->trial + i * s->d;
        encoding_snap(s->e, point);
        if (encoding_allows(s->e, point, s->p->set->scratch))
            continue;
        retreat_to_border(s, s->start + i * s->d, point);
        s->refused = true;
    }
    evaluate_batch(s, s->trial, s->n_starts, s->values);
    bool moved = false;
    for (size_t i = 0; i < s->n_starts; i++)
        moved |= accept_trial(s, i, s->trial + i * s->d, s->values[i]);
    return moved;
}

/* Evaluate the batch of n points that belong to starts `owner`, and accept those that are
 * better. */
static bool take_best(struct search *s, size_t n, bool *moved)
{
    bool any = false;
    evaluate_batch(s, s->points, n, s->values);
    s->left -= n < s->left ? n : s->left;
    for (size_t i = 0; i < n; i++) {
        const double *point = s->points + i * s->d;
        if (!(s->values[i] > s->best[s->owner[i]]) ||
            !branch_holds(s->e, s->p->region.branch, point) ||
            !encoding_allows(s->e, point, s->p->set->scratch) ||
            (!s->e->n_continuous && training_set_tried(s->p->set, point, DESIGN_TOLERANCE)))
            continue;
        if (accept_trial(s, s->owner[i], point, s->values[i]))
            any = moved[s->owner[i]] = true;
    }
    return any;
}

/* Try the neighbours of discrete parameter j for all starts that still move, in one batch. */
static bool try_levels(struct search *s, size_t j, const bool *live, bool *moved)
{
    double places[NEIGHBOURS];
    size_t n = 0;
    bool any = false, active[SPACE_MAX_PARAMS];
    for (size_t i = 0; i < s->n_starts; i++) {
        const double *from = s->start + i * s->d;
        encoding_active(s->e, from, active);
        if (!live[i] || !active[j])
            continue;
        size_t k = encoding_neighbours(s->e, j, from[j], places, NEIGHBOURS);
        for (size_t q = 0; q < k; q++) {
            if (s->p->region.centre && s->e->params[j].kind == ENCODED_LEVELS &&
                (places[q] < s->p->region.lower[j] || places[q] > s->p->region.upper[j]))
                continue;
            memcpy(s->points + n * s->d, from, s->d * sizeof *from);
            s->points[n * s->d + j] = places[q];
            s->owner[n++] = i;
        }
    }
    if (n)
        any = take_best(s, n, moved);
    return any;
}

/* Try all discrete parameters once. live: the starts still in the search; a start that did not move
 * leaves. */
static bool sweep_levels(struct search *s, bool *live)
{
    bool moved[STARTS] = {false}, any = false;
    for (size_t j = 0; j < s->d && s->left; j++) {
        if (is_discrete(&s->e->params[j]))
            any |= try_levels(s, j, live, moved);
    }
    memcpy(live, moved, sizeof moved);
    return any;
}

/* If the space's constraints stopped a climb, the best place is near their border. Search it with
 * random steps of decreasing size. */
static void polish_border(struct search *s)
{
    struct rng r;
    bool moved[STARTS];
    rng_init(&r, s->p->set->spec->seed, s->p->number << 8 | SEARCH_DRAW_GP_START);
    r.lo = 1 << 20; /* beyond the draws of the starts */
    for (int step = 0; step < POLISH_STEPS; step++) {
        double sd = 0.1 * pow(0.25, step);
        size_t n = 0;
        for (size_t i = 0; i < s->n_starts * POLISH_POINTS; i++) {
            double *point = s->points + n * s->d;
            memcpy(point, s->start + i % s->n_starts * s->d, s->d * sizeof *point);
            for (size_t j = 0; j < s->d; j++) {
                const struct encoded_param *p = &s->e->params[j];
                if (p->kind == ENCODED_CONTINUOUS || is_wide(p))
                    point[j] += sd * rng_normal(&r);
            }
            encoding_snap(s->e, point);
            s->owner[n] = i % s->n_starts;
            n += encoding_allows(s->e, point, s->p->set->scratch);
        }
        if (n)
            take_best(s, n, moved);
    }
}

static void improve_starts(struct search *s)
{
    bool live[STARTS];
    for (size_t i = 0; i < STARTS; i++)
        live[i] = i < s->n_starts;
    for (int round = 0; round < ROUNDS; round++) {
        if (s->has_numeric && (round == 0 || s->e->n_continuous))
            climb_starts(s, round == 0);
        if (!s->has_discrete || !sweep_levels(s, live))
            break;
    }
    if (s->refused)
        polish_border(s);
}

/* ---- the end ---- */

static void fill_found(struct search *s, const double *point, size_t candidates, double *ret_point,
                       struct gp_found *ret)
{
    evaluate_batch(s, point, 1, &ret->value);
    ret->is_found = true;
    ret->candidates = candidates;
    for (size_t k = 0; k < s->n_models; k++) {
        ret->mean[k] = s->mean[k * BATCH];
        ret->sd[k] = sqrt(s->var[k * BATCH]);
    }
    memcpy(ret_point, point, s->d * sizeof *point);
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
    ret->runner_up = NAN;
    for (size_t i = 0; i < s->n_starts; i++) {
        if (i != at && !(s->best[i] <= ret->runner_up))
            ret->runner_up = s->best[i];
    }
    fill_found(s, s->start + at * s->d, candidates, ret_point, ret);
    return true;
}

/* If every end was tried before, take the best raw candidate; no raw candidate was tried. */
static as_status settle_for_raw(struct search *s, double *ret_point, struct gp_found *ret,
                                struct as_err *err)
{
    size_t n, n_global;
    as_status st =
        gp_candidates(s->p->set, &s->p->region, s->p->number, s->points, &n, &n_global, err);
    if (st < 0 || !n)
        return st;
    evaluate_batch(s, s->points, n, s->values);
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
        evaluate_batch(s, left + i * s->d, found.n - i < BATCH ? found.n - i : BATCH, values + i);
    size_t at = best_of(values, 0, found.n);
    ret->runner_up = NAN;
    for (size_t i = 0; i < found.n; i++) {
        if (i != at && !(values[i] <= ret->runner_up))
            ret->runner_up = values[i];
    }
    fill_found(s, left + at * s->d, found.n, ret_point, ret);
    return AS_OK;
}

static as_status climb_from_candidates(struct search *s, double *ret_point, struct gp_found *ret,
                                       struct as_err *err)
{
    size_t n, n_global;
    as_status st =
        gp_candidates(s->p->set, &s->p->region, s->p->number, s->points, &n, &n_global, err);
    if (st < 0 || !n)
        return st;
    evaluate_batch(s, s->points, n, s->values);
    choose_starts(s, n, n_global);
    improve_starts(s);
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
    evaluate_candidates(&s);
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
