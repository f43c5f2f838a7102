/* The point of a suggestion by the models of all trials: where the row of the schedule looks for
 * it, found by the acquisition. */
#include "search/gp/gp_priv.h"

#include <math.h>
#include <string.h>

#include "search/gp/basin.h"
#include "search/gp/crossing.h"
#include "search/gp/nearby.h"
#include "search/gp/quadratic.h"

/* Every second trial of a branch is a crossing, and each one of a branch that was left. */
static bool crosses(struct gp_ask *a)
{
    const struct branch *b = &a->branch;
    size_t n = b->n_ended + b->n_pending;
    if (!b->is_revisit && n % 2 == 0)
        return false;
    return crossing_point(a->set, b, a->number, b->is_revisit || n % 4 == 1, a->point);
}

/* In the box of the basin, or anywhere if nothing untried is allowed there. box: 2 enc->n. */
static as_status find_in_basin(struct gp_ask *a, struct gp_optimizer_problem *p, double *box,
                               struct as_err *err)
{
    double *upper = box + a->set->enc->n;
    basin_box(a->set, a->basin, box, upper);
    p->region = (struct gp_region){box, upper, training_set_point(a->set, a->basin), NULL};
    as_status st = gp_optimize(p, &a->cache->optimizer, a->point, &a->found, err);
    if (st < 0 || a->found.is_found)
        return st;
    a->basin = TRAINING_SET_NONE;
    p->region = (struct gp_region){0};
    return gp_optimize(p, &a->cache->optimizer, a->point, &a->found, err);
}

/* Where the acquisition looks: in the row's branch, if it has one; there or anywhere with few
 * numbers free around the best trial; else in the trust region, which no branch has.
 * box: 2 enc->n. */
static struct gp_region choose_region(struct gp_ask *a, double *box)
{
    const struct training_set *s = a->set;
    bool in_branch = a->row->point == POINT_BRANCH;
    size_t centre = in_branch ? a->branch.best : s->best;
    double *upper = box + s->enc->n;
    struct gp_region region = {.branch = in_branch ? &a->branch : NULL};
    if (centre == TRAINING_SET_NONE)
        return region;
    a->free = free_numbers_draw(s, gp_state_theta(a, "s0"), a->number, in_branch);
    if (a->free.n)
        free_numbers_box(&a->free, s, centre, box, upper);
    else if (a->trust.is_on && !in_branch)
        trust_region_box(&a->trust, s, a->models[0].model, box, upper);
    else
        return region;
    region.lower = box;
    region.upper = upper;
    region.centre = training_set_point(s, centre);
    return region;
}

static as_status optimize_point(struct gp_ask *a, struct as_err *err)
{
    size_t d = a->set->enc->n;
    AS_AUTO(as_freep) double *box = as_calloc(2 * d, sizeof *box);
    if (!box)
        return as_fail_nomem(err);
    struct gp_optimizer_problem p = {
        .set = a->set, .acquisition = &a->acquisition, .models = a->models, .number = a->number};
    p.priors = a->priors.any ? &a->priors : NULL;
    if (a->row->point == POINT_BASIN)
        return find_in_basin(a, &p, box, err);
    if (a->row->point == POINT_REPEAT) {
        const struct training_set *s = a->set;
        memcpy(a->point, training_set_point(s, s->best), d * sizeof *a->point);
        a->is_repeat = true;
        return gp_describe(&p, &a->cache->optimizer, a->point, &a->found, err);
    }
    if (a->row->point == POINT_NEARBY && nearby_point(a->set, a->number, a->point)) {
        a->is_nearby = true;
        return gp_describe(&p, &a->cache->optimizer, a->point, &a->found, err);
    }
    if (a->row->point == POINT_BRANCH && crosses(a)) {
        a->is_crossing = true;
        return gp_describe(&p, &a->cache->optimizer, a->point, &a->found, err);
    }
    p.region = choose_region(a, box);
    return gp_optimize(&p, &a->cache->optimizer, a->point, &a->found, err);
}

/* If the schedule says so, use the minimum of a quadratic when it predicts best. */
static as_status try_quadratic(struct gp_ask *a, struct as_err *err)
{
    struct gp_quadratic q;
    const struct surrogate *m = &a->models[0];
    if (a->row->point != POINT_QUADRATIC || a->acquisition.n_limits)
        return AS_OK;
    as_status st = gp_quadratic_step(a->set, m, a->point, &q, err);
    if (st < 0 || !q.is_found)
        return st;
    a->is_quadratic = true;
    a->found = (struct gp_found){.is_found = true, .value = q.gain, .runner_up = NAN};
    a->found.mean[0] = surrogate_forward(m, q.mean);
    a->found.sd[0] = q.deviation;
    return AS_OK;
}

as_status gp_find_point(struct gp_ask *a, struct as_err *err)
{
    as_status st = try_quadratic(a, err);
    return st < 0 || a->is_quadratic ? st : optimize_point(a, err);
}
