/* Raw points for an acquisition: Sobol points over the region cover it evenly, and moves of the
 * best trials refine what is already good. Both pass the constraints and skip tried points. The
 * draws are keyed by the suggestion, so the same suggestion sees the same points. */
#include "search/gp/candidates.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "search/population/design.h"
#include "search/pareto/pareto.h"
#include "search/problem/random_stream.h"
#include "search/sampling/feasible.h"
#include "search/sampling/sampler.h"
#include "search/sampling/sobol.h"

#define MOVED_AT_ONCE 20.0 /* about this many parameters change in one move */
#define WIDE_MOVE 0.1
#define NARROW_MOVE 0.01
#define FEW 16        /* usable global points: the space may be narrow */
#define WALK_ROUNDS 2 /* of a walk between two points */

/* ---- the best trials ---- */

/* How far a trial's outcomes lie outside their bounds, each relative to the size of its bound. */
static double outcome_violation(const struct training_set *s, size_t i)
{
    double sum = 0;
    for (size_t k = 0; k < s->spec->n_outcomes; k++) {
        const struct outcome_bound *b = &s->spec->outcomes[k];
        double v = s->trials[i].outcomes[k], past = fmax(0, fmax(b->min - v, v - b->max));
        double size =
            fmax(isfinite(b->min) ? fabs(b->min) : 0, isfinite(b->max) ? fabs(b->max) : 0);
        sum += past / (size > 0 ? size : 1);
    }
    return sum;
}

static bool is_dominated(const struct training_set *s, size_t i)
{
    size_t m = s->spec->n_objectives;
    for (size_t j = 0; j < s->n; j++) {
        if (s->feasible[j] && gp_pareto_dominates(s->costs + j * m, s->costs + i * m, m, NULL))
            return true;
    }
    return false;
}

/* A trial at a rung, which the model predicts at the last step. */
static bool is_expected(const struct training_set *s, size_t i)
{
    return s->expected && training_set_rung(s, i);
}

/* Is trial i better than trial j? Compares feasibility, then the front, then the cost. With rungs:
 * what the model expects; whether a trial at a rung is feasible is not known and is ignored. */
static bool trial_precedes(const struct training_set *s, bool with_rungs, size_t i, size_t j)
{
    size_t m = s->spec->n_objectives;
    if (with_rungs && s->expected && (s->feasible[i] || is_expected(s, i)) &&
        (s->feasible[j] || is_expected(s, j)))
        return s->expected[i] < s->expected[j];
    if (s->feasible[i] != s->feasible[j])
        return s->feasible[i];
    if (!s->feasible[i])
        return outcome_violation(s, i) < outcome_violation(s, j);
    if (m > 1) /* several objectives: the front has no order, so its newest trials come first */
        return true;
    return s->costs[i * m] < s->costs[j * m];
}

/* The best trials of the branch; with_rungs: also trials at rungs. */
static size_t top_of_branch(const struct training_set *s, const struct branch *b, bool with_rungs,
                            size_t max, size_t *ret)
{
    size_t n = 0;
    bool several = s->spec->n_objectives > 1;
    for (size_t i = 0; i < s->n; i++) {
        bool is_rung = with_rungs && is_expected(s, i);
        if ((s->state[i] != OBSERVED_COMPLETED && !is_rung) ||
            (several && s->feasible[i] && is_dominated(s, i)) ||
            !branch_holds(s->enc, b, training_set_point(s, i)))
            continue;
        size_t at = n;
        while (at > 0 && trial_precedes(s, with_rungs, i, ret[at - 1]))
            at--;
        if (at == max)
            continue;
        n += n < max;
        memmove(ret + at + 1, ret + at, (n - 1 - at) * sizeof *ret);
        ret[at] = i;
    }
    return n;
}

size_t gp_candidates_top(const struct training_set *s, size_t max, size_t *ret)
{
    return top_of_branch(s, NULL, false, max, ret);
}

/* The trials that local candidates start from: those of the region's branch, if it has some. */
static size_t top_of_region(const struct training_set *s, const struct gp_region *region,
                            size_t *ret)
{
    size_t n = top_of_branch(s, region->branch, true, CANDIDATES_TOP, ret);
    return n ? n : top_of_branch(s, NULL, true, CANDIDATES_TOP, ret);
}

/* ---- points ---- */

static bool is_numeric(const struct encoded_param *p)
{
    return p->kind == ENCODED_CONTINUOUS || p->kind == ENCODED_LEVELS;
}

static bool is_usable(const struct training_set *s, const struct gp_region *region,
                      const double *point)
{
    return branch_holds(s->enc, region->branch, point) &&
           encoding_allows(s->enc, point, s->scratch) &&
           !training_set_tried(s, point, DESIGN_TOLERANCE);
}

static double moved_share(const struct training_set *s)
{
    return fmin(1, MOVED_AT_ONCE / (double)(s->enc->n_varied ? s->enc->n_varied : 1));
}

static void enter_branch(const struct encoding *e, const struct gp_region *region, double *point)
{
    const struct branch *b = region->branch;
    if (b)
        point[b->param] = encoding_place(e, b->param, b->level);
}

/* Map a point of the unit cube into the region. */
static void global_point(const struct training_set *s, const struct gp_region *region,
                         struct rng *r, double *point)
{
    const struct encoding *e = s->enc;
    if (!region->centre) {
        encoding_from_unit(e, point, point);
        enter_branch(e, region, point);
        return;
    }
    double share = moved_share(s);
    for (size_t i = 0; i < e->n; i++) {
        double keep = rng_uniform(r);
        if (keep >= share)
            point[i] = region->centre[i];
        else if (is_numeric(&e->params[i]))
            point[i] = region->lower[i] + point[i] * (region->upper[i] - region->lower[i]);
        else if (e->params[i].kind == ENCODED_CHOICE)
            point[i] = floor(point[i] * (double)e->params[i].levels);
    }
    encoding_snap(e, point);
    enter_branch(e, region, point);
}

/* Move parameter i of a point; a level always to another one. */
static void move_param(const struct encoding *e, size_t i, double sd, struct rng *r, double *point)
{
    const struct encoded_param *p = &e->params[i];
    if (p->kind == ENCODED_CHOICE) {
        point[i] = (double)rng_below(r, p->levels);
        return;
    }
    double step = sd * rng_normal(r), moved = fmin(1, fmax(0, point[i] + step));
    if (p->kind == ENCODED_LEVELS) {
        uint64_t from = encoding_level(e, i, point[i]), to = encoding_level(e, i, moved);
        if (from == to)
            to = (step > 0 && to + 1 < p->levels) || to == 0 ? to + 1 : to - 1;
        moved = encoding_place(e, i, to);
    }
    point[i] = moved;
}

static void local_point(const struct training_set *s, const double *from, double sd, struct rng *r,
                        double *point)
{
    const struct encoding *e = s->enc;
    double share = moved_share(s);
    memcpy(point, from, e->n * sizeof *point);
    bool moved = false;
    for (size_t i = 0; i < e->n; i++) {
        if (e->params[i].kind == ENCODED_CONSTANT || rng_uniform(r) >= share)
            continue;
        move_param(e, i, sd, r, point);
        moved = true;
    }
    for (size_t tries = 0; !moved && tries < 4 * e->n; tries++) {
        size_t i = (size_t)rng_below(r, e->n);
        if (e->params[i].kind == ENCODED_CONSTANT)
            continue;
        move_param(e, i, sd, r, point);
        moved = true;
    }
}

static void clamp_to(const struct training_set *s, const struct gp_region *region, double *point)
{
    for (size_t i = 0; region->centre && i < s->enc->n; i++) {
        if (is_numeric(&s->enc->params[i]))
            point[i] = fmin(region->upper[i], fmax(region->lower[i], point[i]));
    }
    encoding_snap(s->enc, point);
    enter_branch(s->enc, region, point);
}

/* Points of this suggestion's Sobol sequence. If constraints or earlier trials exclude many, up to
 * four times as many are examined. Returns how many were found. */
static size_t global_points(const struct training_set *s, const struct gp_region *region,
                            uint64_t key, struct rng *r, double *ret)
{
    size_t d = s->enc->n, n = 0;
    for (size_t j = 0, more; j < 4 * CANDIDATES_GLOBAL && n < CANDIDATES_GLOBAL; j += more) {
        double *fresh = ret + n * d;
        more = CANDIDATES_GLOBAL - n;
        if (more > 4 * CANDIDATES_GLOBAL - j)
            more = 4 * CANDIDATES_GLOBAL - j;
        for (size_t i = 0; i < d; i++)
            sobol_column(key, j, more, (unsigned)i, fresh + i, d);
        for (size_t k = 0; k < more; k++, fresh += d) {
            global_point(s, region, r, fresh);
            if (is_usable(s, region, fresh))
                memmove(ret + n++ * d, fresh, d * sizeof *ret);
        }
    }
    return n;
}

/* Moves of the best trials. Returns how many are usable. */
static size_t local_points(const struct training_set *s, const struct gp_region *region,
                           struct rng *r, double *ret)
{
    size_t d = s->enc->n, n = 0, top[CANDIDATES_TOP + 1];
    size_t n_top = top_of_region(s, region, top);
    for (size_t j = 0; n_top && j < 4 * CANDIDATES_LOCAL && n < CANDIDATES_LOCAL; j++) {
        double sd = j / n_top % 2 ? NARROW_MOVE : WIDE_MOVE;
        local_point(s, training_set_point(s, top[j % n_top]), sd, r, ret + n * d);
        clamp_to(s, region, ret + n * d);
        n += is_usable(s, region, ret + n * d);
    }
    return n;
}

/* ---- narrow spaces: hardly a point of the cube is allowed ---- */

/* Add the place where a walk stands, if it is usable. */
static void add_walked(const struct training_set *s, const struct gp_region *region,
                       const struct feasible_walk *w, double *points, size_t *n)
{
    double *point = points + *n * s->enc->n;
    encoding_from_unit(s->enc, feasible_unit(w), point);
    clamp_to(s, region, point);
    *n += is_usable(s, region, point);
}

static as_status walk_everywhere(const struct training_set *s, const struct gp_region *region,
                                 uint64_t key, double *points, size_t *n, struct as_err *err)
{
    AS_AUTO(feasible_freep) struct feasible_walk *w = NULL;
    as_status st = feasible_start(s->spec->space, key, 0, &w, err);
    if (st < 0)
        return st == AS_E_NOT_FOUND ? AS_OK : st;
    for (size_t k = 0; k < CANDIDATES_GLOBAL; k++) {
        add_walked(s, region, w, points, n);
        feasible_move(w, WALK_ROUNDS);
    }
    return AS_OK;
}

/* A trial's place in the unit cube; an inactive parameter is in the middle. */
static void unit_of(const struct training_set *s, size_t trial, double *unit)
{
    const struct space *space = s->spec->space;
    encoding_to_config(s->enc, training_set_point(s, trial), s->scratch);
    for (size_t i = 0; i < space->n; i++) {
        const struct config_entry *e = &s->scratch->entries[i];
        unit[i] = e->active ? param_encode(&space->params[i], e->value) : 0.5;
    }
}

/* Short moves from each of the best trials, back to the trial after every one. */
static as_status walk_near_best(const struct training_set *s, const struct gp_region *region,
                                uint64_t key, double *points, size_t *n, struct as_err *err)
{
    size_t top[CANDIDATES_TOP + 1], n_top = top_of_region(s, region, top);
    AS_AUTO(as_freep) double *unit = as_calloc(s->enc->n, sizeof *unit);
    if (!unit)
        return as_fail(err, AS_E_NOMEM, "out of memory for a suggestion");
    for (size_t j = 0; n_top && j < CANDIDATES_LOCAL; j++) {
        AS_AUTO(feasible_freep) struct feasible_walk *w = NULL;
        unit_of(s, top[j % n_top], unit);
        as_status st = feasible_stand(s->spec->space, unit, key, j + 1, &w, err);
        if (st < 0)
            return st;
        feasible_nudge(w, j / n_top % 2 ? NARROW_MOVE : WIDE_MOVE);
        add_walked(s, region, w, points, n);
    }
    return AS_OK;
}

as_status gp_candidates(const struct training_set *s, const struct gp_region *region,
                        uint64_t number, double *ret_points, size_t *ret_n, size_t *ret_global,
                        struct as_err *err)
{
    uint64_t key = rng_mix(s->spec->seed, number << 8 | SEARCH_DRAW_GP_RAW);
    bool is_narrow = false;
    struct rng r;
    rng_init(&r, s->spec->seed, number << 8 | SEARCH_DRAW_GP_MOVE);
    size_t n = global_points(s, region, key, &r, ret_points);
    as_status st = AS_OK;
    if (n < FEW)
        st = sampler_is_narrow(s->spec->space, &is_narrow, err);
    if (is_narrow)
        n = 0;
    if (st == AS_OK && is_narrow)
        st = walk_everywhere(s, region, key, ret_points, &n, err);
    *ret_global = n;
    if (st == AS_OK && is_narrow)
        st = walk_near_best(s, region, key, ret_points, &n, err);
    else if (st == AS_OK)
        n += local_points(s, region, &r, ret_points + n * s->enc->n);
    *ret_n = n;
    return st;
}
