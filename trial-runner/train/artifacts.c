#include "trial-runner/train/artifacts.h"

#include <stdio.h>

#include "base/file.h"
#include "base/formats/npy.h"
#include "base/formats/safetensors.h"
#include "base/json.h"

#define MAX_TENSORS (2 * (TRAIN_MAX_LAYERS + 1) + 4)

static as_status write_array(const char *folder, const char *name, npy_type type,
                             const size_t *shape, size_t n_dims, const void *data,
                             struct as_err *err)
{
    AS_AUTO(as_freep) char *path = file_join(folder, name);
    if (!path)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    return npy_write(path, type, shape, n_dims, data, err);
}

static as_status write_targets(const char *folder, const struct train_data *d, struct as_err *err)
{
    if (!d->set.labels)
        return write_array(folder, "targets.npy", NPY_F4, (size_t[]){d->n_val, 1}, 2,
                           d->val_targets, err);
    AS_AUTO(as_freep) int64_t *classes = as_calloc(d->n_val, sizeof *classes);
    if (!classes)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    for (size_t i = 0; i < d->n_val; i++)
        classes[i] = d->set.labels[d->val_rows[i]];
    return write_array(folder, "targets.npy", NPY_I8, &d->n_val, 1, classes, err);
}

static json_t *model_metadata(const struct job *job)
{
    JSON_AUTO info = dataset_info_to_json(&job->info);
    AS_AUTO(as_freep) char *dataset = info ? json_format(info) : NULL;
    if (!dataset)
        return NULL;
    return json_pack("{s:s, s:s, s:s, s:s}", "format", "assay-model-1", "train", job->train_text,
                     "dataset", dataset, "fingerprint", job->fingerprint);
}

struct tensor_names {
    char text[MAX_TENSORS][24];
};

static size_t list_tensors(const struct model_shape *s, const float *params,
                           const struct train_data *d, const float *target,
                           struct tensor_names *names, struct safetensors_tensor *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_linear; i++, n += 2) {
        (void)snprintf(names->text[n], sizeof names->text[n], "layers.%zu.weight", i);
        (void)snprintf(names->text[n + 1], sizeof names->text[n + 1], "layers.%zu.bias", i);
        ret[n] = (struct safetensors_tensor){.name = names->text[n],
                                             .n_dims = 2,
                                             .shape = {s->width[i], s->width[i + 1]},
                                             .data = params + s->weight_at[i]};
        ret[n + 1] = (struct safetensors_tensor){.name = names->text[n + 1],
                                                 .n_dims = 1,
                                                 .shape = {s->width[i + 1]},
                                                 .data = params + s->bias_at[i]};
    }
    ret[n++] = (struct safetensors_tensor){
        .name = "input.mean", .n_dims = 1, .shape = {d->n_scales}, .data = d->mean};
    ret[n++] = (struct safetensors_tensor){
        .name = "input.scale", .n_dims = 1, .shape = {d->n_scales}, .data = d->scale};
    if (d->set.labels)
        return n;
    ret[n++] = (struct safetensors_tensor){
        .name = "target.mean", .n_dims = 1, .shape = {1}, .data = &target[0]};
    ret[n++] = (struct safetensors_tensor){
        .name = "target.scale", .n_dims = 1, .shape = {1}, .data = &target[1]};
    return n;
}

static as_status write_model(const char *folder, const struct job *job, struct loop *l, size_t k,
                             struct as_err *err)
{
    const struct model_shape *s = &l->model->shape;
    float target[2] = {0, 1};
    if (l->data->n_targets) {
        target[0] = (float)l->data->target_mean[0];
        target[1] = (float)l->data->target_scale[0];
    }
    struct safetensors_tensor tensors[MAX_TENSORS]; /* all F32, whose enumerator is 0 */
    struct tensor_names names;
    AS_AUTO(as_freep) float *params = as_calloc(s->n_params, sizeof *params);
    AS_AUTO(as_freep) char *path = file_join(folder, "model.safetensors");
    JSON_AUTO meta = model_metadata(job);
    if (!params || !path || !meta)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    as_status st = buf_download(l->model->params, k * s->n_params, params, s->n_params, err);
    if (st < 0)
        return st;
    size_t n = list_tensors(s, params, l->data, target, &names, tensors);
    return safetensors_write(path, meta, tensors, n, err);
}

as_status artifacts_write(const char *folder, const struct job *job, struct loop *l, size_t k,
                          struct as_err *err)
{
    const struct train_data *d = l->data;
    const float *predictions = NULL;
    as_status st = evaluator_predict(l->evaluator, k, &predictions, err);
    if (st == AS_OK)
        st = write_array(folder, "predictions.npy", NPY_F4, (size_t[]){d->n_val, d->set.n_outputs},
                         2, predictions, err);
    if (st == AS_OK)
        st = write_targets(folder, d, err);
    return st < 0 ? st : write_model(folder, job, l, k, err);
}
