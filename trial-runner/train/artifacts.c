/* Writes what a member leaves when it has trained to the end: arrays of predictions and targets,
 * the model, the preprocessing record.
 *
 * The model file describes itself: its metadata has the train document, the data set's record and
 * the preprocessing, so that a program that loads it needs no other file and no server. Tensors are
 * written in the member's own shape, taken out of the padded arena of its lockstep
 * (slot_state_get), so the files do not show which group the member was in.
 *
 * Nothing is fsynced here: the runner makes all files of a trial durable at once (decision 0132).
 * */
#include "trial-runner/train/artifacts.h"

#include <stdio.h>
#include <string.h>

#include "data/dataset_json.h"
#include "base/file.h"
#include "data/formats/npy.h"
#include "data/formats/safetensors.h"
#include "data/preprocess/record.h"
#include "base/json.h"
#include "trial-runner/train/evaluate.h"
#include "trial-runner/train/test_rows.h"

static as_status write_array(const char *folder, const char *name, npy_type type,
                             const size_t *shape, size_t n_dims, const void *data,
                             struct as_err *err)
{
    AS_AUTO(as_freep) char *path = file_join(folder, name);
    if (!path)
        return as_fail_nomem(err);
    return npy_write(path, type, shape, n_dims, data, err);
}

static as_status write_targets(const char *folder, const struct train_data *d, struct as_err *err)
{
    if (!d->set.labels)
        return write_array(folder, "targets.npy", NPY_F4, (size_t[]){d->n_val, d->n_targets}, 2,
                           d->val_targets, err);
    AS_AUTO(as_freep) int64_t *classes = as_calloc(d->n_val, sizeof *classes);
    if (!classes)
        return as_fail_nomem(err);
    for (size_t i = 0; i < d->n_val; i++)
        classes[i] = d->set.labels[d->val_rows[i]];
    return write_array(folder, "targets.npy", NPY_I8, &d->n_val, 1, classes, err);
}

/* Of a fold: which rows of the file the predictions are of. */
static as_status write_rows(const char *folder, const struct train_data *d, struct as_err *err)
{
    return write_array(folder, FOLD_ROWS_NAME, NPY_I4, &d->n_val, 1, d->val_rows, err);
}

as_status artifacts_write_held(const char *folder, const struct lockstep_setup *s,
                               const struct member *m, const float *values, struct as_err *err)
{
    const struct train_data *d = s->data;
    as_status st = write_array(folder, "predictions.npy", NPY_F4,
                               (size_t[]){d->n_val, evaluate_columns(s)}, 2, values, err);
    if (st != AS_OK)
        return st;
    st = write_targets(folder, d, err);
    return st == AS_OK && m->spec.folds > 0 ? write_rows(folder, d, err) : st;
}

static as_status write_predictions(const char *folder, struct lockstep *ls, struct backend *lane,
                                   size_t slot, struct as_err *err)
{
    AS_AUTO(as_freep) float *values = NULL;
    as_status st = evaluate_predict(ls, lane, slot, &values, err);
    if (st != AS_OK)
        return st;
    return artifacts_write_held(folder, ls->setup, ls->member[slot], values, err);
}

/* ---- the model ---- */

json_t *artifacts_metadata(const struct lockstep_setup *s, const struct member *m)
{
    JSON_AUTO info = dataset_info_to_json(s->info);
    JSON_AUTO record = preprocess_to_json(&s->data->fit, s->info);
    AS_AUTO(as_freep) char *dataset = info ? json_format(info) : NULL;
    AS_AUTO(as_freep) char *preprocessing = record ? json_format_ordered(record) : NULL;
    if (!dataset || !preprocessing)
        return NULL;
    return json_pack("{s:s, s:s, s:s, s:s, s:s}", "format", "assay-model-1", "train", m->train_text,
                     "dataset", dataset, "preprocessing", preprocessing, "fingerprint",
                     m->fingerprint);
}

static struct safetensors_tensor tensor_from_plan(const struct net_tensor *t, const float *values)
{
    struct safetensors_tensor r = {
        .name = t->name, .n_dims = t->n_dims, .data = values + t->offset};
    for (size_t i = 0; i < t->n_dims; i++)
        r.shape[i] = t->dims[i];
    return r; /* its type stays F32, which is the zero value */
}

static struct safetensors_tensor vector_tensor(const char *name, size_t n, const float *values)
{
    return (struct safetensors_tensor){.name = name, .n_dims = 1, .shape = {n}, .data = values};
}

static as_status write_tensors(const char *path, const json_t *meta, const struct lockstep_setup *s,
                               const struct member *m, const struct slot_state *state,
                               struct as_err *err)
{
    const struct net_plan *plan = m->plan;
    const struct train_data *d = s->data;
    const struct preprocess *fit = &d->fit;
    const float *params = state->average ? state->average : state->params;
    size_t n = 0;
    AS_AUTO(as_freep)
    struct safetensors_tensor *list = as_calloc(plan->n_tensors + plan->n_states + 4, sizeof *list);
    AS_AUTO(as_freep) float *target = as_calloc(2 * fit->n_targets, sizeof *target);
    if (!list || !target)
        return as_fail_nomem(err);
    for (size_t i = 0; i < plan->n_tensors; i++)
        list[n++] = tensor_from_plan(&plan->tensors[i], params);
    for (size_t i = 0; i < plan->n_states; i++)
        list[n++] = tensor_from_plan(&plan->states[i], state->statistics);
    if (fit->n_scales > 0) {
        list[n++] = vector_tensor("input.mean", fit->n_scales, fit->mean);
        list[n++] = vector_tensor("input.scale", fit->n_scales, fit->scale);
    }
    for (size_t t = 0; t < fit->n_targets; t++) {
        target[t] = (float)fit->target_mean[t];
        target[fit->n_targets + t] = (float)fit->target_scale[t];
    }
    if (fit->n_targets > 0) {
        list[n++] = vector_tensor("target.mean", fit->n_targets, target);
        list[n++] = vector_tensor("target.scale", fit->n_targets, target + fit->n_targets);
    }
    return safetensors_write(path, meta, list, n, err);
}

static as_status write_model(const char *folder, struct lockstep *ls, size_t slot,
                             struct as_err *err)
{
    const struct member *m = ls->member[slot];
    AS_AUTO(as_freep) char *path = file_join(folder, "model.safetensors");
    AS_AUTO(slot_state_done) struct slot_state state = {0};
    JSON_AUTO meta = artifacts_metadata(ls->setup, m);
    if (!path || !meta)
        return as_fail_nomem(err);
    struct slot place = lockstep_slot(ls, slot);
    as_status st = slot_state_get(&place, &state, err);
    if (st != AS_OK)
        return st;
    return write_tensors(path, meta, ls->setup, m, &state, err);
}

/* The record that the model's metadata has too, as a file that people can read. */
as_status artifacts_write_preprocessing(const char *folder, const struct lockstep_setup *s,
                                        struct as_err *err)
{
    AS_AUTO(as_freep) char *path = file_join(folder, "preprocessing.json");
    JSON_AUTO record = preprocess_to_json(&s->data->fit, s->info);
    AS_AUTO(as_freep) char *text = record ? json_format_pretty(record) : NULL;
    if (!path || !text)
        return as_fail_nomem(err);
    const struct iovec part = {text, strlen(text)};
    return file_publishv(path, &part, 1, 0644, err);
}

as_status artifacts_write(struct lockstep *ls, struct backend *lane, size_t slot,
                          struct as_err *err)
{
    const char *folder = ls->member[slot]->artifacts;
    if (!folder)
        return AS_OK;
    as_status st = AS_OK;
    if (!ls->setup->data->context)
        st = write_predictions(folder, ls, lane, slot, err);
    if (st != AS_OK)
        return st;
    st = artifacts_write_preprocessing(folder, ls->setup, err);
    if (st != AS_OK)
        return st;
    st = write_model(folder, ls, slot, err);
    return st == AS_OK ? test_rows_write(folder, ls->setup->job, ls->setup->threads, err) : st;
}
