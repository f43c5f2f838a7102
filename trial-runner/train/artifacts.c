/* Writes what a member leaves when it has trained to the end: arrays of predictions and targets,
 * the model, the preprocessing record.
 *
 * The model file describes itself: its metadata has the train document, the data set's record and
 * the preprocessing, so that a program that loads it needs no other file and no server. Tensors are
 * written in the member's own shape, taken out of the padded arena of its lockstep
 * (slot_state_get), so the files do not show which group the member was in.
 *
 * Nothing is fsynced here: the runner makes all files of a trial durable at once (decision 7001).
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
#include "trial-runner/train/buckets_file.h"
#include "trial-runner/train/evaluate.h"
#include "trial-runner/train/test_rows.h"

#define TENSOR_NAME_MAX 320 /* bytes of a name with "members/I/" before it */

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

/* The rows of the file that the predictions of a fold are for. */
static as_status write_rows(const char *folder, const struct train_data *d, struct as_err *err)
{
    return write_array(folder, FOLD_ROWS_NAME, NPY_I4, &d->n_val, 1, d->val_rows, err);
}

static as_status write_buckets(const char *folder, const struct lockstep_setup *s,
                               const struct member *m, struct as_err *err)
{
    const struct train_data *d = s->data;
    const struct dataset_paths paths = job_paths(s->job);
    AS_AUTO(as_freep) char *path = file_join(folder, "buckets.json");
    return path ? buckets_file_write(path, &paths, &s->job->info, m->spec.buckets, d->held_rows,
                                     d->n_val, err)
                : as_fail_nomem(err);
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
    if (st == AS_OK && d->held_weights)
        st = write_array(folder, "weights.npy", NPY_F4, &d->n_val, 1, d->held_weights, err);
    if (st == AS_OK && m->spec.buckets && m->spec.folds == 0)
        st = write_buckets(folder, s, m, err);
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

/* The tensors of one or several weights of a member, in a list with their names. */
struct tensor_list {
    struct safetensors_tensor *tensors; /* owned */
    char (*names)[TENSOR_NAME_MAX];     /* owned; of those with a prefix */
    float *target;                      /* owned */
    size_t n;
};

static void tensor_list_done(struct tensor_list *l)
{
    free(l->tensors);
    free(l->names);
    free(l->target);
}

/* Room for `models` times what add_tensors() adds. */
static as_status tensor_list_init(struct tensor_list *l, const struct preprocess *fit,
                                  const struct net_plan *plan, size_t models, struct as_err *err)
{
    size_t n = models * (plan->n_tensors + plan->n_states + 4);
    l->tensors = as_calloc(n, sizeof *l->tensors);
    l->names = as_calloc(n, sizeof *l->names);
    l->target = as_calloc(2 * fit->n_targets, sizeof *l->target);
    if (!l->tensors || !l->names || !l->target)
        return as_fail_nomem(err);
    for (size_t t = 0; t < fit->n_targets; t++) {
        l->target[t] = (float)fit->target_mean[t];
        l->target[fit->n_targets + t] = (float)fit->target_scale[t];
    }
    return AS_OK;
}

static void add_tensors(struct tensor_list *l, const struct preprocess *fit,
                        const struct net_plan *plan, const float *params, const float *statistics)
{
    for (size_t i = 0; i < plan->n_tensors; i++)
        l->tensors[l->n++] = tensor_from_plan(&plan->tensors[i], params);
    for (size_t i = 0; i < plan->n_states; i++)
        l->tensors[l->n++] = tensor_from_plan(&plan->states[i], statistics);
    if (fit->n_scales > 0) {
        l->tensors[l->n++] = vector_tensor("input.mean", fit->n_scales, fit->mean);
        l->tensors[l->n++] = vector_tensor("input.scale", fit->n_scales, fit->scale);
    }
    if (fit->n_targets > 0) {
        l->tensors[l->n++] = vector_tensor("target.mean", fit->n_targets, l->target);
        l->tensors[l->n++] =
            vector_tensor("target.scale", fit->n_targets, l->target + fit->n_targets);
    }
}

static as_status write_one(const char *path, struct lockstep *ls, size_t slot, struct as_err *err)
{
    const struct member *m = ls->member[slot];
    const struct preprocess *fit = &ls->setup->data->fit;
    AS_AUTO(slot_state_done) struct slot_state state = {0};
    AS_AUTO(tensor_list_done) struct tensor_list list = {0};
    JSON_AUTO meta = artifacts_metadata(ls->setup, m);
    if (!meta)
        return as_fail_nomem(err);
    struct slot place = lockstep_slot(ls, slot);
    as_status st = slot_state_get(&place, &state, err);
    if (st == AS_OK)
        st = tensor_list_init(&list, fit, m->plan, 1, err);
    if (st != AS_OK)
        return st;
    add_tensors(&list, fit, m->plan, state.average ? state.average : state.params,
                state.statistics);
    return safetensors_write(path, meta, list.tensors, list.n, err);
}

/* ---- the model of snapshots: a model file (model/file) of several members ---- */

static json_t *parsed(const char *text)
{
    json_t *ret = NULL;
    return text && json_parse(text, strlen(text), &ret, NULL) == AS_OK ? ret : NULL;
}

static json_t *snapshot_members(const struct lockstep_setup *s, const struct member *m)
{
    char seed[24];
    JSON_AUTO train = parsed(m->train_text);
    JSON_AUTO record = preprocess_to_json(&s->data->fit, s->info);
    JSON_AUTO list = json_array();
    (void)snprintf(seed, sizeof seed, "%llu", (unsigned long long)m->seed);
    for (size_t i = 0; i < m->snapshots.n; i++) {
        json_t *member = json_pack("{s:f, s:O, s:O, s:s}", "weight", 1 / (double)m->snapshots.n,
                                   "train", train, "preprocessing", record, "seed", seed);
        if (json_array_append_new(list, member) != 0)
            return NULL;
    }
    return as_steal(list);
}

json_t *artifacts_last_metrics(const struct member *m)
{
    JSON_AUTO line = parsed(str_cstr(&m->last_report));
    JSON_AUTO metrics = json_object();
    const char *name;
    json_t *value;
    json_object_foreach(line, name, value)
    {
        if (json_is_number(value) && strncmp(name, "val_", 4) == 0 &&
            json_object_set(metrics, name, value) != 0)
            return NULL;
    }
    return as_steal(metrics);
}

static json_t *snapshots_metadata(const struct lockstep_setup *s, const struct member *m)
{
    JSON_AUTO info = dataset_info_to_json(s->info);
    JSON_AUTO members = snapshot_members(s, m);
    JSON_AUTO metrics = artifacts_last_metrics(m);
    JSON_AUTO model =
        json_pack("{s:O, s:{s:s}, s:O, s:O, s:s}", "dataset", info, "combine", "kind", "mean",
                  "members", members, "metrics", metrics, "measured_on", "held-out rows");
    AS_AUTO(as_freep) char *text = model ? json_format(model) : NULL;
    return text ? json_pack("{s:s, s:s, s:s}", "format", "assay-model", "version", "1", "model",
                            text)
                : NULL;
}

static as_status write_snapshots(const char *path, const struct lockstep_setup *s,
                                 const struct member *m, struct as_err *err)
{
    const struct net_plan *plan = m->plan;
    AS_AUTO(tensor_list_done) struct tensor_list list = {0};
    JSON_AUTO meta = snapshots_metadata(s, m);
    if (!meta)
        return as_fail_nomem(err);
    as_status st = tensor_list_init(&list, &s->data->fit, plan, m->snapshots.n, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < m->snapshots.n; i++) {
        const float *values = m->snapshots.values[i];
        size_t first = list.n;
        add_tensors(&list, &s->data->fit, plan, values, values + plan->n_params);
        for (size_t t = first; t < list.n; t++) {
            (void)snprintf(list.names[t], sizeof list.names[t], "members/%zu/%s", i,
                           list.tensors[t].name);
            list.tensors[t].name = list.names[t];
        }
    }
    return safetensors_write(path, meta, list.tensors, list.n, err);
}

static as_status write_model(const char *folder, struct lockstep *ls, size_t slot,
                             struct as_err *err)
{
    const struct member *m = ls->member[slot];
    AS_AUTO(as_freep) char *path = file_join(folder, "model.safetensors");
    if (!path)
        return as_fail_nomem(err);
    return m->snapshots.n > 0 ? write_snapshots(path, ls->setup, m, err)
                              : write_one(path, ls, slot, err);
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

as_status artifacts_write(struct lockstep *ls, struct backend *lane, size_t slot, const float *mean,
                          struct as_err *err)
{
    const char *folder = ls->member[slot]->artifacts;
    if (!folder)
        return AS_OK;
    as_status st = AS_OK;
    if (mean)
        st = artifacts_write_held(folder, ls->setup, ls->member[slot], mean, err);
    else if (!ls->setup->data->context)
        st = write_predictions(folder, ls, lane, slot, err);
    if (st != AS_OK)
        return st;
    st = artifacts_write_preprocessing(folder, ls->setup, err);
    if (st != AS_OK)
        return st;
    st = write_model(folder, ls, slot, err);
    return st == AS_OK ? test_rows_write(folder, ls->setup->job, ls->setup->threads, err) : st;
}
