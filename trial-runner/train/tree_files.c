/* The artifacts of a model of trees. */
#include "trial-runner/train/tree_trial_priv.h"

#include "base/file.h"
#include "base/json.h"
#include "data/formats/safetensors.h"
#include "model/trees/tree_inputs.h"
#include "trial-runner/train/artifacts.h"
#include "trial-runner/train/importance_file.h"
#include "trial-runner/train/test_rows.h"

/* The bytes, then the units of targets and inputs, where there are any. */
static as_status write_tensors(const char *path, const json_t *meta,
                               const struct safetensors_tensor all[5], const struct preprocess *fit,
                               bool has_inputs, struct as_err *err)
{
    struct safetensors_tensor list[5] = {all[0]};
    size_t n = 1;
    for (size_t i = 1; i < 5; i++)
        if (i < 3 ? fit->n_targets > 0 : has_inputs && fit->n_scales > 0)
            list[n++] = all[i];
    return safetensors_write(path, meta, list, n, err);
}

static as_status write_model(const struct tree_trial *t, const char *folder, const char *trees,
                             size_t len, struct as_err *err)
{
    const struct preprocess *fit = &t->setup->data->fit;
    AS_AUTO(as_freep) char *path = file_join(folder, "model.safetensors");
    AS_AUTO(as_freep) float *target = as_calloc(2 * fit->n_targets, sizeof *target);
    JSON_AUTO meta = artifacts_metadata(t->setup, t->m);
    if (!path || !target || !meta)
        return as_fail_nomem(err);
    for (size_t i = 0; i < fit->n_targets; i++) {
        target[i] = (float)fit->target_mean[i];
        target[fit->n_targets + i] = (float)fit->target_scale[i];
    }
    const struct safetensors_tensor all[] = {
        {.name = tree_model_tensor(&t->m->spec.model),
         .type = SAFETENSORS_U8,
         .n_dims = 1,
         .shape = {len},
         .data = trees},
        {.name = "target.mean", .n_dims = 1, .shape = {fit->n_targets}, .data = target},
        {.name = "target.scale",
         .n_dims = 1,
         .shape = {fit->n_targets},
         .data = target + fit->n_targets},
        {.name = "input.mean", .n_dims = 1, .shape = {fit->n_scales}, .data = fit->mean},
        {.name = "input.scale", .n_dims = 1, .shape = {fit->n_scales}, .data = fit->scale},
    };
    return write_tensors(path, meta, all, fit, !train_model_sees_cells(&t->m->spec.model), err);
}

static as_status write_importance(const struct tree_trial *t, const char *folder,
                                  const struct tree_model *model, struct as_err *err)
{
    JSON_AUTO scores = NULL;
    if (!train_model_is_trees(&t->m->spec.model))
        return AS_OK;
    as_status st = tree_model_importance(model, t->setup->info, &scores, err);
    return st == AS_OK ? importance_file_write(folder, scores, err) : st;
}

as_status tree_trial_write_artifacts(const struct tree_trial *t, const struct tree_model *model,
                                     const char *trees, size_t len, struct as_err *err)
{
    const char *folder = t->m->artifacts;
    if (!folder)
        return AS_OK;
    as_status st = artifacts_write_held(folder, t->setup, t->m, t->values, err);
    if (st == AS_OK)
        st = artifacts_write_preprocessing(folder, t->setup, err);
    if (st == AS_OK)
        st = write_importance(t, folder, model, err);
    if (st == AS_OK)
        st = write_model(t, folder, trees, len, err);
    return st == AS_OK ? test_rows_write(folder, t->setup->job, t->setup->threads, err) : st;
}
