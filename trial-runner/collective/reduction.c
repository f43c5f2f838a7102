#include "trial-runner/collective/reduction.h"

#include <stdint.h>

#include "base/cpu_clones.h"

/* Sums go by cache lines of two vectors: the compiler makes no vectors of a plain loop whose result
 * may be an operand. The second operand has mostly just been received and is in the cache. The
 * first and the result come from memory; they are fetched in advance, because processors do not
 * look beyond the end of a page. */
#define VECTOR_BYTES 32 /* of AVX2; the compiler halves it for other processors */
#define AHEAD_BYTES 1024

typedef float f32_vector __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef double f64_vector __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));
typedef uint64_t u64_vector __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));

#define DEFINE_SUM(name, type, vector)                                                             \
    CPU_CLONES static void name(void *ret, const void *a, const void *b, size_t n)                 \
    {                                                                                              \
        enum { ITEMS = VECTOR_BYTES / sizeof(type) };                                              \
        type *r = ret;                                                                             \
        const type *x = a, *y = b;                                                                 \
        size_t i = 0;                                                                              \
        for (; i + 2 * ITEMS <= n; i += 2 * ITEMS) {                                               \
            __builtin_prefetch((const char *)(x + i) + AHEAD_BYTES, 0);                            \
            __builtin_prefetch((const char *)(r + i) + AHEAD_BYTES, 1);                            \
            vector first = *(const vector *)(x + i) + *(const vector *)(y + i);                    \
            vector second = *(const vector *)(x + i + ITEMS) + *(const vector *)(y + i + ITEMS);   \
            *(vector *)(r + i) = first;                                                            \
            *(vector *)(r + i + ITEMS) = second;                                                   \
        }                                                                                          \
        for (; i < n; i++)                                                                         \
            r[i] = x[i] + y[i];                                                                    \
    }

DEFINE_SUM(f32_sum, float, f32_vector)
DEFINE_SUM(f64_sum, double, f64_vector)
DEFINE_SUM(u64_sum, uint64_t, u64_vector)

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
