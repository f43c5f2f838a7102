#include "trial-runner/train/kmeans_files.h"

#include "base/file.h"
#include "base/json.h"
#include "data/formats/npy.h"
#include "data/formats/safetensors.h"
#include "model/kmeans/kmeans_model.h"
#include "trial-runner/train/artifacts.h"

static as_status write_predictions(const struct kmeans_result *r, struct as_err *err)
{
    AS_AUTO(as_freep) char *path = file_join(r->m->artifacts, "predictions.npy");
    AS_AUTO(as_freep) float *values = as_calloc(r->held->n, 2 * sizeof *values);
    if (!path || !values)
        return as_fail_nomem(err);
    as_status st = kmeans_predict(r->held, r->centroids, r->clusters, r->threads, values, err);
    return st == AS_OK ? npy_write(path, NPY_F4, (size_t[]){r->held->n, 2}, 2, values, err) : st;
}

/* The record of the data set as the model sees it: a target is there, and left out. */
static struct dataset_info without_target(const struct dataset_info *info)
{
    struct dataset_info ret = *info;
    ret.task = DATASET_CLUSTERING;
    ret.n_outputs = DATASET_CLUSTER_OUTPUTS;
    ret.n_classes = 0;
    ret.classes = NULL;
    ret.options.positive = NULL;
    return ret;
}

static as_status write_model(const struct kmeans_result *r, const struct lockstep_setup *setup,
                             struct as_err *err)
{
    const struct preprocess *fit = &setup->data->fit;
    AS_AUTO(as_freep) char *path = file_join(r->m->artifacts, "model.safetensors");
    JSON_AUTO meta = artifacts_metadata(setup, r->m);
    if (!path || !meta)
        return as_fail_nomem(err);
    const struct safetensors_tensor tensors[] = {
        {.name = "centroids",
         .n_dims = 2,
         .shape = {r->clusters, r->held->dims},
         .data = r->centroids},
        {.name = "input.mean", .n_dims = 1, .shape = {fit->n_scales}, .data = fit->mean},
        {.name = "input.scale", .n_dims = 1, .shape = {fit->n_scales}, .data = fit->scale},
    };
    return safetensors_write(path, meta, tensors, fit->n_scales > 0 ? 3 : 1, err);
}

as_status kmeans_files_write(const struct kmeans_result *r, struct as_err *err)
{
    if (!r->m->artifacts)
        return AS_OK;
    const struct dataset_info info = without_target(r->setup->info);
    struct train_data data = *r->setup->data; /* a view: the record has no target either */
    struct lockstep_setup setup = *r->setup;
    data.fit.n_targets = 0;
    setup.info = &info;
    setup.data = &data;
    as_status st = write_predictions(r, err);
    if (st == AS_OK)
        st = artifacts_write_preprocessing(r->m->artifacts, &setup, err);
    return st == AS_OK ? write_model(r, &setup, err) : st;
}
