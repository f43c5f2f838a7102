/* Non-dominated sets and the reference point (pareto.h).
 *
 * Points are sorted first, so that a dominating point comes before every point that it dominates.
 * One pass then suffices: a point is kept if no kept point dominates it. For up to three objectives
 * a sorted front of two costs answers this in O(log n). For four objectives the kept points are
 * scanned, newest first. Copies share the fate of their first one, because equal points do not
 * dominate each other. */
#include "search/pareto/pareto.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "search/pareto/front2d_priv.h"

#define MAX_M GP_PARETO_MAX_OBJECTIVES

/* A point as costs; unused objectives are 0. */
struct entry {
    double cost[MAX_M];
    size_t index;
};

static double cost_of(double value, const bool *maximize, size_t k)
{
    return maximize && maximize[k] ? -value : value;
}

bool gp_pareto_dominates(const double *a, const double *b, size_t m, const bool *maximize)
{
    bool better = false;
    for (size_t k = 0; k < m; k++) {
        double ca = cost_of(a[k], maximize, k), cb = cost_of(b[k], maximize, k);
        if (!(ca <= cb))
            return false;
        better = better || ca < cb;
    }
    return better;
}

/* Compare objective by objective, then by index: a point that dominates another comes before it. */
static int compare_entries(const void *pa, const void *pb)
{
    const struct entry *a = pa, *b = pb;
    for (size_t k = 0; k < MAX_M; k++)
        if (a->cost[k] != b->cost[k])
            return a->cost[k] < b->cost[k] ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

static bool same_costs(const struct entry *a, const struct entry *b)
{
    for (size_t k = 0; k < MAX_M; k++)
        if (a->cost[k] != b->cost[k])
            return false;
    return true;
}

static as_status read_entries(const double *values, size_t n, size_t m, const bool *maximize,
                              struct entry *entries, struct as_err *err)
{
    for (size_t i = 0; i < n; i++) {
        entries[i] = (struct entry){.index = i};
        for (size_t k = 0; k < m; k++) {
            double v = values[i * m + k];
            if (!isfinite(v))
                return as_fail(err, AS_E_INVAL,
                               "objective %zu of point %zu is %g, expected a finite number", k, i,
                               v);
            entries[i].cost[k] = cost_of(v, maximize, k);
        }
    }
    return AS_OK;
}

/* For up to three objectives. Entries come sorted and distinct, so an entry is dominated when an
 * earlier one is as good in the second and the third objective. */
static bool sweep_keeps(struct front2d *seen, const struct entry *e)
{
    return front2d_insert(seen, e->cost[1], e->cost[2], 0, 0, NULL);
}

/* The same for four objectives. It looks at the newest first, because neighbours in the first
 * objective are similar in the others.
 */
static bool scan_keeps(const struct entry *const *kept, size_t n, const struct entry *e)
{
    for (size_t i = n; i-- > 0;) {
        const double *c = kept[i]->cost;
        if (c[1] <= e->cost[1] && c[2] <= e->cost[2] && c[3] <= e->cost[3])
            return false;
    }
    return true;
}

static int compare_indices(const void *pa, const void *pb)
{
    size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
    return (a > b) - (a < b);
}

as_status gp_pareto_front(const double *values, size_t n, size_t m, const bool *maximize,
                          size_t *ret_front, size_t *ret_n, struct as_err *err)
{
    if (m < 1 || m > MAX_M)
        return as_fail(err, AS_E_INVAL, "%zu objectives, expected 1 to %d", m, MAX_M);
    AS_AUTO(as_freep) struct entry *entries = as_calloc(n, sizeof *entries);
    AS_AUTO(as_freep) struct front2d_point *room = as_calloc(n, sizeof *room);
    AS_AUTO(as_freep) const struct entry **kept = as_calloc(n, sizeof *kept);
    if (!entries || !room || !kept)
        return as_fail(err, AS_E_NOMEM, "out of memory for the front of %zu points", n);
    as_status st = read_entries(values, n, m, maximize, entries, err);
    if (st < 0)
        return st;
    qsort(entries, n, sizeof *entries, compare_entries);
    struct front2d seen = {.points = room};
    size_t n_kept = 0, n_front = 0;
    bool keep = false;
    for (size_t i = 0; i < n; i++) {
        const struct entry *e = &entries[i];
        bool copy = i > 0 && same_costs(e, &entries[i - 1]); /* kept or dropped with its original */
        if (!copy) {
            keep = m <= 3 ? sweep_keeps(&seen, e) : scan_keeps(kept, n_kept, e);
            if (keep)
                kept[n_kept++] = e;
        }
        if (keep)
            ret_front[n_front++] = e->index;
    }
    qsort(ret_front, n_front, sizeof *ret_front, compare_indices);
    *ret_n = n_front;
    return AS_OK;
}

/* ---- the reference point ---- */

struct range {
    double best, worst; /* as costs */
};

static void range_add(struct range *r, double cost)
{
    r->best = fmin(r->best, cost);
    r->worst = fmax(r->worst, cost);
}

void gp_pareto_reference(const double *values, size_t n, size_t m, const bool *maximize,
                         const size_t *front, size_t n_front, double *ret_reference)
{
    for (size_t k = 0; k < m; k++) {
        struct range of_front = {INFINITY, -INFINITY}, of_all = of_front;
        for (size_t i = 0; i < n_front; i++)
            range_add(&of_front, cost_of(values[front[i] * m + k], maximize, k));
        for (size_t i = 0; i < n; i++)
            range_add(&of_all, cost_of(values[i * m + k], maximize, k));
        double width = of_front.worst - of_front.best;
        if (width <= 0)
            width = of_all.worst - of_all.best;
        if (width <= 0)
            width = fmax(fabs(of_front.worst), 1);
        ret_reference[k] = cost_of(of_front.worst + 0.1 * width, maximize, k);
    }
}
