/* k-means as it is stored and predicts. What is stored is the tensor `centroids`, float32
 * [clusters, inputs], in the unit of the inputs as preprocessing encodes them. */
#ifndef ASSAY_MODEL_KMEANS_KMEANS_MODEL_H
#define ASSAY_MODEL_KMEANS_KMEANS_MODEL_H

#include "model/kmeans/kmeans.h"

/* What is predicted of a row: its cluster, 0 to clusters - 1, and the distance to that centroid.
 *   ret  [rows->n, 2]
 * A row's bits depend on the row alone (kmeans.h). Errors of kmeans_assign(). */
AS_MUST_CHECK as_status kmeans_predict(const struct kmeans_rows *rows, const float *centroids,
                                       size_t clusters, size_t threads, float *ret,
                                       struct as_err *err);

/* Are these centroids that can predict: at least one, all finite? AS_E_INVAL. */
AS_MUST_CHECK as_status kmeans_model_check(const float *centroids, size_t clusters, size_t dims,
                                           struct as_err *err);

#endif
