/* Exact hypervolume for one to four objectives (hypervolume.h).
 *
 * Points are turned into costs. Missing objectives become 0 with the reference at 1, so one and two
 * objectives are special cases of three. For three, the points are swept in the order of the third
 * objective, and a sorted front of the first two gives the area at each level. For four, the sweep
 * runs along the fourth objective and adds the exclusive contribution of each point: its box minus
 * the volume that earlier points dominate of it, which is a problem with three objectives. The
 * earlier points are kept without those that others dominate in these three, because the cost is
 * cubic in their number. */
#include "search/pareto/hypervolume.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "search/pareto/front2d_priv.h"

#define MAX_M 4

/* A point as costs, all below those of the reference. Unused objectives are 0, and 1 in the
 * reference. */
struct point {
    double c[MAX_M];
};

static int compare_along(const struct point *a, const struct point *b, size_t k)
{
    return (a->c[k] > b->c[k]) - (a->c[k] < b->c[k]);
}

static int compare_third(const void *pa, const void *pb)
{
    return compare_along(pa, pb, 2);
}

static int compare_fourth(const void *pa, const void *pb)
{
    return compare_along(pa, pb, 3);
}

/* The volume in the first three objectives of n points sorted by the third. A coordinate better
 * than that of `floor` is raised to it (NULL: no change). `room` holds n points. */
static double volume3(const struct point *points, size_t n, const struct point *floor,
                      const struct point *reference, struct front2d_point *room)
{
    struct front2d front = {.points = room};
    double volume = 0, area = 0, level = 0;
    for (size_t i = 0; i < n; i++) {
        struct point p = points[i];
        for (size_t k = 0; floor && k < 3; k++)
            p.c[k] = fmax(p.c[k], floor->c[k]);
        double gain;
        if (!front2d_insert(&front, p.c[0], p.c[1], reference->c[0], reference->c[1], &gain))
            continue;
        volume += area * (p.c[2] - level); /* area is 0 until level is set */
        level = p.c[2];
        area += gain;
    }
    return volume + area * (reference->c[2] - level);
}

/* A set of points that do not dominate each other in three objectives, sorted by the third. */
struct set3 {
    struct point *points;
    size_t n;
};

static bool as_good3(const struct point *a, const struct point *b)
{
    return a->c[0] <= b->c[0] && a->c[1] <= b->c[1] && a->c[2] <= b->c[2];
}

static bool set3_covers(const struct set3 *s, const struct point *p)
{
    for (size_t i = 0; i < s->n && s->points[i].c[2] <= p->c[2]; i++)
        if (as_good3(&s->points[i], p))
            return true;
    return false;
}

static void set3_insert(struct set3 *s, const struct point *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++)
        if (!as_good3(p, &s->points[i]))
            s->points[kept++] = s->points[i];
    size_t at = kept;
    while (at > 0 && s->points[at - 1].c[2] > p->c[2])
        at--;
    memmove(s->points + at + 1, s->points + at, (kept - at) * sizeof *s->points);
    s->points[at] = *p;
    s->n = kept + 1;
}

/* Sweep along the fourth objective. At each level, the points so far have a volume in the other
 * three objectives. A new point adds its own box, minus the part that the others dominate. */
static double volume4(struct point *points, size_t n, const struct point *reference,
                      struct front2d_point *room, struct point *scratch)
{
    qsort(points, n, sizeof *points, compare_fourth);
    struct set3 set = {.points = scratch};
    double volume = 0, section = 0, level = 0;
    for (size_t i = 0; i < n; i++) {
        const struct point *p = &points[i];
        if (set3_covers(&set, p))
            continue;
        double box = 1;
        for (size_t k = 0; k < 3; k++)
            box *= reference->c[k] - p->c[k];
        volume += section * (p->c[3] - level);
        level = p->c[3];
        section += fmax(0, box - volume3(set.points, set.n, p, reference, room));
        set3_insert(&set, p);
    }
    return volume + section * (reference->c[3] - level);
}

/* Keep the points that are better than the reference in every objective. Returns how many. */
static size_t read_points(const double *values, size_t n, size_t m, const bool *maximize,
                          const struct point *reference, struct point *points)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        struct point p = {{0}};
        bool counts = true;
        for (size_t k = 0; k < m; k++) {
            p.c[k] = maximize && maximize[k] ? -values[i * m + k] : values[i * m + k];
            counts = counts && p.c[k] < reference->c[k];
        }
        if (counts)
            points[kept++] = p;
    }
    return kept;
}

static as_status check_input(const double *values, size_t n, size_t m, const double *reference,
                             struct as_err *err)
{
    if (m < 1 || m > MAX_M)
        return as_fail(err, AS_E_INVAL, "%zu objectives, expected 1 to %d", m, MAX_M);
    for (size_t k = 0; k < m; k++)
        if (!isfinite(reference[k]))
            return as_fail(err, AS_E_INVAL,
                           "objective %zu of the reference point is %g, expected a finite number",
                           k, reference[k]);
    for (size_t i = 0; i < n * m; i++)
        if (!isfinite(values[i]))
            return as_fail(err, AS_E_INVAL,
                           "objective %zu of point %zu is %g, expected a finite number", i % m,
                           i / m, values[i]);
    return AS_OK;
}

as_status gp_hypervolume(const double *values, size_t n, size_t m, const bool *maximize,
                         const double *reference, double *ret, struct as_err *err)
{
    as_status st = check_input(values, n, m, reference, err);
    if (st < 0)
        return st;
    AS_AUTO(as_freep) struct point *points = as_calloc(n, sizeof *points);
    AS_AUTO(as_freep) struct point *scratch = as_calloc(n, sizeof *scratch);
    AS_AUTO(as_freep) struct front2d_point *room = as_calloc(n, sizeof *room);
    if (!points || !scratch || !room)
        return as_fail(err, AS_E_NOMEM, "out of memory for the hypervolume of %zu points", n);
    struct point r = {{1, 1, 1, 1}};
    for (size_t k = 0; k < m; k++)
        r.c[k] = maximize && maximize[k] ? -reference[k] : reference[k];
    n = read_points(values, n, m, maximize, &r, points);
    if (m == 4) {
        *ret = volume4(points, n, &r, room, scratch);
    } else {
        qsort(points, n, sizeof *points, compare_third);
        *ret = volume3(points, n, NULL, &r, room);
    }
    return AS_OK;
}
