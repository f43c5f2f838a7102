#include "search/forest/forest.h"

#include <math.h>
#include <string.h>

#define TRIED_SHARE (5.0 / 6) /* of the parameters, for a split: SMAC's */

struct forest {
    size_t n; /* trees */
    struct regression_tree *trees[FOREST_TREES];
    double least; /* of a variance */
};

void forest_free(struct forest *f)
{
    if (!f)
        return;
    for (size_t k = 0; k < f->n; k++)
        regression_tree_free(f->trees[k]);
    free(f);
}

static double variance_of(const double *y, size_t n)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        sum += y[i];
    double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (y[i] - mean) * (y[i] - mean);
    return squares / (double)n;
}

as_status forest_grow(const struct tree_rows *rows, struct rng *r, struct forest **ret,
                      struct as_err *err)
{
    size_t n = rows->n < FOREST_ROWS ? rows->n : FOREST_ROWS;
    const struct tree_limits limits = {(size_t)ceil(TRIED_SHARE * (double)rows->d), 1};
    struct tree_rows t = *rows;
    AS_AUTO(forest_freep) struct forest *f = as_calloc(1, sizeof *f);
    AS_AUTO(as_freep) uint32_t *times = as_calloc(t.n, sizeof *times);
    AS_AUTO(as_freep) uint32_t *order = as_calloc(t.n, t.d * sizeof *order);
    if (!f || !times || !order)
        return as_fail_nomem(err);
    as_status st = tree_order(&t, order, err);
    t.order = order;
    f->least = fmax(FOREST_LEAST_SHARE * variance_of(t.y, t.n), 1e-300);
    for (; st == AS_OK && f->n < FOREST_TREES; f->n += st == AS_OK) {
        memset(times, 0, t.n * sizeof *times);
        for (size_t i = 0; i < n; i++)
            times[rng_below(r, t.n)]++;
        st = regression_tree_grow(&t, &limits, times, r, &f->trees[f->n], err);
    }
    if (st == AS_OK)
        *ret = as_steal(f);
    return st;
}

void forest_predict(const struct forest *f, const double *x, double *ret_mean, double *ret_variance)
{
    double sum = 0, squares = 0, within = 0, n = (double)f->n;
    for (size_t k = 0; k < f->n; k++) {
        const struct tree_leaf *leaf = regression_tree_find(f->trees[k], x);
        sum += leaf->mean;
        squares += leaf->mean * leaf->mean;
        within += leaf->variance;
    }
    double mean = sum / n;
    *ret_mean = mean;
    *ret_variance = fmax(f->least, within / n + fmax(0, squares / n - mean * mean));
}
