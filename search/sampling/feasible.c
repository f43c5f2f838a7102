/* A place in the unit cube for each parameter stands for a configuration (param_decode, then
 * config_settle), so that floats, levels and choices are moved by the same code.
 *
 * The descent takes one parameter after the other and tries places all over its range, then ever
 * closer to the best. It stops where no parameter alone gets closer to what is allowed, and begins
 * anew from another start. */
#include "search/sampling/feasible.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "search/problem/random_stream.h"

#define STARTS 64     /* of the descent; the first few are corners and the centre */
#define SWEEPS 40     /* over all parameters, of one descent */
#define PLACES 16     /* that a descent tries over a parameter's range, */
#define HALVINGS 30   /* and ever closer to the best of them */
#define SHRINKS 48    /* of a slice: then it is as small as a double's rounding */
#define CHOICES 64    /* at most so many choices are tried one by one */
#define DESCENT_KEY 0 /* of the starts that are the same for every sweep */

struct feasible_walk {
    const struct space *space;
    struct rng rng;
    double *u;         /* [n]: where it stands */
    double *direction; /* [n]: of a line */
    double *probe;     /* [n]: a place on it */
    struct config *at; /* of u */
    struct config *scratch;
};

static void decode(const struct space *s, const double *u, struct config *c)
{
    for (size_t i = 0; i < s->n; i++)
        c->entries[i].value = param_decode(&s->params[i], u[i]);
    config_settle(s, c);
}

static double excess(struct feasible_walk *w, const double *u)
{
    decode(w->space, u, w->scratch);
    return space_excess(w->space, w->scratch);
}

/* ---- the descent ---- */

/* The middle of the share of the unit interval that level k of n owns. */
static double place_of(size_t k, size_t n)
{
    return ((double)k + 0.5) / (double)n;
}

/* Try a place of parameter i; keep it if it is closer. */
static void try_place(struct feasible_walk *w, size_t i, double place, double *best)
{
    double before = w->u[i];
    if (*best == 0 || place == before)
        return;
    w->u[i] = place;
    double e = excess(w, w->u);
    if (e < *best)
        *best = e;
    else
        w->u[i] = before;
}

static void descend_param(struct feasible_walk *w, size_t i, double *best)
{
    const struct space_param *p = &w->space->params[i];
    if (param_is_choice(p)) {
        size_t n = (size_t)param_levels(p), tried = n < CHOICES ? n : CHOICES;
        for (size_t k = 0; k < tried; k++)
            try_place(w, i, place_of(k * n / tried, n), best);
        return;
    }
    for (size_t k = 0; k <= PLACES; k++)
        try_place(w, i, (double)k / PLACES, best);
    double step = 0.5 / PLACES;
    for (size_t k = 0; k<HALVINGS && * best> 0; k++, step /= 2) {
        double from = w->u[i];
        try_place(w, i, fmin(1, from + step), best);
        try_place(w, i, fmax(0, from - step), best);
    }
}

/* From w->u. Returns whether it arrived. */
static bool descend(struct feasible_walk *w)
{
    double best = excess(w, w->u);
    for (size_t k = 0; k < SWEEPS && best > 0; k++) {
        double before = best;
        for (size_t i = 0; i < w->space->n && best > 0; i++)
            descend_param(w, i, &best);
        if (best == before)
            return false;
    }
    return best == 0;
}

/* Start k: corners and the centre first, then random places. */
static void set_start(struct feasible_walk *w, size_t k, struct rng *r)
{
    static const double corners[] = {0, 1, 0.5};
    for (size_t i = 0; i < w->space->n; i++)
        w->u[i] = k < AS_ARRAY_LEN(corners) ? corners[k] : rng_uniform(r);
}

static bool find_start(struct feasible_walk *w)
{
    struct rng r;
    set_start(w, STARTS, &w->rng);
    if (descend(w))
        return true;
    rng_init(&r, DESCENT_KEY, SEARCH_DRAW_FEASIBLE);
    for (size_t k = 0; k < STARTS; k++) {
        set_start(w, k, &r);
        if (descend(w))
            return true;
    }
    return false;
}

/* ---- moves ---- */

static bool is_allowed(struct feasible_walk *w, const double *u)
{
    decode(w->space, u, w->scratch);
    return space_allows(w->space, w->scratch);
}

/* From the place of t = 0 to an allowed place u + t direction, uniform over the allowed part of the
 * interval low..high that shrinking does not cut off. */
static void move_along(struct feasible_walk *w, double low, double high)
{
    size_t n = w->space->n;
    for (size_t k = 0; k < SHRINKS; k++) {
        double t = low + rng_uniform(&w->rng) * (high - low);
        for (size_t i = 0; i < n; i++)
            w->probe[i] = fmin(1, fmax(0, w->u[i] + t * w->direction[i]));
        if (is_allowed(w, w->probe)) {
            memcpy(w->u, w->probe, n * sizeof *w->u);
            return;
        }
        if (t < 0)
            low = t;
        else
            high = t;
    }
}

static void move_choice(struct feasible_walk *w, size_t i)
{
    const struct space_param *p = &w->space->params[i];
    size_t n = (size_t)param_levels(p);
    double before = w->u[i];
    if (n < 2)
        return;
    w->u[i] = place_of((size_t)rng_below(&w->rng, n), n);
    if (!is_allowed(w, w->u))
        w->u[i] = before;
}

static void move_param(struct feasible_walk *w, size_t i)
{
    if (param_is_choice(&w->space->params[i])) {
        move_choice(w, i);
        return;
    }
    memset(w->direction, 0, w->space->n * sizeof *w->direction);
    w->direction[i] = 1;
    move_along(w, -w->u[i], 1 - w->u[i]);
}

/* Along a random direction: of all numeric parameters, or of two. Two go past constraints such as
 * a + b == 1, which no parameter alone can follow. Not further than `most` times the direction,
 * which is normal in each parameter. */
static void move_on_line(struct feasible_walk *w, bool of_two, double most)
{
    const struct space *s = w->space;
    size_t one = rng_below(&w->rng, s->n), other = rng_below(&w->rng, s->n);
    double low = -most, high = most;
    for (size_t i = 0; i < s->n; i++) {
        double d = rng_normal(&w->rng);
        bool moves = !param_is_choice(&s->params[i]) && (!of_two || i == one || i == other);
        w->direction[i] = d = moves ? d : 0;
        if (d == 0)
            continue;
        double a = -w->u[i] / d, b = (1 - w->u[i]) / d; /* where it leaves the cube */
        low = fmax(low, fmin(a, b));
        high = fmin(high, fmax(a, b));
    }
    if (low < high && isfinite(low) && isfinite(high))
        move_along(w, low, high);
}

void feasible_move(struct feasible_walk *w, size_t rounds)
{
    for (size_t k = 0; k < rounds; k++) {
        for (size_t i = 0; i < w->space->n; i++)
            move_param(w, i);
        move_on_line(w, false, INFINITY);
        move_on_line(w, true, INFINITY);
    }
    decode(w->space, w->u, w->at);
}

void feasible_nudge(struct feasible_walk *w, double width)
{
    move_on_line(w, rng_below(&w->rng, 2), width);
    decode(w->space, w->u, w->at);
}

/* ---- life ---- */

void feasible_free(struct feasible_walk *w)
{
    if (!w)
        return;
    free(w->u);
    free(w->direction);
    free(w->probe);
    config_free(w->at);
    config_free(w->scratch);
    free(w);
}

static as_status create(const struct space *space, uint64_t key, uint64_t stream,
                        struct feasible_walk **ret, struct as_err *err)
{
    AS_AUTO(feasible_freep) struct feasible_walk *w = as_calloc(1, sizeof *w);
    if (!w)
        return as_fail_nomem(err);
    w->space = space;
    w->u = as_calloc(space->n, sizeof *w->u);
    w->direction = as_calloc(space->n, sizeof *w->direction);
    w->probe = as_calloc(space->n, sizeof *w->probe);
    w->at = config_create(space);
    w->scratch = config_create(space);
    if (!w->u || !w->direction || !w->probe || !w->at || !w->scratch)
        return as_fail_nomem(err);
    rng_init(&w->rng, key, stream << 8 | SEARCH_DRAW_FEASIBLE);
    *ret = as_steal(w);
    return AS_OK;
}

as_status feasible_start(const struct space *space, uint64_t key, uint64_t stream,
                         struct feasible_walk **ret, struct as_err *err)
{
    AS_AUTO(feasible_freep) struct feasible_walk *w = NULL;
    as_status st = create(space, key, stream, &w, err);
    if (st < 0)
        return st;
    if (!find_start(w))
        return as_fail(err, AS_E_NOT_FOUND, "no configuration that is allowed was found");
    feasible_move(w, FEASIBLE_MIX_ROUNDS);
    *ret = as_steal(w);
    return AS_OK;
}

as_status feasible_stand(const struct space *space, const double *unit, uint64_t key,
                         uint64_t stream, struct feasible_walk **ret, struct as_err *err)
{
    AS_AUTO(feasible_freep) struct feasible_walk *w = NULL;
    as_status st = create(space, key, stream, &w, err);
    if (st < 0)
        return st;
    memcpy(w->u, unit, space->n * sizeof *w->u);
    decode(space, w->u, w->at);
    *ret = as_steal(w);
    return AS_OK;
}

const struct config *feasible_config(const struct feasible_walk *w)
{
    return w->at;
}

const double *feasible_unit(const struct feasible_walk *w)
{
    return w->u;
}
