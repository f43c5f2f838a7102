/* Points that come are appended, and the front is found anew when as many have come as it has
 * points, at least SETTLE_LEAST: so each point is looked at a few times however many come. */
#include "search/pareto/growing_front.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "search/pareto/hypervolume.h"

#define SETTLE_LEAST 65536
#define SPARE 16 /* points for which there is room after a front was settled */

as_status growing_front_init(struct growing_front *f, size_t m, const bool *maximize,
                             struct as_err *err)
{
    if (m < 1 || m > GP_PARETO_MAX_OBJECTIVES)
        return as_fail(err, AS_E_INVAL, "%zu objectives, expected 1 to %d", m,
                       GP_PARETO_MAX_OBJECTIVES);
    *f = (struct growing_front){.m = m};
    memcpy(f->maximize, maximize, m * sizeof *maximize);
    for (size_t k = 0; k < m; k++) {
        f->lowest[k] = INFINITY;
        f->highest[k] = -INFINITY;
    }
    return AS_OK;
}

void growing_front_done(struct growing_front *f)
{
    free(f->points);
    *f = (struct growing_front){0};
}

/* The objectives of the points, with room for `more` rows. Owned by the caller; NULL: no memory. */
static double *rows_of(const struct growing_front *f, size_t more)
{
    double *rows = as_calloc(f->n + more, f->m * sizeof *rows);
    for (size_t i = 0; rows && i < f->n; i++)
        memcpy(rows + i * f->m, f->points[i].values, f->m * sizeof *rows);
    return rows;
}

static int by_number(const void *a, const void *b)
{
    return as_compare_i64(((const struct front_point *)a)->number,
                          ((const struct front_point *)b)->number);
}

static as_status drop_dominated(struct growing_front *f, struct as_err *err)
{
    AS_AUTO(as_freep) double *rows = rows_of(f, 0);
    AS_AUTO(as_freep) size_t *front = as_calloc(f->n, sizeof *front);
    size_t n = 0;
    if (!rows || !front)
        return as_fail_nomem(err);
    as_status st = gp_pareto_front(rows, f->n, f->m, f->maximize, front, &n, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < n; i++) /* ascending: front[i] >= i */
        f->points[i] = f->points[front[i]];
    f->n = f->n_front = n;
    qsort(f->points, n, sizeof *f->points, by_number);
    return AS_OK;
}

static as_status make_room(struct growing_front *f, struct as_err *err)
{
    size_t more = f->n - f->n_front;
    if (more >= SETTLE_LEAST && more >= f->n_front) {
        as_status st = drop_dominated(f, err);
        if (st != AS_OK)
            return st;
    }
    return as_reserve_one(&f->points, f->n, &f->cap, sizeof *f->points, err);
}

as_status growing_front_add(struct growing_front *f, int64_t number, const double *values,
                            struct as_err *err)
{
    for (size_t k = 0; k < f->m; k++)
        if (!isfinite(values[k]))
            return as_fail(err, AS_E_INVAL,
                           "objective %zu of trial %lld is %g, expected a finite number", k,
                           (long long)number, values[k]);
    as_status st = make_room(f, err);
    if (st != AS_OK)
        return st;
    struct front_point *p = &f->points[f->n++];
    *p = (struct front_point){.number = number};
    for (size_t k = 0; k < f->m; k++) {
        p->values[k] = values[k];
        f->lowest[k] = fmin(f->lowest[k], values[k]);
        f->highest[k] = fmax(f->highest[k], values[k]);
    }
    return AS_OK;
}

as_status growing_front_settle(struct growing_front *f, struct as_err *err)
{
    if (f->n == f->n_front)
        return AS_OK;
    as_status st = drop_dominated(f, err);
    if (st != AS_OK)
        return st;
    size_t cap = f->n + SPARE;
    if (f->cap > 2 * cap && as_grow(&f->points, cap, sizeof *f->points, NULL) == AS_OK) /* fewer */
        f->cap = cap;
    return AS_OK;
}

as_status growing_front_measure(const struct growing_front *f, double *ret_reference,
                                double *ret_hypervolume, struct as_err *err)
{
    AS_AUTO(as_freep) double *rows = rows_of(f, 2); /* and the range of all that were added */
    AS_AUTO(as_freep) size_t *front = as_calloc(f->n, sizeof *front);
    if (!rows || !front)
        return as_fail_nomem(err);
    memcpy(rows + f->n * f->m, f->lowest, f->m * sizeof *rows);
    memcpy(rows + (f->n + 1) * f->m, f->highest, f->m * sizeof *rows);
    for (size_t i = 0; i < f->n; i++)
        front[i] = i;
    gp_pareto_reference(rows, f->n + 2, f->m, f->maximize, front, f->n, ret_reference);
    return gp_hypervolume(rows, f->n, f->m, f->maximize, ret_reference, ret_hypervolume, err);
}
