#include "tests/support/tree_jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "data/dataset_json.h"
#include "data/dataset_read.h"
#include "data/formats/npy.h"
#include "data/preprocess/record.h"
#include "data/preprocess/train_data.h"
#include "model/network/outputs.h"
#include "model/trees/tree_inputs.h"
#include "tests/support/check_main.h"
#include "tests/support/roots.h"

struct as_err err;
struct child child;
char last[LINE];

void setup(void)
{
    child_setup(&child);
}

void teardown(void)
{
    child_teardown(&child);
}

char *in_dir(const char *name)
{
    return child_path(&child, name);
}

double field(const char *line, const char *name)
{
    JSON_AUTO j = NULL;
    double v = 0;
    ck_ok(json_parse(line, strlen(line), &j, &err), err);
    ck_assert_msg(json_number_get(json_object_get(j, name), &v), "%s in %s", name, line);
    return v;
}

/* ---- jobs ---- */

json_t *dataset_of(const char *path, const char *target, dataset_task task)
{
    const struct dataset_paths paths = {.table = path};
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    ck_ok(dataset_inspect(&paths, DATASET_CSV, target, task, NULL, &info, &err), err);
    json_t *j = dataset_info_to_json(&info);
    ck_assert_int_eq(json_object_set_new(j, "paths", json_pack("{s:s}", "table", path)), 0);
    return j;
}

void write_job(const json_t *dataset, const char *model, const char *more)
{
    AS_AUTO(as_freep) char *text = json_format(dataset);
    AS_AUTO(str_done) struct str b = {0};
    str_printf(&b, "{\"train\":{\"dataset\":\"d\",\"model\":{%s}%s},\"dataset\":%s}", model, more,
               text);
    child_write(&child, "job.json", b.s, b.len);
}

void digits_job(const char *model, const char *more)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/examples/digits.csv", source_root());
    JSON_AUTO dataset = dataset_of(path, "-1", DATASET_CLASSIFICATION);
    write_job(dataset, model, more);
}

void write_table(const char *name, size_t rows, bool classes)
{
    static const char *const colours[] = {"blue", "green", "red", "white", "black", "grey"};
    static const int value[] = {0, 9, 2, 11, 4, 7};
    AS_AUTO(str_done) struct str b = {0};
    struct rng r;
    rng_init(&r, 3, 5);
    str_puts(&b, "noise,width,colour,y\n");
    for (size_t i = 0; i < rows; i++) {
        double noise = rng_uniform(&r), x = rng_uniform(&r);
        size_t c = (size_t)rng_below(&r, 6);
        bool gap = rng_below(&r, 4) == 0;
        double y = value[c] + (gap ? 4 : 2 * x);
        str_printf(&b, "%.4f,", noise);
        if (!gap)
            str_printf(&b, "%.4f", x);
        str_printf(&b, ",%s,", colours[c]);
        if (classes)
            str_printf(&b, "%s\n", y > 7 ? "yes" : "no");
        else
            str_printf(&b, "%.4f\n", 1000 + 10 * y);
    }
    child_write(&child, name, b.s, b.len);
}

char *table_job(bool classes, const char *model, const char *more)
{
    write_table("t.csv", 800, classes);
    char *path = in_dir("t.csv");
    JSON_AUTO dataset =
        dataset_of(path, "y", classes ? DATASET_CLASSIFICATION : DATASET_REGRESSION);
    write_job(dataset, model, more);
    return path;
}

int run_job(void)
{
    int n = 0;
    char line[LINE];
    child_start(&child, "11", NULL);
    for (; child_line(&child, line, sizeof line); n++)
        (void)snprintf(last, sizeof last, "%s", line);
    int code = child_wait(&child);
    AS_AUTO(as_freep) char *text = child_read(&child, "err", NULL);
    ck_assert_msg(code == 0, "exit %d: %s", code, text);
    return n;
}

void run_ends(int code, const char *part)
{
    char line[LINE];
    child_start(&child, "11", NULL);
    while (child_line(&child, line, sizeof line))
        ;
    ck_assert_int_eq(child_wait(&child), code);
    AS_AUTO(as_freep) char *text = child_read(&child, "err", NULL);
    ck_assert_msg(strstr(text, part) != NULL, "'%s' is not in: %s", part, text);
}

/* ---- the stored model ---- */

static json_t *metadata(const struct safetensors *file, const char *key)
{
    json_t *doc = NULL;
    const char *text = safetensors_metadata(file, key);
    ck_assert_msg(text != NULL, "no %s", key);
    ck_ok(json_parse(text, strlen(text), &doc, &err), err);
    return doc;
}

void stored_read(struct stored *s)
{
    *s = (struct stored){0};
    AS_AUTO(as_freep) char *path = in_dir("artifacts/model.safetensors");
    ck_ok(safetensors_read(path, 1 << 26, &s->file, &err), err);
    JSON_AUTO spec = metadata(s->file, "train");
    JSON_AUTO info = metadata(s->file, "dataset");
    JSON_AUTO record = metadata(s->file, "preprocessing");
    ck_ok(train_spec_parse(spec, "/train", &s->spec, &err), err);
    ck_ok(dataset_info_from_json(info, "/dataset", &s->info, &err), err);
    ck_ok(preprocess_from_json(record, "/preprocessing", &s->info, &s->fit, &err), err);
    const struct safetensors_tensor *trees =
        safetensors_get(s->file, tree_model_tensor(&s->spec.model));
    ck_assert(trees && trees->type == SAFETENSORS_U8 && trees->n_dims == 1);
    ck_ok(tree_model_load(trees->data, trees->size_bytes, &s->spec, &s->info, 1, &s->model, &err),
          err);
}

void stored_done(struct stored *s)
{
    tree_model_free(s->model);
    safetensors_free(s->file);
    train_spec_done(&s->spec);
    dataset_info_done(&s->info);
    preprocess_done(&s->fit);
}

/* The rows held out, in the order of the recorded predictions. */
static int32_t *held_rows(const struct stored *s, const struct dataset_paths *paths, size_t *ret_n)
{
    struct dataset set;
    AS_AUTO(train_data_done) struct train_data d = {0};
    const struct preprocess_opts opts = {.split_seed = (uint64_t)s->spec.validation_seed,
                                         .n_validation =
                                             train_spec_validation_rows(&s->spec, s->info.n_rows)};
    ck_ok(dataset_load(paths, &s->info, &set, &err), err);
    ck_ok(train_data_prepare(&set, &s->info, &opts, &d, &err), err);
    int32_t *rows = as_calloc(d.n_val, sizeof *rows);
    ck_assert_ptr_nonnull(rows);
    memcpy(rows, d.val_rows, d.n_val * sizeof *rows);
    *ret_n = d.n_val;
    return rows;
}

double *recorded(const char *name, size_t *ret_n)
{
    AS_AUTO(as_freep) char *path = in_dir(name);
    AS_AUTO(npy_freep) struct npy *npy = NULL;
    ck_ok(npy_open(path, &npy, &err), err);
    *ret_n = npy_header_of(npy)->n_values;
    double *v = as_calloc(*ret_n, sizeof *v);
    ck_assert_ptr_nonnull(v);
    ck_ok(npy_read(npy, *ret_n, v, &err), err);
    return v;
}

void predicts_as_recorded(const char *path)
{
    AS_AUTO(stored_done) struct stored s = {0};
    AS_AUTO(dataset_done) struct dataset set = {0};
    AS_AUTO(as_freep) int32_t *codes = NULL;
    const struct dataset_paths paths = {.table = path};
    size_t n, n_recorded;
    stored_read(&s);
    AS_AUTO(as_freep) int32_t *rows = held_rows(&s, &paths, &n);
    AS_AUTO(as_freep) double *want = recorded("artifacts/predictions.npy", &n_recorded);
    ck_ok(dataset_load(&paths, &s.info, &set, &err), err);
    ck_ok(preprocess_apply(&s.fit, &s.info, &set, &codes, &err), err);
    size_t outputs = tree_model_outputs(s.model);
    ck_assert_uint_eq(n_recorded, n * outputs);
    AS_AUTO(as_freep) float *x = as_calloc(tree_model_inputs(s.model), sizeof *x);
    AS_AUTO(as_freep) float *got = as_calloc(outputs, sizeof *got);
    for (size_t i = 0; i < n; i++) {
        model_inputs_of(&s.spec, &s.info, set.x, codes, rows + i, 1, x);
        ck_ok(tree_model_predict(s.model, x, 1, got, &err), err);
        if (s.info.task == DATASET_REGRESSION)
            outputs_to_own_unit(got, 1, &s.fit);
        for (size_t c = 0; c < outputs; c++) {
            float expected = (float)want[i * outputs + c];
            ck_assert_msg(memcmp(&expected, &got[c], sizeof expected) == 0,
                          "row %zu column %zu: %.9g, recorded %.9g", i, c, (double)got[c],
                          (double)expected);
        }
    }
}
