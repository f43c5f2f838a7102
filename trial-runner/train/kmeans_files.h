/* The files that a k-means member leaves: predictions.npy, float32 [n_val, 2] with the cluster and
 * the distance of each held-out row; model.safetensors, with the tensor `centroids` F32 [clusters,
 * inputs]; preprocessing.json (artifacts.h). It has no targets.npy. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_KMEANS_FILES_H
#define ASSAY_TRIAL_RUNNER_TRAIN_KMEANS_FILES_H

#include "model/kmeans/kmeans.h"
#include "trial-runner/train/lockstep.h"

/* All borrowed. */
struct kmeans_result {
    const struct lockstep_setup *setup;
    const struct member *m;
    const float *centroids; /* [clusters, held->dims] */
    size_t clusters;
    const struct kmeans_rows *held; /* in the order of the split */
    size_t threads;
};

/* Nothing if the member has no folder. AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status kmeans_files_write(const struct kmeans_result *r, struct as_err *err);

#endif
