#include "model/kmeans/kmeans_model.h"

#include <math.h>

#include "base/mem.h"

as_status kmeans_predict(const struct kmeans_rows *rows, const float *centroids, size_t clusters,
                         size_t threads, float *ret, struct as_err *err)
{
    AS_AUTO(as_freep) int32_t *labels = as_calloc(rows->n, sizeof *labels);
    AS_AUTO(as_freep) double *square = as_calloc(rows->n, sizeof *square);
    if (!labels || !square)
        return as_fail_nomem(err);
    as_status st = kmeans_assign(rows, centroids, clusters, threads, labels, square, err);
    for (size_t i = 0; st == AS_OK && i < rows->n; i++) {
        ret[2 * i] = (float)labels[i];
        ret[2 * i + 1] = (float)sqrt(square[i]);
    }
    return st;
}

as_status kmeans_model_check(const float *centroids, size_t clusters, size_t dims,
                             struct as_err *err)
{
    for (size_t i = 0; i < clusters * dims; i++)
        if (!isfinite(centroids[i]))
            return as_fail(err, AS_E_INVAL,
                           "number %zu of centroid %zu is %g, expected a finite one", i % dims,
                           i / dims, (double)centroids[i]);
    return clusters > 0 ? AS_OK : as_fail(err, AS_E_INVAL, "it has no centroids");
}
