/* Predicts the test rows with the model that a trial has left, and measures the predictions.
 *
 * Rows are cut into as many parts as there are threads; each has a predictor of its own. The
 * prediction of a row depends on the row alone (predictor.h), so the parts do not show.
 *
 * Weights of rows count here as they count on the held-out rows. They are read as text from the
 * file, like those of the training part (row_roles.c). */
#include "trial-runner/train/test_rows.h"

#include <pthread.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "data/dataset_read.h"
#include "data/dataset_view.h"
#include "data/formats/npy.h"
#include "data/preprocess/holdout.h"
#include "model/file/model_file.h"
#include "model/network/metrics.h"
#include "model/plan/net_data.h"
#include "model/predict/predictor.h"
#include "trial-runner/train/buckets_file.h"

#define ROWS_OF_THREAD ((size_t)256) /* fewer are not worth a thread */

struct test_rows {
    const char *folder;
    const struct job *job;
    struct model_file *file;
    const struct train_spec *spec; /* view of file */
    struct dataset set;
    float *weights;   /* [rows], or NULL */
    float *predicted; /* [rows, outputs] */
};

static void test_rows_done(struct test_rows *t)
{
    model_file_free(t->file);
    dataset_done(&t->set);
    free(t->weights);
    free(t->predicted);
}

/* ---- reading ---- */

static struct dataset_paths test_paths(const struct job *job)
{
    return (struct dataset_paths){
        .table = job->test, .features = job->test_features, .targets = job->test_targets};
}

/* The record of the data set with the number of test rows; borrows from the job. */
static struct dataset_info test_info(const struct job *job)
{
    struct dataset_info info = job->info;
    info.n_rows = (size_t)job->test_rows;
    return info;
}

static as_status read_weights(struct test_rows *t, struct as_err *err)
{
    AS_AUTO(dataset_cells_done) struct dataset_cells cells = {0};
    const struct dataset_paths paths = test_paths(t->job);
    const struct dataset_info info = test_info(t->job);
    as_status st = dataset_read_cells(&paths, &info, t->spec->weights, &cells, err);
    if (st != AS_OK)
        return st;
    t->weights = as_calloc(info.n_rows, sizeof *t->weights);
    return t->weights ? holdout_weights(&cells, t->spec->weights, t->weights, err)
                      : as_fail_nomem(err);
}

/* Read the rows as the model sees them: without the columns that it uses for something else. */
static as_status read_rows(struct test_rows *t, struct as_err *err)
{
    const struct job *job = t->job;
    const struct dataset_paths paths = test_paths(job);
    size_t columns[SPEC_MAX_COLUMNS], n = spec_columns(&job->info, t->spec, columns);
    as_status st = dataset_test_load(&paths, &job->info, job->test_rows, &t->set, err);
    if (st == AS_OK && t->spec->weights)
        st = read_weights(t, err);
    if (st == AS_OK)
        dataset_without(&t->set, &job->info, columns, n);
    return st;
}

static as_status read_model(struct test_rows *t, struct as_err *err)
{
    AS_AUTO(as_freep) char *path = file_join(t->folder, "model.safetensors");
    as_status st =
        path ? model_file_read(path, MODEL_FILE_MAX_BYTES, &t->file, err) : as_fail_nomem(err);
    if (st == AS_OK)
        t->spec = model_file_member(t->file, 0)->spec;
    return st;
}

/* ---- predicting ---- */

struct part {
    struct test_rows *t;
    size_t first, n; /* rows */
    as_status st;
    struct as_err err;
};

static void *predict_part(void *arg)
{
    struct part *p = arg;
    const struct test_rows *t = p->t;
    AS_AUTO(predictor_freep) struct predictor *predictor = NULL;
    p->st = predictor_create(t->file, 0, &predictor, &p->err);
    if (p->st == AS_OK)
        p->st = predictor_run(predictor, t->set.x + p->first * t->set.n_features, p->n,
                              t->predicted + p->first * t->set.n_outputs, &p->err);
    return NULL;
}

static as_status predict(struct test_rows *t, size_t threads, struct as_err *err)
{
    size_t rows = t->set.n_rows, most = rows / ROWS_OF_THREAD + 1, started = 0;
    size_t n = threads < 1 ? 1 : threads < most ? threads : most;
    AS_AUTO(as_freep) struct part *part = as_calloc(n, sizeof *part);
    AS_AUTO(as_freep) pthread_t *thread = as_calloc(n, sizeof *thread);
    t->predicted = as_calloc(rows * t->set.n_outputs, sizeof *t->predicted);
    if (!part || !thread || !t->predicted)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu test rows", rows);
    for (size_t i = 0; i < n; i++) {
        size_t first = rows * i / n;
        part[i] = (struct part){.t = t, .first = first, .n = rows * (i + 1) / n - first};
    }
    while (started + 1 < n &&
           pthread_create(&thread[started], NULL, predict_part, &part[started]) == 0)
        started++;
    for (size_t i = started; i < n; i++) /* the last one, and those that got no thread */
        (void)predict_part(&part[i]);
    for (size_t i = 0; i < started; i++)
        (void)pthread_join(thread[i], NULL);
    for (size_t i = 0; i < n; i++)
        if (part[i].st != AS_OK)
            return as_fail(err, part[i].st, "%s", part[i].err.msg);
    return AS_OK;
}

/* ---- figures ---- */

/* `name` is that of a report: val_error. */
static as_status add_metric(json_t *metrics, const char *name, const struct metric_input *in,
                            struct as_err *err)
{
    double v = 0;
    as_status st = metric_compute(name, in, &v, err);
    if (st != AS_OK)
        return st;
    return json_object_set_new(metrics, name + strlen("val_"), json_number_new(v)) == 0
               ? AS_OK
               : as_fail_nomem(err);
}

static as_status measure(const struct test_rows *t, json_t *metrics, struct as_err *err)
{
    static const char *const of_classes[] = {
        "val_error", "val_accuracy", "val_balanced_accuracy", "val_log_loss",
        "val_auc",   "val_f1",       "val_average_precision", "val_brier"};
    static const char *const of_numbers[] = {"val_rmse", "val_mae", "val_r2", "val_mape"};
    const struct metric_input in = {.n = t->set.n_rows,
                                    .outputs = t->set.n_outputs,
                                    .labels = t->set.labels,
                                    .targets = t->set.targets,
                                    .predicted = t->predicted,
                                    .weights = t->weights};
    const char *const *names = t->set.labels ? of_classes : of_numbers;
    size_t n = t->set.labels ? AS_ARRAY_LEN(of_classes) : AS_ARRAY_LEN(of_numbers);
    as_status st = AS_OK;
    for (size_t i = 0; st == AS_OK && i < n; i++)
        st = add_metric(metrics, names[i], &in, err);
    for (size_t i = 0; st == AS_OK && i < t->spec->n_metrics; i++)
        st = add_metric(metrics, t->spec->metrics[i], &in, err);
    bool asked = t->job->metric && train_spec_on_request(t->job->info.task, t->job->metric);
    if (st == AS_OK && asked)
        st = add_metric(metrics, t->job->metric, &in, err);
    if (st == AS_OK && !t->set.labels &&
        json_object_set_new(metrics, "mse", json_number_new(metric_mse(&in))) != 0)
        return as_fail_nomem(err);
    return st;
}

/* ---- files ---- */

static as_status write_array(const struct test_rows *t, const char *name, npy_type type,
                             const size_t *shape, size_t n_dims, const void *data,
                             struct as_err *err)
{
    AS_AUTO(as_freep) char *path = file_join(t->folder, name);
    return path ? npy_write(path, type, shape, n_dims, data, err) : as_fail_nomem(err);
}

static as_status write_buckets(const struct test_rows *t, struct as_err *err)
{
    const struct dataset_paths paths = test_paths(t->job);
    const struct dataset_info info = test_info(t->job);
    AS_AUTO(as_freep) char *path = file_join(t->folder, "test_buckets.json");
    if (!t->spec->buckets)
        return AS_OK;
    return path ? buckets_file_write(path, &paths, &info, t->spec->buckets, NULL, 0, err)
                : as_fail_nomem(err);
}

static as_status write_arrays(const struct test_rows *t, struct as_err *err)
{
    const struct dataset *d = &t->set;
    const size_t shape[] = {d->n_rows, d->n_outputs};
    as_status st = write_array(t, "test_predictions.npy", NPY_F4, shape, 2, t->predicted, err);
    if (st == AS_OK && t->weights)
        st = write_array(t, "test_weights.npy", NPY_F4, shape, 1, t->weights, err);
    if (st != AS_OK || !d->labels)
        return st == AS_OK ? write_array(t, "test_targets.npy", NPY_F4, shape, 2, d->targets, err)
                           : st;
    AS_AUTO(as_freep) int64_t *classes = as_calloc(d->n_rows, sizeof *classes);
    if (!classes)
        return as_fail_nomem(err);
    for (size_t i = 0; i < d->n_rows; i++)
        classes[i] = d->labels[i];
    return write_array(t, "test_targets.npy", NPY_I8, shape, 1, classes, err);
}

static as_status write_figures(const struct test_rows *t, struct as_err *err)
{
    JSON_AUTO metrics = json_object();
    as_status st = metrics ? measure(t, metrics, err) : as_fail_nomem(err);
    if (st != AS_OK)
        return st;
    JSON_AUTO all = json_pack("{s:I, s:O}", "rows", (json_int_t)t->set.n_rows, "metrics", metrics);
    AS_AUTO(as_freep) char *text = all ? json_format_pretty(all) : NULL;
    AS_AUTO(as_freep) char *path = file_join(t->folder, "test.json");
    if (!text || !path)
        return as_fail_nomem(err);
    const struct iovec part = {text, strlen(text)};
    return file_publishv(path, &part, 1, 0644, err);
}

as_status test_rows_write(const char *folder, const struct job *job, size_t threads,
                          struct as_err *err)
{
    AS_AUTO(test_rows_done) struct test_rows t = {.folder = folder, .job = job};
    if (job->test_rows == 0)
        return AS_OK;
    as_status st = read_model(&t, err);
    if (st == AS_OK)
        st = read_rows(&t, err);
    if (st == AS_OK)
        st = predict(&t, threads, err);
    if (st == AS_OK)
        st = write_arrays(&t, err);
    if (st == AS_OK)
        st = write_buckets(&t, err);
    if (st == AS_OK)
        st = write_figures(&t, err);
    return st == AS_OK ? AS_OK : as_err_prefix(err, st, "test rows");
}
