/* The nearest of several points, by a matrix product. For model/kmeans alone. */
#ifndef ASSAY_MODEL_KMEANS_KMEANS_NEAREST_H
#define ASSAY_MODEL_KMEANS_KMEANS_NEAREST_H

#include <stddef.h>

#define KMEANS_BLOCK ((size_t)256) /* rows of a product */

/* bias [points] = -|p|^2 / 2, so that the largest x p + bias is of the nearest point.
 *   points  [n, dims] */
void kmeans_bias(const float *points, size_t n, size_t dims, float *bias);

/* ret [n, points] = x p + bias, for at most KMEANS_BLOCK rows x [n, dims]. */
void kmeans_products(const float *x, size_t n, size_t dims, const float *points, size_t n_points,
                     const float *bias, float *ret);

/* The index of the largest of n values, of equals the first. */
size_t kmeans_largest(const float *values, size_t n);

/* |a - b|^2, of the differences in float32, added up in double in eight parts. */
double kmeans_square(const float *a, const float *b, size_t dims);

#endif
