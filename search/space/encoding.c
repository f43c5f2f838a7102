/* Configurations to points to features, and back. The place of a level depends on its number alone,
 * and rounding the place finds the level again: so both directions are exact. A continuous float
 * has no levels. Its place is corrected until the formula returns the same double, because a
 * configuration must be recognised as already tried. */
#include "search/space/encoding.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "search/space/value_order.h"

#define HALF_PI 1.57079632679489661923

/* The approximate relative error of continuous_at. */
#define ROUNDING (4 * DBL_EPSILON)

void encoding_free(struct encoding *e)
{
    if (!e)
        return;
    for (size_t i = 0; e->params && i < e->n; i++)
        free(e->params[i].order);
    free(e->params);
    free(e->real_length);
    free(e->dead);
    free(e);
}

/* ---- layout ---- */

/* The first two levels give min and step: level k is min + k step, or min (1 + k step / min). */
static void set_scale(const struct space_param *sp, struct encoded_param *p)
{
    if (param_is_choice(sp) || sp->scale != SCALE_LOG)
        return;
    p->is_log = true;
    p->ratio = sp->kind == PARAM_INT ? (double)sp->integer.step / (double)sp->integer.min
                                     : sp->real.step / sp->real.min;
    p->span = log1p((double)(p->levels - 1) * p->ratio);
}

static encoded_kind kind_of(const struct space_param *sp, uint64_t levels)
{
    if (levels == 1 || (levels == 0 && !(sp->real.max > sp->real.min)))
        return ENCODED_CONSTANT;
    if (levels == 0)
        return ENCODED_CONTINUOUS;
    return param_is_choice(sp) && sp->kind != PARAM_ORDINAL ? ENCODED_CHOICE : ENCODED_LEVELS;
}

/* A number of fewer levels has no scale that matters. */
#define BENT_LEVELS_LEAST 8

static void bend_param(struct encoding *e, const struct bent_number *b)
{
    uint64_t bits;
    memcpy(&bits, &b->rate, sizeof bits);
    e->bends = rng_mix(rng_mix(e->bends, b->param), bits);
    e->params[b->param].bend = b->rate;
    e->params[b->param].bend_span = log1p(fabs(b->rate));
}

/* The real columns of a parameter, with a length scale of their own: returns the first. */
static int add_real(struct encoding *e, bool is_conditional)
{
    int first = (int)e->n_real;
    for (int k = 0; k <= is_conditional; k++)
        e->real_length[e->n_real++] = e->n_groups;
    e->n_groups++;
    return first;
}

static void add_param(struct encoding *e, size_t i)
{
    const struct space_param *sp = &e->space->params[i];
    struct encoded_param *p = &e->params[i];
    uint64_t levels = param_levels(sp);
    bool dies = false, kills = false;
    for (size_t k = 0; k < e->n_dead; k++) {
        dies |= e->dead[k].param == i;
        kills |= e->dead[k].choice == i;
    }
    *p = (struct encoded_param){.kind = kind_of(sp, levels),
                                .is_conditional = sp->n_conds > 0 || dies,
                                .is_parent = sp->is_parent || kills,
                                .real = -1,
                                .order_real = -1,
                                .category = -1,
                                .length = -1};
    p->levels = p->kind == ENCODED_CONSTANT ? 1 : levels;
    e->is_conditional |= p->is_conditional;
    e->has_conditions |= sp->n_conds > 0;
    if (p->kind == ENCODED_CONTINUOUS || p->kind == ENCODED_LEVELS) {
        e->n_continuous += p->kind == ENCODED_CONTINUOUS;
        e->n_numeric++;
        p->length = (int)e->n_groups;
        p->real = add_real(e, p->is_conditional);
    } else if (p->kind == ENCODED_CHOICE) {
        p->category = (int)e->n_category++;
        if (value_order_exists(sp))
            p->order_real = add_real(e, p->is_conditional);
    }
    if (p->kind == ENCODED_LEVELS)
        set_scale(sp, p);
}

bool encoding_may_die(const struct encoding *e, size_t param)
{
    const struct encoded_param *p = &e->params[param];
    return (p->kind == ENCODED_CONTINUOUS || p->kind == ENCODED_LEVELS) &&
           !e->space->params[param].n_conds && !e->space->params[param].is_parent;
}

bool encoding_may_kill(const struct encoding *e, size_t choice)
{
    return e->params[choice].kind == ENCODED_CHOICE && !e->space->params[choice].n_conds;
}

bool encoding_may_bend(const struct encoding *e, size_t param)
{
    const struct encoded_param *p = &e->params[param];
    const struct space_param *sp = &e->space->params[param];
    bool is_number = sp->kind == PARAM_FLOAT || sp->kind == PARAM_INT;
    return is_number && sp->scale == SCALE_LINEAR && !sp->prior && !sp->n_conds && !sp->is_parent &&
           (p->kind == ENCODED_CONTINUOUS ||
            (p->kind == ENCODED_LEVELS && p->levels >= BENT_LEVELS_LEAST));
}

as_status encoding_create(const struct space *space, struct encoding **ret, struct as_err *err)
{
    return encoding_create_with(space, NULL, ret, err);
}

as_status encoding_create_with(const struct space *space, const struct encoding_learned *learned,
                               struct encoding **ret, struct as_err *err)
{
    size_t n_dead = learned ? learned->n_dead : 0;
    AS_AUTO(encoding_freep) struct encoding *e = as_calloc(1, sizeof *e);
    if (!e || !(e->params = as_calloc(space->n, sizeof *e->params)) ||
        !(e->real_length = as_calloc(2 * space->n, sizeof *e->real_length)) ||
        !(e->dead = as_calloc(n_dead, sizeof *e->dead)))
        return as_fail(err, AS_E_NOMEM, "out of memory for an encoding");
    if (n_dead)
        memcpy(e->dead, learned->dead, n_dead * sizeof *e->dead);
    e->n_dead = n_dead;
    e->space = space;
    e->n = space->n;
    for (size_t i = 0; i < e->n; i++)
        add_param(e, i);
    for (size_t i = 0; i < e->n; i++) {
        if (e->params[i].category >= 0)
            e->params[i].length = (int)e->n_groups + e->params[i].category;
        if (e->params[i].order_real < 0)
            continue;
        as_status st = value_order_places(&space->params[i], &e->params[i].order, err);
        if (st < 0)
            return st;
    }
    e->n_varied = e->n_numeric + e->n_category;
    e->n_lengths = e->n_groups + e->n_category;
    for (size_t k = 0; learned && k < learned->n_bent; k++)
        bend_param(e, &learned->bent[k]);
    *ret = as_steal(e);
    return AS_OK;
}

/* ---- places and levels ---- */

static double clamp(double v, double high)
{
    if (!(v > 0)) /* NaN too */
        return 0;
    return v > high ? high : v;
}

static double bend(double rate, double span, double u)
{
    if (rate == 0)
        return u;
    return rate > 0 ? log1p(rate * u) / span : 1 - log1p(rate * (u - 1)) / span;
}

static double unbend(double rate, double span, double place)
{
    if (rate == 0)
        return place;
    return clamp(rate > 0 ? expm1(place * span) / rate : 1 + expm1((1 - place) * span) / rate, 1);
}

double encoding_bend(double rate, double u)
{
    return bend(rate, log1p(fabs(rate)), u);
}

double encoding_unbend(double rate, double place)
{
    return unbend(rate, log1p(fabs(rate)), place);
}

static double level_place(const struct encoded_param *p, double k)
{
    if (p->is_log)
        return log1p(k * p->ratio) / p->span;
    return bend(p->bend, p->bend_span, k / (double)(p->levels - 1));
}

double encoding_place(const struct encoding *e, size_t i, uint64_t k)
{
    const struct encoded_param *p = &e->params[i];
    if (p->kind == ENCODED_CHOICE)
        return (double)k;
    return p->kind == ENCODED_LEVELS ? level_place(p, (double)k) : 0;
}

/* round(v) of v >= 0, without the call: most of the time of a prediction of a few rows would be
 * spent there. Past 2^52 every double is whole. */
static double round_up_half(double v)
{
    if (!(v < 0x1p52))
        return v;
    double whole = (double)(int64_t)v;
    return v - whole >= 0.5 ? whole + 1 : whole;
}

uint64_t encoding_level(const struct encoding *e, size_t i, double place)
{
    const struct encoded_param *p = &e->params[i];
    double last = (double)(p->levels - 1);
    if (p->kind == ENCODED_CHOICE)
        return (uint64_t)clamp(round_up_half(clamp(place, last)), last);
    if (p->kind != ENCODED_LEVELS)
        return 0;
    double u = clamp(place, 1);
    if (!p->is_log && p->bend == 0)
        return (uint64_t)clamp(round_up_half(u * last), last);
    /* nearest on the scale, not by value: the neighbouring level whose place is nearer */
    double at = p->is_log ? expm1(u * p->span) / p->ratio : last * unbend(p->bend, p->bend_span, u);
    double k = clamp(floor(at), last), above = clamp(k + 1, last);
    return (uint64_t)(level_place(p, above) - u <= u - level_place(p, k) ? above : k);
}

/* The real number at a place, before rounding. It equals that of param_decode except for the last
 * bits: pow is more accurate than exp and log, and 1e-4 (1 / 1e-4)^0.75 is 0.1. */
static double continuous_at(const struct space_param *sp, double place)
{
    double u = clamp(place, 1);
    if (u <= 0 || u >= 1 || sp->scale != SCALE_LOG || !isfinite(sp->real.max / sp->real.min))
        return param_decode(sp, u).real;
    return fmin(sp->real.min * pow(sp->real.max / sp->real.min, u), sp->real.max);
}

/* 0.010000000000000005 becomes 0.01, because the difference is a rounding error. A range that holds
 * few doubles keeps them all. */
static double continuous_value(const struct space_param *sp, double place)
{
    double v = continuous_at(sp, place), min = sp->real.min, max = sp->real.max;
    if (v <= min || v >= max)
        return v;
    double size = sp->scale == SCALE_LOG ? v : fmax(fabs(min), fabs(max));
    return fmin(fmax(param_round(v, fmin(ROUNDING * size, 1e-10 * (max - min))), min), max);
}

/* On the document's scale. */
static double straight_place(const struct encoding *e, size_t i, double place)
{
    const struct encoded_param *p = &e->params[i];
    return unbend(p->bend, p->bend_span, clamp(place, 1));
}

static union param_value value_at(const struct encoding *e, size_t i, double place)
{
    const struct space_param *sp = &e->space->params[i];
    if (e->params[i].kind == ENCODED_CONTINUOUS)
        return (union param_value){.real = continuous_value(sp, straight_place(e, i, place))};
    if (param_levels(sp) == 0) /* a constant float */
        return (union param_value){.real = sp->real.min};
    return param_level(sp, encoding_level(e, i, place));
}

/* How many neighbouring places are tried on each side of the place that the formula gives. */
#define NEAR_PLACES 8

/* The place of v. continuous_value returns v there, if it does at any place. Newton steps correct
 * the rounding of the formula; a search of the neighbouring places corrects the rest. */
static double continuous_place(const struct space_param *sp, double v)
{
    double u = param_encode(sp, (union param_value){.real = v});
    double slope = sp->real.max - sp->real.min;
    if (!(u > 0 && u < 1))
        return u;
    if (sp->scale == SCALE_LOG)
        slope = v * (log(sp->real.max) - log(sp->real.min));
    for (int k = 0; k < 4; k++) {
        double off = v - continuous_at(sp, u);
        if (off == 0)
            return u;
        u = clamp(u + off / slope, 1);
    }
    bool is_short = param_round(v, HUGE_VAL) == v; /* then v may be a rounded value */
    double below = u, above = u;
    for (int k = 0; k < NEAR_PLACES; k++) {
        if ((is_short ? continuous_value(sp, below) : continuous_at(sp, below)) == v)
            return below;
        if ((is_short ? continuous_value(sp, above) : continuous_at(sp, above)) == v)
            return above;
        below = clamp(nextafter(below, -1), 1);
        above = clamp(nextafter(above, 2), 1);
    }
    return u;
}

static double middle_place(const struct encoding *e, size_t i)
{
    switch (e->params[i].kind) {
    case ENCODED_CONTINUOUS:
        return 0.5;
    case ENCODED_LEVELS:
        return encoding_place(e, i, encoding_level(e, i, 0.5));
    default:
        return 0;
    }
}

/* ---- configurations ---- */

void encoding_from_config(const struct encoding *e, const struct config *c, double *point)
{
    for (size_t i = 0; i < e->n; i++) {
        const struct space_param *sp = &e->space->params[i];
        union param_value v = c->entries[i].value;
        if (!c->entries[i].active || e->params[i].kind == ENCODED_CONSTANT)
            point[i] = middle_place(e, i);
        else if (e->params[i].kind == ENCODED_CONTINUOUS)
            point[i] =
                bend(e->params[i].bend, e->params[i].bend_span, continuous_place(sp, v.real));
        else
            point[i] = encoding_place(e, i, param_level_of(sp, v));
    }
}

void encoding_to_config(const struct encoding *e, const double *point, struct config *c)
{
    for (size_t i = 0; i < e->n; i++)
        c->entries[i].value = value_at(e, i, point[i]);
    config_settle(e->space, c);
}

/* The level that param_decode gives at u in [0,1]. Levels on a linear scale need no detour over a
 * value, except those of a float, whose values are rounded. */
static uint64_t level_from_unit(const struct space_param *sp, const struct encoded_param *p,
                                double u)
{
    if (p->is_log || sp->kind == PARAM_FLOAT)
        return param_level_of(sp, param_decode(sp, u));
    double k = u * (double)p->levels, last = (double)(p->levels - 1);
    return k >= last ? p->levels - 1 : (uint64_t)k;
}

void encoding_from_unit(const struct encoding *e, const double *u, double *point)
{
    for (size_t i = 0; i < e->n; i++) {
        const struct space_param *sp = &e->space->params[i];
        if (e->params[i].kind == ENCODED_CONTINUOUS)
            point[i] = clamp(u[i], 1);
        else if (e->params[i].kind == ENCODED_CONSTANT)
            point[i] = 0;
        else if (e->params[i].bend != 0)
            point[i] = encoding_place(e, i, encoding_level(e, i, u[i]));
        else
            point[i] = encoding_place(e, i, level_from_unit(sp, &e->params[i], clamp(u[i], 1)));
    }
}

void encoding_snap(const struct encoding *e, double *point)
{
    for (size_t i = 0; i < e->n; i++)
        point[i] = e->params[i].kind == ENCODED_CONTINUOUS
                       ? clamp(point[i], 1)
                       : encoding_place(e, i, encoding_level(e, i, point[i]));
}

static bool wants_active(const struct encoding *e, const double *point, const bool *active,
                         size_t i)
{
    const struct space_param *sp = &e->space->params[i];
    for (size_t k = 0; k < sp->n_conds; k++) {
        size_t parent = sp->conds[k].parent;
        if (!active[parent] || !cond_holds(&e->space->params[parent], &sp->conds[k],
                                           value_at(e, parent, point[parent])))
            return false;
    }
    for (size_t k = 0; k < e->n_dead; k++)
        if (e->dead[k].param == i &&
            encoding_level(e, e->dead[k].choice, point[e->dead[k].choice]) == e->dead[k].level)
            return false;
    return true;
}

void encoding_active(const struct encoding *e, const double *point, bool *active)
{
    if (!e->is_conditional) {
        memset(active, true, e->n * sizeof *active);
        return;
    }
    for (size_t k = 0; k < e->n; k++)
        active[e->space->order[k]] = wants_active(e, point, active, e->space->order[k]);
}

bool encoding_same(const struct encoding *e, const double *a, const double *b, double tolerance)
{
    bool in_a[SPACE_MAX_PARAMS], in_b[SPACE_MAX_PARAMS];
    encoding_active(e, a, in_a);
    encoding_active(e, b, in_b);
    for (size_t i = 0; i < e->n; i++) {
        if (in_a[i] != in_b[i])
            return false;
        if (!in_a[i])
            continue;
        if (e->params[i].kind == ENCODED_CONTINUOUS
                ? !(fabs(clamp(a[i], 1) - clamp(b[i], 1)) <= tolerance)
                : encoding_level(e, i, a[i]) != encoding_level(e, i, b[i]))
            return false;
    }
    return true;
}

bool encoding_allows(const struct encoding *e, const double *point, struct config *scratch)
{
    if (!space_is_constrained(e->space))
        return true;
    encoding_to_config(e, point, scratch);
    return space_allows(e->space, scratch);
}

/* ---- neighbours ---- */

size_t encoding_neighbours(const struct encoding *e, size_t i, double place, double *ret,
                           size_t cap)
{
    const struct encoded_param *p = &e->params[i];
    if (p->kind != ENCODED_LEVELS && p->kind != ENCODED_CHOICE)
        return 0;
    uint64_t k = encoding_level(e, i, place);
    size_t n = 0;
    if (p->levels - 1 <= cap || p->kind == ENCODED_CHOICE) {
        for (uint64_t step = 1; step < p->levels && n < cap; step++)
            ret[n++] = encoding_place(e, i, (k + step) % p->levels);
        return n;
    }
    for (uint64_t step = 1; step < p->levels && n < cap; step *= 2) {
        if (k >= step)
            ret[n++] = encoding_place(e, i, k - step);
        if (p->levels - 1 - k >= step && n < cap)
            ret[n++] = encoding_place(e, i, k + step);
    }
    return n;
}

/* ---- features ---- */

/* The real columns that begin with x, at a place in [0,1]. */
static void real_features(bool is_conditional, double place, bool active, double *x)
{
    if (!is_conditional) {
        x[0] = place;
        return;
    }
    double angle = HALF_PI * place;
    x[0] = active ? sin(angle) : 0;
    x[1] = active ? cos(angle) : 0;
}

/* The features of parameter i at a place. */
static void param_features(const struct encoding *e, size_t i, double place, bool active, double *x,
                           int32_t *z)
{
    const struct encoded_param *p = &e->params[i];
    if (p->category >= 0) {
        uint64_t level = encoding_level(e, i, place);
        z[p->category] = active ? (int32_t)level : -1;
        if (p->order_real >= 0)
            real_features(p->is_conditional, p->order[level], active, x + p->order_real);
    } else if (p->real >= 0) {
        real_features(p->is_conditional, clamp(place, 1), active, x + p->real);
    }
}

void encoding_features(const struct encoding *e, const double *point, double *x, int32_t *z)
{
    bool active[SPACE_MAX_PARAMS];
    encoding_active(e, point, active);
    for (size_t i = 0; i < e->n; i++)
        param_features(e, i, point[i], active[i], x, z);
}

void encoding_move_feature(const struct encoding *e, const double *point, size_t i, double *x,
                           int32_t *z)
{
    if (e->params[i].is_parent)
        encoding_features(e, point, x, z);
    else
        param_features(e, i, point[i], true, x, z);
}

void encoding_pull_gradient(const struct encoding *e, const double *point, const double *dx,
                            double *du)
{
    bool active[SPACE_MAX_PARAMS];
    encoding_active(e, point, active);
    for (size_t i = 0; i < e->n; i++) {
        const struct encoded_param *p = &e->params[i];
        du[i] = 0;
        if (p->real < 0 || !active[i])
            continue;
        du[i] = dx[p->real];
        if (p->is_conditional) {
            double angle = HALF_PI * clamp(point[i], 1);
            du[i] = HALF_PI * (cos(angle) * dx[p->real] - sin(angle) * dx[p->real + 1]);
        }
    }
}
