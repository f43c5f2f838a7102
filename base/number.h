/* The smaller and the larger of two numbers, and their order. */
#ifndef ASSAY_BASE_NUMBER_H
#define ASSAY_BASE_NUMBER_H

#include <math.h>
#include <stdint.h>

static inline int64_t as_min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t as_max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int as_compare_i64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* NaN comes last. */
static inline int as_compare_f64(double a, double b)
{
    if (isnan(a) || isnan(b))
        return (isnan(a) != 0) - (isnan(b) != 0);
    return (a > b) - (a < b);
}

/* The same for qsort(). */
static inline int as_order_f64(const void *a, const void *b)
{
    return as_compare_f64(*(const double *)a, *(const double *)b);
}

#endif
