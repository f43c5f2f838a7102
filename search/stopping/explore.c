#include "search/stopping/explore.h"

#include <math.h>

#include "base/rng.h"
#include "search/problem/random_stream.h"

/* The draws of a parameter in one try; there is room for those that are rejected. */
static struct rng stream_of(uint64_t seed, uint64_t number, uint64_t draw, size_t i)
{
    struct rng r;
    rng_init(&r, seed, number << 8 | SEARCH_DRAW_EXPLORE);
    r.lo = draw << 24 | (uint64_t)i << 16;
    return r;
}

static union param_value draw_anew(const struct space_param *p, struct rng *r)
{
    uint64_t levels = param_levels(p);
    if (levels && (param_is_choice(p) || p->scale == SCALE_LINEAR))
        return param_level(p, rng_below(r, levels));
    return param_decode(p, rng_uniform(r));
}

/* How far a factor moves a value in the unit interval. */
static double shift_of(const struct space_param *p, double factor)
{
    if (param_is_choice(p) || p->scale == SCALE_LINEAR)
        return factor - 1;
    double width = p->kind == PARAM_INT ? log((double)p->integer.max) - log((double)p->integer.min)
                                        : log(p->real.max) - log(p->real.min);
    return width > 0 ? log(factor) / width : 0;
}

/* The next level in this direction; the same where there is none. */
static union param_value next_level(const struct space_param *p, union param_value v, bool is_up)
{
    uint64_t k = param_level_of(p, v), n = param_levels(p);
    return param_level(p, is_up ? (k + 1 < n ? k + 1 : k) : (k > 0 ? k - 1 : k));
}

static union param_value perturb(const struct space_param *p, union param_value v, bool is_up,
                                 double factor)
{
    if (p->kind == PARAM_CATEGORICAL || p->kind == PARAM_BOOL)
        return v;
    double u = param_encode(p, v) + shift_of(p, factor);
    union param_value moved = param_decode(p, u < 0 ? 0 : u > 1 ? 1 : u);
    return param_levels(p) > 0 && param_compare(p, moved, v) == 0 ? next_level(p, v, is_up) : moved;
}

/* A parameter of a fork, whatever the others are. */
static union param_value change(const struct space_param *p, const struct pbt_spec *spec,
                                union param_value v, struct rng *r)
{
    if (rng_uniform(r) < spec->resample)
        return draw_anew(p, r);
    bool is_up = rng_u32(r) & 1;
    return perturb(p, v, is_up, is_up ? spec->up : spec->down);
}

static void draw_fork(const struct space *s, const struct pbt_spec *p, uint64_t seed,
                      uint64_t number, uint64_t draw, const struct config *parent, struct config *c)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct config_entry *from = &parent->entries[i];
        struct rng r = stream_of(seed, number, draw, i);
        c->entries[i].value = !from->active        ? draw_anew(&s->params[i], &r)
                              : pbt_explores(p, i) ? change(&s->params[i], p, from->value, &r)
                                                   : from->value;
    }
    config_settle(s, c);
}

as_status explore(const struct space *s, const struct pbt_spec *p, uint64_t seed, uint64_t number,
                  const struct config *parent, struct config **ret, struct as_err *err)
{
    AS_AUTO(config_freep) struct config *c = config_create(s);
    if (!c)
        return as_fail_nomem(err);
    for (uint64_t draw = 0; draw < EXPLORE_DRAWS; draw++) {
        draw_fork(s, p, seed, number, draw, parent, c);
        if (!space_allows(s, c))
            continue;
        *ret = as_steal(c);
        return AS_OK;
    }
    *ret = config_copy(parent);
    return *ret ? AS_OK : as_fail_nomem(err);
}
