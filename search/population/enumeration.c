/* Depth-first search over the levels of the active parameters, parents before their children. Tried
 * configurations are looked up by a hash of their active levels. */
#include "search/population/enumeration.h"

#include <string.h>

#include "base/rng.h"

/* A tried configuration, sorted by a hash of its active levels. */
struct known {
    uint64_t hash;
    size_t trial;
};

struct enumeration {
    const struct training_set *s;
    struct known *known; /* [s->n] ascending */
    double *point;
    bool *active;
    size_t max;
    double *ret;
    struct enumerated out;
    uint64_t visits;
};

uint64_t enumeration_bound(const struct encoding *e)
{
    uint64_t n = 1;
    for (size_t i = 0; i < e->n; i++) {
        uint64_t levels = e->params[i].levels;
        if (e->params[i].kind == ENCODED_CONTINUOUS || __builtin_mul_overflow(n, levels, &n))
            return UINT64_MAX;
    }
    return n;
}

static uint64_t hash_of(const struct encoding *e, const double *point, bool *active)
{
    uint64_t h = 0;
    encoding_active(e, point, active);
    for (size_t i = 0; i < e->n; i++) {
        bool counts = active[i] && e->params[i].kind != ENCODED_CONSTANT;
        h = rng_mix(h, counts ? 1 + encoding_level(e, i, point[i]) : 0);
    }
    return h;
}

static int by_hash(const void *a, const void *b)
{
    const struct known *p = a, *q = b;
    return (p->hash > q->hash) - (p->hash < q->hash);
}

static bool is_known(struct enumeration *w)
{
    const struct encoding *e = w->s->enc;
    uint64_t h = hash_of(e, w->point, w->active);
    size_t lo = 0, hi = w->s->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (w->known[mid].hash < h)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < w->s->n && w->known[lo].hash == h; lo++) {
        if (encoding_same(e, w->point, training_set_point(w->s, w->known[lo].trial), 0))
            return true;
    }
    return false;
}

/* Visit one configuration. False: stop the search. */
static bool visit_configuration(struct enumeration *w)
{
    size_t d = w->s->enc->n;
    if (++w->visits > ENUMERATION_MAX_VISITS)
        return false;
    if (is_known(w) || !encoding_allows(w->s->enc, w->point, w->s->scratch))
        return true;
    if (w->out.n == w->max)
        return false;
    memcpy(w->ret + w->out.n++ * d, w->point, d * sizeof *w->point);
    return true;
}

/* Run through the levels of the parameter at `depth` and of all after it. The recursion is at most
 * 256 deep, the largest number of parameters. */
static bool descend_levels(struct enumeration *w, size_t depth)
{
    const struct encoding *e = w->s->enc;
    if (depth == e->n)
        return visit_configuration(w);
    size_t i = e->space->order[depth];
    encoding_active(e, w->point, w->active);
    if (!w->active[i] || e->params[i].kind == ENCODED_CONSTANT)
        return descend_levels(w, depth + 1);
    for (uint64_t k = 0; k < e->params[i].levels; k++) {
        w->point[i] = encoding_place(e, i, k);
        if (!descend_levels(w, depth + 1))
            return false;
    }
    return true;
}

as_status enumerate_untried(const struct training_set *s, size_t max, double *ret_points,
                            struct enumerated *ret, struct as_err *err)
{
    const struct encoding *e = s->enc;
    AS_AUTO(as_freep) struct known *known = as_calloc(s->n, sizeof *known);
    AS_AUTO(as_freep) double *point = as_calloc(e->n, sizeof *point);
    AS_AUTO(as_freep) bool *active = as_calloc(e->n, sizeof *active);
    if (!known || !point || !active)
        return as_fail(err, AS_E_NOMEM, "out of memory for an enumeration of a space");
    struct enumeration w = {
        .s = s, .known = known, .point = point, .active = active, .max = max, .ret = ret_points};
    for (size_t i = 0; i < s->n; i++)
        known[i] = (struct known){hash_of(e, training_set_point(s, i), active), i};
    qsort(known, s->n, sizeof *known, by_hash);
    if (enumeration_bound(e) != UINT64_MAX || e->n_continuous == 0)
        w.out.complete = descend_levels(&w, 0);
    *ret = w.out;
    return AS_OK;
}
