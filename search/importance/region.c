/* The part of a space where a parameter is active (region.h).
 *
 * The unit interval of each ancestor is divided into cells. A cell belongs to the region if the
 * value at its middle meets all conditions. A uniform number is mapped to one of the remaining
 * cells and to a place in it, so uniform numbers stay uniform. Cells are used instead of exact
 * intervals because the same code then serves lists, ranges and every scale. The error is at most
 * one cell. */
#include "search/importance/region.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* The number of cells of the unit interval. A cell belongs to the region if its middle does. */
#define CELLS 4096

struct holding {
    uint16_t *cells; /* owned: the cells that are left; NULL: the parameter is free */
    size_t n;
    double only; /* n == 0: the remaining values own less than a cell; this is one of them */
};

struct region {
    const struct space *space; /* borrowed */
    struct holding *held;      /* owned: one for each parameter */
    size_t n_held;
};

void region_free(struct region *r)
{
    if (!r)
        return;
    for (size_t i = 0; r->held && i < r->space->n; i++)
        free(r->held[i].cells);
    free(r->held);
    free(r);
}

bool region_is_all(const struct region *r)
{
    return r->n_held == 0;
}

bool region_equal(const struct region *a, const struct region *b)
{
    for (size_t i = 0; i < a->space->n; i++) {
        const struct holding *p = &a->held[i], *q = &b->held[i];
        if (!p->cells != !q->cells || p->n != q->n || p->only != q->only)
            return false;
        if (p->cells && q->cells && memcmp(p->cells, q->cells, p->n * sizeof *p->cells) != 0)
            return false;
    }
    return true;
}

/* ---- creation ---- */

/* Conditions that hold together in the region. */
struct conds {
    const struct cond **list; /* owned */
    size_t n, cap;
    bool *seen; /* owned: parameters whose conditions are in the list */
};

static void conds_done(struct conds *c)
{
    free(c->list);
    free(c->seen);
}

/* Parameter i's conditions, and those of the parameters they name. A list that grows while it is
 * walked: no recursion, and no ancestor twice. */
static as_status collect_conditions(const struct space *s, size_t i, struct conds *c,
                                    struct as_err *err)
{
    for (size_t next = 0;; i = c->list[next++]->parent) {
        const struct space_param *p = &s->params[i];
        for (size_t k = 0; k < p->n_conds && !c->seen[i]; k++) {
            as_status st = as_reserve_one(&c->list, c->n, &c->cap, sizeof *c->list, err);
            if (st < 0)
                return st;
            c->list[c->n++] = &p->conds[k];
        }
        c->seen[i] = true;
        if (next == c->n)
            return AS_OK;
    }
}

static bool all_hold(const struct space_param *p, const struct cond *const *conds, size_t n,
                     union param_value v)
{
    for (size_t k = 0; k < n; k++)
        if (!cond_holds(p, conds[k], v))
            return false;
    return true;
}

/* Restrict one parameter to the values that all n conditions on it allow. */
static as_status restrict_parameter(struct holding *h, const struct space_param *p,
                                    const struct cond *const *conds, size_t n, struct as_err *err)
{
    union param_value v;
    h->cells = as_calloc(CELLS, sizeof *h->cells);
    if (!h->cells)
        return as_fail(err, AS_E_NOMEM, "out of memory for the conditions of a space");
    for (size_t k = 0; k < CELLS; k++)
        if (all_hold(p, conds, n, param_decode(p, ((double)k + 0.5) / CELLS)))
            h->cells[h->n++] = (uint16_t)k;
    if (h->n == 0 && cond_meet(p, conds, n, &v))
        h->only = param_encode(p, v);
    return AS_OK;
}

as_status region_create(const struct space *s, size_t i, struct region **ret, struct as_err *err)
{
    AS_AUTO(region_freep) struct region *r = as_calloc(1, sizeof *r);
    AS_AUTO(conds_done) struct conds c = {.seen = as_calloc(s->n, sizeof *c.seen)};
    if (r)
        r->space = s;
    if (!r || !c.seen || !(r->held = as_calloc(s->n, sizeof *r->held)))
        return as_fail(err, AS_E_NOMEM, "out of memory for the conditions of a space");
    as_status st = collect_conditions(s, i, &c, err);
    if (st < 0)
        return st;
    AS_AUTO(as_freep) const struct cond **on_one = as_calloc(c.n, sizeof *on_one);
    if (!on_one)
        return as_fail(err, AS_E_NOMEM, "out of memory for the conditions of a space");
    for (size_t a = 0; a < s->n; a++) {
        size_t n = 0;
        for (size_t k = 0; k < c.n; k++)
            if (c.list[k]->parent == a)
                on_one[n++] = c.list[k];
        if (n == 0)
            continue;
        if ((st = restrict_parameter(&r->held[a], &s->params[a], on_one, n, err)) < 0)
            return st;
        r->n_held++;
    }
    *ret = as_steal(r);
    return AS_OK;
}

/* ---- the map ---- */

/* A cell at the edge may contain values from both sides of the edge. Then all of it maps to its
 * middle. The neighbouring cells show whether a cell is at the edge. */
static double map_one(const struct holding *h, double u)
{
    double place = u * (double)h->n;
    size_t at = (size_t)fmin(floor(place), (double)(h->n - 1)), cell = h->cells[at];
    bool has_left = cell == 0 || (at > 0 && h->cells[at - 1] + 1u == cell);
    bool has_right = cell == CELLS - 1 || (at + 1 < h->n && h->cells[at + 1] == cell + 1u);
    double part = has_left && has_right ? place - (double)at : 0.5;
    return ((double)cell + fmin(part, 1 - 1e-9)) / CELLS;
}

void region_map(const struct region *r, double *u)
{
    for (size_t i = 0; i < r->space->n; i++) {
        const struct holding *h = &r->held[i];
        if (h->cells)
            u[i] = h->n > 0 ? map_one(h, u[i]) : h->only;
    }
}
