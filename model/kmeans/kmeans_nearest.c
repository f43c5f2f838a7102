#include "model/kmeans/kmeans_nearest.h"

#include "base/cpu_clones.h"
#include "kernels/cpu/gemm.h"

#define LANES 8

CPU_CLONES double kmeans_square(const float *a, const float *b, size_t dims)
{
    double lane[LANES] = {0}, sum = 0;
    size_t i = 0;
    for (; i + LANES <= dims; i += LANES)
        for (size_t l = 0; l < LANES; l++) {
            double d = (double)(a[i + l] - b[i + l]);
            lane[l] += d * d;
        }
    for (; i < dims; i++) {
        double d = (double)(a[i] - b[i]);
        sum += d * d;
    }
    for (size_t l = 0; l < LANES; l++)
        sum += lane[l];
    return sum;
}

void kmeans_bias(const float *points, size_t n, size_t dims, float *bias)
{
    for (size_t p = 0; p < n; p++) {
        double sum = 0;
        for (size_t i = 0; i < dims; i++)
            sum += (double)points[p * dims + i] * (double)points[p * dims + i];
        bias[p] = (float)(-sum / 2);
    }
}

void kmeans_products(const float *x, size_t n, size_t dims, const float *points, size_t n_points,
                     const float *bias, float *ret)
{
    const struct gemm g = {.tb = true,
                           .m = n,
                           .n = n_points,
                           .k = dims,
                           .a = x,
                           .lda = dims,
                           .b = points,
                           .ldb = dims,
                           .c = ret,
                           .ldc = n_points,
                           .bias = bias};
    cpu_gemm(&g);
}

/* In eight parts, each of which can be a lane; then the largest of them, of equals the first. */
CPU_CLONES size_t kmeans_largest(const float *values, size_t n)
{
    float best = values[0], lane[LANES];
    size_t i = 0;
    for (size_t l = 0; l < LANES; l++)
        lane[l] = values[0];
    for (; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++)
            lane[l] = values[i + l] > lane[l] ? values[i + l] : lane[l];
    for (; i < n; i++)
        best = values[i] > best ? values[i] : best;
    for (size_t l = 0; l < LANES; l++)
        best = lane[l] > best ? lane[l] : best;
    for (i = 0; i < n; i++)
        if (values[i] >= best)
            return i;
    return 0;
}
