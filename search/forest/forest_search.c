/* A tree sees a point with one number for each parameter: its place, or what stands for "not
 * active", a place of its own: below all others for a number, an additional value for a choice. So
 * a split can part the trials that have a parameter from those that do not.
 *
 * Pending trials need two forests: the first, of the others, says what a pending trial is expected
 * to bring, and the second is grown with these values. They pull the deviations down where trials
 * are under way. */
#include "search/forest/forest_search.h"

#include <math.h>
#include <string.h>

#include "search/forest/forest.h"
#include "search/population/design.h"
#include "search/population/moves.h"
#include "search/prior/trust.h"
#include "search/regression/special.h"
#include "search/regression/warp.h"

/* Neighbours in a parameter: moves of a number by these deviations (SMAC's is 0.2), and the nearest
 * levels, or other values of a choice. */
static const double moves[] = {0.2, 0.2, 0.2, 0.05};
#define LEVELS 4
#define VALUES 8
#define NEIGHBOURS (AS_ARRAY_LEN(moves) + VALUES)
#define LEAST_GAIN 1e-9 /* of a step: plateaus have no end */

/* One search. */
struct quest {
    const struct training_set *set;
    const struct prior_weights *priors;
    struct rng *r;
    struct gp_warp *warp;
    struct forest *forest;
    double best;      /* the value to improve on, in the warped unit */
    size_t n;         /* rows of x and y */
    uint64_t *levels; /* [d] as trees want them */
    double *x, *y;    /* [set->n, d], [set->n]: what the forest is grown from */
    double *work;     /* the four that follow, [d] each */
    double *seen, *at, *next, *better;
    bool *active, *before; /* [d]; owned as one, of which `active` is the first */
    double *point;         /* [d]: the best one so far; borrowed */
    struct forest_found found;
};

static void quest_done(struct quest *q)
{
    gp_warp_free(q->warp);
    forest_free(q->forest);
    free(q->levels);
    free(q->x);
    free(q->y);
    free(q->work);
    free(q->active);
}

static as_status quest_reserve(struct quest *q, struct as_err *err)
{
    size_t d = q->set->enc->n, n = q->set->n;
    q->levels = as_calloc(d, sizeof *q->levels);
    q->x = as_calloc(n, d * sizeof *q->x);
    q->y = as_calloc(n, sizeof *q->y);
    q->work = as_calloc(4 * d, sizeof *q->work);
    q->active = as_calloc(2 * d, sizeof *q->active);
    if (!q->levels || !q->x || !q->y || !q->work || !q->active)
        return as_fail_nomem(err);
    q->seen = q->work;
    q->at = q->seen + d;
    q->next = q->at + d;
    q->better = q->next + d;
    q->before = q->active + d;
    for (size_t j = 0; j < d; j++) {
        const struct encoded_param *p = &q->set->enc->params[j];
        q->levels[j] = p->kind == ENCODED_CHOICE ? p->levels + p->is_conditional : 0;
    }
    return AS_OK;
}

/* ---- the forest ---- */

/* The point as a tree sees it. */
static void see(const struct quest *q, const double *point, double *x)
{
    const struct encoding *e = q->set->enc;
    encoding_active(e, point, q->active);
    for (size_t j = 0; j < e->n; j++) {
        const struct encoded_param *p = &e->params[j];
        if (q->active[j])
            x[j] = p->kind == ENCODED_CONSTANT ? 0 : point[j];
        else
            x[j] = p->kind == ENCODED_CHOICE ? (double)p->levels : -1;
    }
}

static as_status grow(struct quest *q, struct as_err *err)
{
    const struct tree_rows t = {q->n, q->set->enc->n, q->x, q->y, q->levels, NULL};
    forest_free(q->forest);
    q->forest = NULL;
    return forest_grow(&t, q->r, &q->forest, err);
}

/* Has the trial ended, and says something of its place? A value beyond any credible range may not
 * (training_set.h). */
static bool is_known(const struct training_set *s, size_t i)
{
    return s->state[i] != OBSERVED_PENDING && (s->state[i] != OBSERVED_FAILED || s->avoided[i]);
}

static as_status learn_ended(struct quest *q, const double *costs, struct as_err *err)
{
    const struct training_set *s = q->set;
    for (size_t i = 0; i < s->n; i++) {
        if (!is_known(s, i))
            continue;
        see(q, training_set_point(s, i), q->x + q->n * s->enc->n);
        q->y[q->n++] = costs[i];
    }
    as_status st = gp_warp_create(WARP_HALF_RANK, q->y, q->n, &q->warp, err);
    if (st < 0)
        return st;
    memcpy(q->y, gp_warp_values(q->warp), q->n * sizeof *q->y);
    q->best = INFINITY;
    for (size_t i = 0; i < q->n; i++)
        q->best = fmin(q->best, q->y[i]);
    return grow(q, err);
}

static as_status learn(struct quest *q, const double *costs, struct as_err *err)
{
    const struct training_set *s = q->set;
    as_status st = learn_ended(q, costs, err);
    if (st < 0 || !s->n_pending)
        return st;
    for (size_t i = 0; i < s->n; i++) {
        double variance, *x = q->x + q->n * s->enc->n;
        if (s->state[i] != OBSERVED_PENDING)
            continue;
        see(q, training_set_point(s, i), x);
        forest_predict(q->forest, x, &q->y[q->n++], &variance);
    }
    return grow(q, err);
}

/* ---- the search ---- */

static double acquisition(const struct quest *q, const double *point)
{
    double mean, variance, pdf_h, cdf_h;
    see(q, point, q->seen);
    forest_predict(q->forest, q->seen, &mean, &variance);
    double deviation = sqrt(variance);
    double v = log(deviation) + gp_log_h((q->best - mean) / deviation, &pdf_h, &cdf_h);
    return q->priors && q->priors->any ? v + trust_log(q->priors, q->set, point, NULL) : v;
}

/* The acquisition at a snapped point, -INFINITY where the space does not allow it. The best untried
 * point is kept. */
static double look(struct quest *q, const double *point)
{
    const struct training_set *s = q->set;
    if (!encoding_allows(s->enc, point, s->scratch))
        return -INFINITY;
    double v = acquisition(q, point);
    bool is_best = !q->found.is_found || v > q->found.value;
    if (is_best && !training_set_tried(s, point, DESIGN_TOLERANCE)) {
        q->found.is_found = true;
        q->found.value = v;
        memcpy(q->point, point, s->enc->n * sizeof *point);
    }
    return v;
}

/* The places of the neighbours of q->at in parameter j; returns how many. */
static size_t neighbours(const struct quest *q, size_t j, double ret[NEIGHBOURS])
{
    const struct encoding *e = q->set->enc;
    const struct encoded_param *p = &e->params[j];
    if (p->kind == ENCODED_CONSTANT)
        return 0;
    if (p->kind == ENCODED_CHOICE)
        return encoding_neighbours(e, j, q->at[j], ret, VALUES);
    size_t n = p->kind == ENCODED_LEVELS ? encoding_neighbours(e, j, q->at[j], ret, LEVELS) : 0;
    for (size_t k = 0; k < AS_ARRAY_LEN(moves); k++)
        ret[n++] = moves_reflect(q->at[j] + moves[k] * rng_normal(q->r));
    return n;
}

/* Look at all neighbours of q->at; the best one that is better than `value` becomes q->better.
 * Returns its acquisition, or `value`. */
static double look_around(struct quest *q, double value)
{
    const struct encoding *e = q->set->enc;
    encoding_active(e, q->at, q->before);
    for (size_t j = 0; j < e->n; j++) {
        double places[NEIGHBOURS];
        size_t n = q->before[j] ? neighbours(q, j, places) : 0;
        for (size_t k = 0; k < n; k++) {
            memcpy(q->next, q->at, e->n * sizeof *q->next);
            q->next[j] = places[k];
            encoding_snap(e, q->next);
            encoding_active(e, q->next, q->active);
            moves_activate(e, q->before, q->active, q->r, q->next);
            double v = look(q, q->next);
            if (v > value) {
                value = v;
                memcpy(q->better, q->next, e->n * sizeof *q->better);
            }
        }
    }
    return value;
}

static void climb(struct quest *q, const double *from)
{
    size_t d = q->set->enc->n;
    memcpy(q->at, from, d * sizeof *q->at);
    double value = look(q, q->at);
    for (size_t step = 0; step < FOREST_SEARCH_STEPS; step++) {
        double better = look_around(q, value);
        if (!(better > value + LEAST_GAIN))
            return;
        value = better;
        memcpy(q->at, q->better, d * sizeof *q->at);
    }
}

/* Where a climb may start. */
struct start {
    double key; /* small is good */
    size_t i;
};

static int compare_starts(const void *x, const void *y)
{
    const struct start *a = x, *b = y;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->i < b->i ? -1 : a->i > b->i;
}

/* Climb from the first `most` of n starts, which are rows of `points`. */
static void climb_from(struct quest *q, struct start *starts, size_t n, size_t most,
                       const double *points)
{
    qsort(starts, n, sizeof *starts, compare_starts);
    for (size_t k = 0; k < n && k < most; k++)
        climb(q, points + starts[k].i * q->set->enc->n);
}

static as_status search(struct quest *q, const double *costs, struct as_err *err)
{
    const struct training_set *s = q->set;
    size_t d = s->enc->n, n = 0;
    AS_AUTO(as_freep) struct start *starts = as_calloc(s->n + FOREST_SEARCH_RANDOM, sizeof *starts);
    AS_AUTO(as_freep) double *points = as_calloc(FOREST_SEARCH_RANDOM, d * sizeof *points);
    if (!starts || !points)
        return as_fail_nomem(err);
    for (size_t i = 0; i < s->n; i++)
        if (is_known(s, i))
            starts[n++] = (struct start){isfinite(costs[i]) ? costs[i] : INFINITY, i};
    climb_from(q, starts, n, FOREST_SEARCH_BEST, s->points);
    n = 0;
    for (size_t i = 0; i < FOREST_SEARCH_RANDOM; i++) {
        double *point = points + i * d;
        for (size_t j = 0; j < d; j++)
            point[j] = rng_uniform(q->r);
        encoding_from_unit(s->enc, point, point);
        double v = look(q, point);
        if (isfinite(v))
            starts[n++] = (struct start){-v, i};
    }
    climb_from(q, starts, n, FOREST_SEARCH_OTHERS, points);
    return AS_OK;
}

/* What the forest predicts at the point that was found. */
static void describe(struct quest *q)
{
    double mean, variance;
    see(q, q->point, q->seen);
    forest_predict(q->forest, q->seen, &mean, &variance);
    q->found.mean = gp_warp_inverse(q->warp, mean);
    q->found.deviation = sqrt(variance) * gp_warp_inverse_slope(q->warp, mean);
}

as_status forest_search(const struct training_set *s, const double *costs,
                        const struct prior_weights *priors, struct rng *r, double *ret_point,
                        struct forest_found *ret, struct as_err *err)
{
    AS_AUTO(quest_done)
    struct quest q = {.set = s, .priors = priors, .r = r, .point = ret_point};
    as_status st = quest_reserve(&q, err);
    if (st == AS_OK)
        st = learn(&q, costs, err);
    if (st == AS_OK)
        st = search(&q, costs, err);
    if (st < 0)
        return st;
    if (q.found.is_found)
        describe(&q);
    *ret = q.found;
    return AS_OK;
}
