/* Transformations of targets.
 *
 * The transformation comes first and standardising second, so that a model always sees targets of
 * mean 0 and deviation 1. Without a transformation, forward and back are the one multiplication and
 * the one addition that they always were: the bits of such models do not change. */
#include "data/preprocess/target_unit.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/number.h"
#include "data/preprocess/moments.h"

#define RANK_END 1e-7

/* ---- the normal distribution ---- */

static double normal_cdf(double z)
{
    return erfc(-z * M_SQRT1_2) / 2;
}

/* The inverse of normal_cdf() for p in (0, 1), by bisection and Newton steps: a start near the root
 * and a few steps give all digits that a float32 keeps. */
static double normal_inverse(double p)
{
    double low = -6, high = 6; /* beyond the ranks RANK_END and 1 - RANK_END */
    for (int i = 0; i < 12; i++) {
        double mid = (low + high) / 2;
        *(normal_cdf(mid) < p ? &low : &high) = mid;
    }
    double z = (low + high) / 2;
    for (int i = 0; i < 4; i++)
        z -= (normal_cdf(z) - p) / (exp(-z * z / 2) / sqrt(2 * M_PI));
    return z;
}

/* ---- ranks ---- */

/* The first index of q [n], ascending, whose value is at least y (or, with `above`, more than
 * y). */
static size_t bound(const double *q, size_t n, double y, bool above)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (above ? q[mid] <= y : q[mid] < y)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The rank of y in [0, 1]: the mean of the first and the last place that it has among q; 0 and 1
 * from the ends on. */
static double rank_of(const double *q, size_t n, double y)
{
    size_t first = bound(q, n, y, false), end = bound(q, n, y, true);
    double last = (double)(n - 1);
    if (q[0] == q[n - 1])
        return 0.5;
    if (y <= q[0] || y >= q[n - 1])
        return y <= q[0] ? 0 : 1;
    if (first < end)
        return ((double)first + (double)(end - 1)) / 2 / last;
    double share = (y - q[first - 1]) / (q[first] - q[first - 1]);
    return ((double)(first - 1) + share) / last;
}

static double value_of_rank(const double *q, size_t n, double rank)
{
    double place = rank * (double)(n - 1);
    size_t i = (size_t)place;
    if (i + 1 >= n)
        return q[n - 1];
    return q[i] + (place - (double)i) * (q[i + 1] - q[i]);
}

/* ---- one target ---- */

static const double *quantiles_of(const struct preprocess *p, size_t t)
{
    return p->quantiles + t * p->n_quantiles;
}

static double transform(const struct preprocess *p, size_t t, double y)
{
    double rank;
    switch (p->target_transform) {
    case TARGET_LOG:
        return log(y);
    case TARGET_LOG1P:
        return log1p(y);
    case TARGET_QUANTILE:
        rank = rank_of(quantiles_of(p, t), p->n_quantiles, y);
        return normal_inverse(fmin(fmax(rank, RANK_END), 1 - RANK_END));
    default:
        return y;
    }
}

double target_unit_forward(const struct preprocess *p, size_t t, double y)
{
    return (transform(p, t, y) - p->target_mean[t]) / p->target_scale[t];
}

double target_unit_back(const struct preprocess *p, size_t t, double z)
{
    double v = z * p->target_scale[t] + p->target_mean[t];
    if (isnan(v))
        return v;
    switch (p->target_transform) {
    case TARGET_LOG:
        return fmin(exp(v), (double)FLT_MAX);
    case TARGET_LOG1P:
        return fmin(expm1(v), (double)FLT_MAX);
    case TARGET_QUANTILE:
        return value_of_rank(quantiles_of(p, t), p->n_quantiles, normal_cdf(v));
    default:
        return v;
    }
}

/* ---- fitting ---- */

static as_status fit_quantiles(const struct dataset *set, const struct preprocess_rows *rows,
                               struct preprocess *p, struct as_err *err)
{
    size_t n = rows->n_train, most = TARGET_MAX_ALL_QUANTILES / p->n_targets;
    AS_AUTO(as_freep) double *sorted = as_calloc(n, sizeof *sorted);
    most = most < TARGET_MAX_QUANTILES ? most : TARGET_MAX_QUANTILES;
    p->n_quantiles = n < most ? n : most;
    p->quantiles = as_calloc(p->n_targets * p->n_quantiles, sizeof *p->quantiles);
    if (!sorted || !p->quantiles)
        return as_fail(err, AS_E_NOMEM, "out of memory for the quantiles of the target");
    for (size_t t = 0; t < p->n_targets; t++) {
        double *q = p->quantiles + t * p->n_quantiles;
        for (size_t i = 0; i < n; i++)
            sorted[i] = (double)set->targets[(size_t)rows->train[i] * p->n_targets + t];
        qsort(sorted, n, sizeof *sorted, as_order_f64);
        for (size_t k = 0; k < p->n_quantiles; k++)
            q[k] = p->n_quantiles == n
                       ? sorted[k]
                       : value_of_rank(sorted, n, (double)k / (double)(p->n_quantiles - 1));
    }
    return AS_OK;
}

static as_status check_targets(const struct preprocess *p, const struct dataset *set,
                               struct as_err *err)
{
    double least = p->target_transform == TARGET_LOG ? 0 : -1;
    if (p->target_transform != TARGET_LOG && p->target_transform != TARGET_LOG1P)
        return AS_OK;
    for (size_t i = 0; i < set->n_rows * p->n_targets; i++)
        if (!((double)set->targets[i] > least))
            return as_fail(
                err, AS_E_INVAL,
                "target.transform %s: the target of row %zu is %g, expected more than %g",
                target_transform_names[p->target_transform], i / p->n_targets,
                (double)set->targets[i], least);
    return AS_OK;
}

as_status target_unit_fit(const struct dataset *set, const struct preprocess_rows *rows,
                          struct preprocess *p, struct as_err *err)
{
    size_t n = p->n_targets;
    struct moments_columns v = {.x = set->targets,
                                .width = n,
                                .n = n,
                                .n_means = n,
                                .rows = rows->train,
                                .n_rows = rows->n_train};
    AS_AUTO(as_freep) float *y = NULL;
    as_status st = check_targets(p, set, err);
    if (st == AS_OK && p->target_transform == TARGET_QUANTILE)
        st = fit_quantiles(set, rows, p, err);
    if (st != AS_OK)
        return st;
    if (p->target_transform != TARGET_AS_IS) {
        y = as_calloc(set->n_rows * n, sizeof *y);
        if (!y)
            return as_fail(err, AS_E_NOMEM, "out of memory for the targets");
        for (size_t i = 0; i < set->n_rows * n; i++)
            y[i] = (float)transform(p, i % n, (double)set->targets[i]);
        v.x = y;
    }
    return moments_of_columns(&v, p->target_mean, p->target_scale, err);
}
