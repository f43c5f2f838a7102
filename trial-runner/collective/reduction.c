#include "trial-runner/collective/reduction.h"

#include <stdint.h>

#include "base/cpu_clones.h"

CPU_CLONES static void f32_sum(void *ret, const void *a, const void *b, size_t n)
{
    float *r = ret;
    const float *x = a, *y = b;
    for (size_t i = 0; i < n; i++)
        r[i] = x[i] + y[i];
}

CPU_CLONES static void f64_sum(void *ret, const void *a, const void *b, size_t n)
{
    double *r = ret;
    const double *x = a, *y = b;
    for (size_t i = 0; i < n; i++)
        r[i] = x[i] + y[i];
}

static void u64_sum(void *ret, const void *a, const void *b, size_t n)
{
    uint64_t *r = ret;
    const uint64_t *x = a, *y = b;
    for (size_t i = 0; i < n; i++)
        r[i] = x[i] + y[i];
}

static void f64_max(void *ret, const void *a, const void *b, size_t n)
{
    double *r = ret;
    const double *x = a, *y = b;
    for (size_t i = 0; i < n; i++)
        r[i] = x[i] >= y[i] || x[i] != x[i] ? x[i] : y[i];
}

const struct reduction reduce_f32_sum = {"f32_sum", sizeof(float), f32_sum};
const struct reduction reduce_f64_sum = {"f64_sum", sizeof(double), f64_sum};
const struct reduction reduce_u64_sum = {"u64_sum", sizeof(uint64_t), u64_sum};
const struct reduction reduce_f64_max = {"f64_max", sizeof(double), f64_max};
