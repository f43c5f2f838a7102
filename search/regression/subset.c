/* Choose the best and the newest rows, then farthest points. */
#include "search/regression/subset.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"

struct ranked {
    double y;
    size_t row;
};

static int by_rank(const void *a, const void *b)
{
    const struct ranked *p = a, *q = b;
    if (p->y != q->y)
        return p->y < q->y ? -1 : 1;
    return (p->row > q->row) - (p->row < q->row);
}

static double row_distance(const struct gp_columns *c, const struct gp_rows *r, size_t p, size_t q)
{
    const double *xp = r->x + p * c->n_real, *xq = r->x + q * c->n_real;
    const int32_t *zp = r->z + p * c->n_cat, *zq = r->z + q * c->n_cat;
    double d = 0;
    for (size_t j = 0; j < c->n_real; j++)
        d += (xp[j] - xq[j]) * (xp[j] - xq[j]);
    for (size_t j = 0; j < c->n_cat; j++)
        d += zp[j] != zq[j];
    return d;
}

/* Add `row` and update the other rows' distances to the chosen ones. A chosen row has -1. */
static void take_row(const struct gp_columns *c, const struct gp_rows *r, double *gap, size_t row)
{
    gap[row] = -1;
    for (size_t i = 0; i < r->n; i++) {
        if (gap[i] >= 0)
            gap[i] = fmin(gap[i], row_distance(c, r, i, row));
    }
}

static size_t farthest_row(const double *gap, size_t n)
{
    size_t at = 0;
    for (size_t i = 1; i < n; i++) {
        if (gap[i] > gap[at])
            at = i;
    }
    return at;
}

as_status gp_subset(const struct gp_columns *c, const struct gp_rows *rows, const double *y,
                    const struct gp_subset_size *size, size_t *ret, size_t *ret_n,
                    struct as_err *err)
{
    size_t n = rows->n, want = size->best + size->newest + size->spread;
    AS_AUTO(as_freep) struct ranked *order = as_calloc(n, sizeof *order);
    AS_AUTO(as_freep) double *gap = as_calloc(n, sizeof *gap);
    if (!order || !gap)
        return as_fail(err, AS_E_NOMEM, "out of memory for a choice among %zu trials", n);
    for (size_t i = 0; i < n; i++) {
        order[i] = (struct ranked){y[i], i};
        gap[i] = INFINITY;
    }
    qsort(order, n, sizeof *order, by_rank);
    for (size_t i = 0; i < n && want < n && i < size->newest; i++)
        take_row(c, rows, gap, n - 1 - i);
    for (size_t i = 0, left = size->best; i < n && want < n && left; i++) {
        if (gap[order[i].row] < 0)
            continue;
        take_row(c, rows, gap, order[i].row);
        left--;
    }
    for (size_t i = 0; want < n && i < size->spread; i++)
        take_row(c, rows, gap, farthest_row(gap, n));
    *ret_n = 0;
    for (size_t i = 0; i < n; i++) {
        if (want >= n || gap[i] < 0)
            ret[(*ret_n)++] = i;
    }
    return AS_OK;
}
