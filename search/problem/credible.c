#include "search/problem/credible.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/number.h"

/* The magnitudes of the finite values among the first n; returns how many. */
static size_t collect(const double *v, size_t n, double *ret)
{
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(v[i]))
            ret[m++] = fabs(v[i]);
    return m;
}

as_status credible_limit(const double *v, size_t n, size_t n_first, double *ret_limit,
                         struct as_err *err)
{
    double most = 0;
    *ret_limit = INFINITY;
    for (size_t i = 0; i < n; i++)
        if (isfinite(v[i]))
            most = fmax(most, fabs(v[i]));
    if (most <= CREDIBLE_FACTOR)
        return AS_OK;
    AS_AUTO(as_freep) double *sorted = as_calloc(n, sizeof *sorted);
    if (!sorted)
        return as_fail(err, AS_E_NOMEM, "out of memory for the range of %zu values", n);
    size_t m = collect(v, n, sorted);
    m = n_first < m ? n_first : m; /* collect() keeps the order */
    qsort(sorted, m, sizeof *sorted, as_order_f64);
    double limit = fmax(1, sorted[(size_t)(CREDIBLE_SHARE * (double)(m - 1))]);
    m = collect(v, n, sorted);
    qsort(sorted, m, sizeof *sorted, as_order_f64);
    for (size_t i = 0; i < m && sorted[i] / CREDIBLE_FACTOR <= limit; i++)
        limit = fmax(limit, sorted[i]);
    *ret_limit = limit < most ? limit : INFINITY;
    return AS_OK;
}
