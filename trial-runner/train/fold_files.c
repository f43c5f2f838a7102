/* What the folds of a trial leave, put together: held-out predictions in the order of the table's
 * rows, and the models as one. */
#include "trial-runner/train/folds_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "model/file/model_file.h"
#include "trial-runner/train/artifacts.h"
#include "trial-runner/train/buckets_file.h"
#include "trial-runner/train/importance_file.h"
#include "trial-runner/train/test_rows.h"

as_status fold_array_open(const char *folder, const char *name, struct npy **ret,
                          struct as_err *err)
{
    AS_AUTO(as_freep) char *path = file_join(folder, name);
    return path ? npy_open(path, ret, err) : as_fail_nomem(err);
}

/* The trainings whose models are the trial's. */
static const struct fold *parts_of(const struct folds *f, size_t *ret_n)
{
    *ret_n = f->refit ? 1 : f->k;
    return f->refit ? &f->fold[f->k] : f->fold;
}

/* ---- predictions ---- */

/* Copy the rows of one fold's array to their places. `values` is [rows, width]. */
static as_status place_rows(const struct fold *fold, const char *name, size_t width, size_t n_rows,
                            double *values, struct as_err *err)
{
    AS_AUTO(npy_freep) struct npy *rows = NULL, *array = NULL;
    as_status st = fold_array_open(fold->dir, FOLD_ROWS_NAME, &rows, err);
    if (st == AS_OK)
        st = fold_array_open(fold->dir, name, &array, err);
    for (size_t i = 0; st == AS_OK && i < fold->n; i++) {
        double row = 0;
        st = npy_read(rows, 1, &row, err);
        if (st == AS_OK && !(row >= 0 && row < (double)n_rows))
            return as_fail(err, AS_E_INVAL, "%s/%s: row %g of %zu", fold->dir, FOLD_ROWS_NAME, row,
                           n_rows);
        if (st == AS_OK)
            st = npy_read(array, width, values + (size_t)row * width, err);
    }
    return st;
}

static as_status write_values(const char *folder, const char *name, npy_type type, size_t rows,
                              size_t width, bool flat, const double *values, struct as_err *err)
{
    AS_AUTO(as_freep) char *path = file_join(folder, name);
    size_t n = rows * width;
    AS_AUTO(as_freep) float *numbers = type == NPY_F4 ? as_calloc(n, sizeof *numbers) : NULL;
    AS_AUTO(as_freep) int64_t *whole = type == NPY_F4 ? NULL : as_calloc(n, sizeof *whole);
    if (!path || !(numbers || whole))
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        if (numbers)
            numbers[i] = (float)values[i];
        else
            whole[i] = (int64_t)values[i];
    }
    const void *data = numbers ? (const void *)numbers : whole;
    return npy_write(path, type, (size_t[]){rows, width}, flat ? 1 : 2, data, err);
}

/* Put the array `name` of all folds together. */
static as_status join_array(const struct folds *f, const char *name, struct as_err *err)
{
    size_t n_rows = 0, dims, width;
    npy_type type;
    AS_AUTO(npy_freep) struct npy *first = NULL;
    as_status st = fold_array_open(f->fold[0].dir, name, &first, err);
    if (st != AS_OK)
        return st;
    dims = npy_header_of(first)->n_dims;
    width = dims > 1 ? npy_header_of(first)->shape[1] : 1;
    type = npy_header_of(first)->type;
    for (size_t i = 0; i < f->k; i++)
        n_rows += f->fold[i].n;
    AS_AUTO(as_freep) double *values = as_calloc(n_rows * width, sizeof *values);
    if (!values)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu predictions", n_rows);
    for (size_t i = 0; i < f->k; i++) {
        st = place_rows(&f->fold[i], name, width, n_rows, values, err);
        if (st != AS_OK)
            return st;
    }
    return write_values(f->member->artifacts, name, type, n_rows, width, dims == 1, values, err);
}

/* ---- the model ---- */

/* What is known of the model: the last report's held-out metrics. */
static json_t *about(const struct folds *f)
{
    JSON_AUTO metrics = json_object();
    const char *name;
    json_t *value;
    json_object_foreach(f->values, name, value)
    {
        if (json_is_number(value) && strncmp(name, "val_", 4) == 0 &&
            json_object_set(metrics, name, value) != 0)
            return NULL;
    }
    return json_pack("{s:O, s:s}", "metrics", metrics, "measured_on", "out-of-fold rows");
}

/* The model of a further layer has the models in it whose predictions it sees. */
static as_status write_stacked(const struct folds *f, const char *path,
                               const struct model_source *sources, size_t n, const json_t *known,
                               struct as_err *err)
{
    AS_AUTO(as_freep) char *own = file_join(f->root, "own.safetensors");
    const struct model_source source = {.path = own, .weight = 1};
    as_status st = own ? model_file_write(own, sources, n, NULL, NULL, err) : as_fail_nomem(err);
    if (st == AS_OK)
        st = model_file_write_stacked(path, &source, f->stacked.sources, f->stacked.n, known, err);
    return st;
}

/* The mean of the folds' models, or the one of all rows; each of them may be of several members, as
 * with snapshots. */
static as_status write_model(const struct folds *f, struct as_err *err)
{
    struct model_source sources[TRAIN_MAX_FOLDS];
    char seed[24];
    size_t n;
    const struct fold *parts = parts_of(f, &n);
    JSON_AUTO known = about(f);
    AS_AUTO(as_freep) char *path = file_join(f->member->artifacts, "model.safetensors");
    as_status st = path && known ? AS_OK : as_fail_nomem(err);
    (void)snprintf(seed, sizeof seed, "%llu", (unsigned long long)f->member->seed);
    for (size_t i = 0; i < n; i++) {
        sources[i] =
            (struct model_source){.path = parts[i].model, .weight = 1 / (double)n, .seed = seed};
    }
    if (st == AS_OK && stack_rows_wanted(f->job))
        return write_stacked(f, path, sources, n, known, err);
    return st == AS_OK ? model_file_write(path, sources, n, NULL, known, err) : st;
}

static as_status add_preprocessing(const struct fold *fold, json_t *list, struct as_err *err)
{
    AS_AUTO(as_freep) char *path = file_join(fold->dir, "preprocessing.json");
    AS_AUTO(as_freep) char *text = NULL;
    json_t *record = NULL;
    size_t len = 0;
    as_status st = path ? file_read(path, FOLD_MAX_TEXT, &text, &len, err) : as_fail_nomem(err);
    if (st == AS_OK)
        st = json_parse(text, len, &record, err);
    if (st != AS_OK)
        return st;
    return json_array_append_new(list, record) == 0 ? AS_OK : as_fail_nomem(err);
}

static as_status write_preprocessing(const struct folds *f, struct as_err *err)
{
    JSON_AUTO all = json_array();
    as_status st = AS_OK;
    size_t n;
    const struct fold *parts = parts_of(f, &n);
    for (size_t i = 0; i < n; i++)
        if ((st = add_preprocessing(&parts[i], all, err)) != AS_OK)
            return st;
    AS_AUTO(as_freep) char *text = json_format_pretty(all);
    AS_AUTO(as_freep) char *path = file_join(f->member->artifacts, "preprocessing.json");
    if (!text || !path)
        return as_fail_nomem(err);
    return file_replace(path, text, strlen(text), 0644, err);
}

/* Trees leave importance.json in each fold; other kinds do not. */
static as_status write_importance(const struct folds *f, struct as_err *err)
{
    JSON_AUTO mean = NULL;
    json_t *each[TRAIN_MAX_FOLDS] = {0};
    as_status st = AS_OK;
    size_t n;
    const struct fold *parts = parts_of(f, &n);
    for (size_t i = 0; st == AS_OK && i < n; i++)
        st = importance_file_read(parts[i].dir, &each[i], err);
    bool has_none = st == AS_E_NOT_FOUND && !each[0];
    if (st == AS_OK)
        st = importance_of_mean(each, n, &mean, err);
    for (size_t i = 0; i < n; i++)
        json_decref(each[i]);
    if (st != AS_OK)
        return has_none ? AS_OK : st;
    return importance_file_write(f->member->artifacts, mean, err);
}

static as_status write_buckets(const struct folds *f, struct as_err *err)
{
    const struct dataset_paths paths = job_paths(f->job);
    const char *column = json_string_value(json_object_get(f->member->train, "buckets"));
    AS_AUTO(as_freep) char *path = file_join(f->member->artifacts, "buckets.json");
    if (!column)
        return AS_OK;
    return path ? buckets_file_write(path, &paths, &f->job->info, column, NULL, 0, err)
                : as_fail_nomem(err);
}

as_status folds_write_files(const struct folds *f, size_t threads, struct as_err *err)
{
    if (!f->member->artifacts)
        return AS_OK;
    as_status st = join_array(f, "predictions.npy", err);
    if (st == AS_OK)
        st = join_array(f, "targets.npy", err);
    if (st == AS_OK && json_object_get(f->member->train, "weights"))
        st = join_array(f, "weights.npy", err);
    if (st == AS_OK)
        st = write_buckets(f, err);
    if (st == AS_OK)
        st = write_model(f, err);
    if (st == AS_OK)
        st = write_preprocessing(f, err);
    if (st == AS_OK)
        st = write_importance(f, err);
    if (st == AS_OK)
        st = test_rows_write(f->member->artifacts, f->job, threads, err);
    /* what is in the checkpoint folder is the runner's to remove */
    if (st == AS_OK && !f->member->checkpoints)
        st = file_remove_tree(f->root, err);
    return st;
}
