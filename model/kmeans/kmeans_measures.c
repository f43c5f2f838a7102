/* Measures of rows and clusters. */
#include <math.h>

#include "base/mem.h"
#include "model/kmeans/kmeans.h"

double kmeans_variance(const struct kmeans_rows *rows)
{
    double all = 0, n = (double)rows->n;
    for (size_t d = 0; d < rows->dims; d++) {
        double mean = 0, sum = 0;
        for (size_t i = 0; i < rows->n; i++)
            mean += (double)rows->x[i * rows->dims + d] / n;
        for (size_t i = 0; i < rows->n; i++) {
            double v = (double)rows->x[i * rows->dims + d] - mean;
            sum += v * v;
        }
        all += sum / n;
    }
    return all / (double)rows->dims;
}

static double distance(const double *a, const double *b, size_t dims)
{
    double sum = 0;
    for (size_t d = 0; d < dims; d++)
        sum += (a[d] - b[d]) * (a[d] - b[d]);
    return sqrt(sum);
}

/* means [clusters, dims], counts [clusters]. */
static void find_means(const struct kmeans_rows *rows, const int32_t *labels, size_t clusters,
                       double *means, double *counts)
{
    size_t dims = rows->dims;
    for (size_t i = 0; i < rows->n; i++) {
        counts[labels[i]] += 1;
        for (size_t d = 0; d < dims; d++)
            means[(size_t)labels[i] * dims + d] += (double)rows->x[i * dims + d];
    }
    for (size_t k = 0; k < clusters; k++)
        for (size_t d = 0; counts[k] > 0 && d < dims; d++)
            means[k * dims + d] /= counts[k];
}

/* spread [clusters]: the mean distance of a cluster's rows to their mean. */
static void find_spread(const struct kmeans_rows *rows, const int32_t *labels, size_t clusters,
                        const double *means, const double *counts, double *spread)
{
    size_t dims = rows->dims;
    for (size_t i = 0; i < rows->n; i++) {
        const double *mean = means + (size_t)labels[i] * dims;
        double sum = 0;
        for (size_t d = 0; d < dims; d++) {
            double v = (double)rows->x[i * dims + d] - mean[d];
            sum += v * v;
        }
        spread[labels[i]] += sqrt(sum);
    }
    for (size_t k = 0; k < clusters; k++)
        if (counts[k] > 0)
            spread[k] /= counts[k];
}

/* The largest ratio of cluster i with another one. Means that coincide are left out, as in
 * scikit-learn. */
static double worst_ratio(const double *means, const double *counts, const double *spread,
                          size_t clusters, size_t dims, size_t i)
{
    double worst = 0;
    for (size_t j = 0; j < clusters; j++) {
        if (j == i || counts[j] <= 0)
            continue;
        double apart = distance(means + i * dims, means + j * dims, dims);
        double ratio = apart > 0 ? (spread[i] + spread[j]) / apart : 0;
        worst = ratio > worst ? ratio : worst;
    }
    return worst;
}

as_status kmeans_davies_bouldin(const struct kmeans_rows *rows, const int32_t *labels,
                                size_t clusters, double *ret, struct as_err *err)
{
    AS_AUTO(as_freep) double *means = as_calloc(clusters, rows->dims * sizeof *means);
    AS_AUTO(as_freep) double *counts = as_calloc(clusters, sizeof *counts);
    AS_AUTO(as_freep) double *spread = as_calloc(clusters, sizeof *spread);
    double sum = 0, used = 0;
    if (!means || !counts || !spread)
        return as_fail_nomem(err);
    find_means(rows, labels, clusters, means, counts);
    find_spread(rows, labels, clusters, means, counts, spread);
    for (size_t i = 0; i < clusters; i++) {
        if (counts[i] <= 0)
            continue;
        used += 1;
        sum += worst_ratio(means, counts, spread, clusters, rows->dims, i);
    }
    *ret = used < 2 ? NAN : sum / used;
    return AS_OK;
}
