/* The moves of the optimiser of the acquisition, for all starts at once. Continuous climbs (L-BFGS)
 * and sweeps over the levels of discrete parameters alternate until neither improves. Near a
 * constraint the climb steps back to the border and then takes random steps along it, because
 * gradients do not know constraints. */
#include "search/gp/optimize_priv.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "search/population/design.h"
#include "search/prior/trust.h"
#include "search/problem/random_stream.h"

#define ROUNDS 6
#define CLIMB_EVALS 90   /* calls of one climb */
#define HALVINGS 12      /* when stepping back from a point that is not allowed */
#define POLISH_STEPS 4   /* random steps along the border of the allowed region, */
#define POLISH_POINTS 16 /* this many at once for each start */

/* The local search stops after this many operations; a prediction takes 2 n^2. */
#define WORK_OPERATIONS 2.0e9
#define WORK_LEAST 512
#define WORK_MOST 20000

/* The climbs of a suggestion end after CLIMB_WORK / n^2 calls of the acquisition with its gradient,
 * for all starts at once. Up to about 350 rows they end before that. */
#define CLIMB_WORK 2.0e7
#define CLIMB_LEAST 20

/* ---- values ---- */

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
    s->climbs_left -= s->climbs_left > 0;
    struct gp_rows rows = optimize_features(s, points, n);
    for (size_t k = 0; k < s->n_models; k++)
        surrogate_predict_grad(&s->p->models[k], s->w->predict, &rows, s->mean + k * BATCH,
                               s->var + k * BATCH, s->dmean + k * STARTS * n_real,
                               s->dvar + k * STARTS * n_real);
    for (size_t i = 0; i < n; i++) {
        double by_mean[ACQUISITION_MAX_MODELS], by_sd[ACQUISITION_MAX_MODELS];
        ret_f[i] = -optimize_value(s, i, BATCH, by_mean, by_sd);
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
    opts.max_evals = s->climbs_left < CLIMB_EVALS ? s->climbs_left : CLIMB_EVALS;
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
    optimize_values(s, s->trial, s->n_starts, s->values);
    bool moved = false;
    for (size_t i = 0; i < s->n_starts; i++)
        moved |= accept_trial(s, i, s->trial + i * s->d, s->values[i]);
    return moved;
}

/* Accept those of the evaluated points from `from` to `to` that are better than their start. */
static bool accept_better(struct search *s, size_t from, size_t to, bool *moved)
{
    bool any = false;
    for (size_t i = from; i < to; i++) {
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

/* The features of the neighbour at place n: those of the neighbour before it, if that is of the
 * same start and parameter, with one of them changed. */
static void add_features(struct search *s, size_t n, size_t j, bool is_first)
{
    const struct encoding *e = s->e;
    double *x = s->x + n * e->n_real;
    int32_t *z = s->z + n * e->n_category;
    if (is_first) {
        encoding_features(e, s->points + n * s->d, x, z);
        return;
    }
    memcpy(x, x - e->n_real, e->n_real * sizeof *x);
    memcpy(z, z - e->n_category, e->n_category * sizeof *z);
    encoding_move_feature(e, s->points + n * s->d, j, x, z);
}

/* Append the neighbours in discrete parameter j of all starts that still move, and their features;
 * n points are there. Returns how many are there then. */
static size_t add_neighbours(struct search *s, size_t j, const bool *live, size_t n)
{
    double places[NEIGHBOURS];
    bool active[SPACE_MAX_PARAMS];
    for (size_t i = 0; i < s->n_starts; i++) {
        const double *from = s->start + i * s->d;
        encoding_active(s->e, from, active);
        if (!live[i] || !active[j])
            continue;
        size_t k = encoding_neighbours(s->e, j, from[j], places, NEIGHBOURS), first = n;
        for (size_t q = 0; q < k; q++) {
            if (s->p->region.centre && s->e->params[j].kind == ENCODED_LEVELS &&
                (places[q] < s->p->region.lower[j] || places[q] > s->p->region.upper[j]))
                continue;
            memcpy(s->points + n * s->d, from, s->d * sizeof *from);
            s->points[n * s->d + j] = places[q];
            add_features(s, n, j, n == first);
            s->owner[n++] = i;
        }
    }
    return n;
}

/* Evaluate the neighbours in up to `width` discrete parameters from j on in one batch, and accept
 * the best of one parameter after the other. The first parameter that moves a start ends this:
 * what was evaluated beyond it belongs to the place before. Returns the first parameter that was
 * not tried. */
static size_t try_levels(struct search *s, size_t j, size_t width, const bool *live, bool *moved)
{
    size_t of[SPACE_MAX_PARAMS], end[SPACE_MAX_PARAMS], tried = 0, n = 0;
    for (; j < s->d && tried < width && n + STARTS * NEIGHBOURS <= BATCH; j++) {
        if (!is_discrete(&s->e->params[j]))
            continue;
        n = add_neighbours(s, j, live, n);
        of[tried] = j;
        end[tried++] = n;
    }
    if (!n)
        return j;
    optimize_values_of_features(s, s->points, n, s->values);
    for (size_t q = 0, from = 0; q < tried; from = end[q++]) {
        s->left -= end[q] - from < s->left ? end[q] - from : s->left;
        if (accept_better(s, from, end[q], moved) || !s->left)
            return of[q] + 1;
    }
    return j;
}

/* Try all discrete parameters once. live: the starts still in the search; a start that did not move
 * leaves. Few calls move a start near the end, so the batch doubles as long as none does. */
static bool sweep_levels(struct search *s, bool *live)
{
    bool moved[STARTS] = {false}, any = false;
    for (size_t j = 0, width = 1; j < s->d && s->left;) {
        bool now[STARTS] = {false}, is_better = false;
        j = try_levels(s, j, width, live, now);
        for (size_t i = 0; i < STARTS; i++) {
            is_better |= now[i];
            moved[i] |= now[i];
        }
        width = is_better ? 1 : 2 * width;
        any |= is_better;
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
        if (n) {
            optimize_values(s, s->points, n, s->values);
            (void)accept_better(s, 0, n, moved);
        }
    }
}

/* How much the moves may compute: less for larger models. */
static void set_work(struct search *s)
{
    size_t rows = 1;
    for (size_t k = 0; k < s->n_models; k++) {
        size_t n = gp_model_rows(s->p->models[k].model);
        rows = n > rows ? n : rows;
    }
    double square = (double)rows * (double)rows * (double)s->n_models;
    s->left = (size_t)fmin(WORK_MOST, fmax(WORK_LEAST, 0.5 * WORK_OPERATIONS / square));
    s->climbs_left = (size_t)fmin(ROUNDS * CLIMB_EVALS, fmax(CLIMB_LEAST, CLIMB_WORK / square));
}

void optimize_improve(struct search *s)
{
    bool live[STARTS];
    set_work(s);
    for (size_t i = 0; i < STARTS; i++)
        live[i] = i < s->n_starts;
    for (int round = 0; round < ROUNDS; round++) {
        if (s->has_numeric && (round == 0 || s->e->n_continuous) && s->climbs_left)
            climb_starts(s, round == 0);
        if (!s->has_discrete || !sweep_levels(s, live))
            break;
    }
    if (s->refused)
        polish_border(s);
}
