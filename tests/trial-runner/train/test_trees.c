/* Models of trees in assay-train, a process of its own, with XGBoost's real library: what they learn,
 * what they leave, that a stopped or killed run ends with the bits of one that was not, and what
 * happens on a machine without the library. This program reads the stored models with model/trees. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "data/dataset_json.h"
#include "data/dataset_read.h"
#include "data/formats/npy.h"
#include "data/formats/safetensors.h"
#include "data/preprocess/record.h"
#include "data/preprocess/train_data.h"
#include "model/network/outputs.h"
#include "model/trees/tree_inputs.h"
#include "model/trees/tree_model.h"
#include "model/trees/xgboost.h"
#include "tests/support/check_main.h"
#include "tests/support/child.h"
#include "tests/support/roots.h"

#define LINE 1024

static struct as_err err;
static struct child child;
static char last[LINE]; /* the last report */

static void setup(void)
{
    child_setup(&child);
}

static void teardown(void)
{
    child_teardown(&child);
}

static char *in_dir(const char *name)
{
    char *path = file_join(child.dir, name);
    ck_assert_ptr_nonnull(path);
    return path;
}

static double field(const char *line, const char *name)
{
    JSON_AUTO j = NULL;
    double v = 0;
    ck_ok(json_parse(line, strlen(line), &j, &err), err);
    ck_assert_msg(json_number_get(json_object_get(j, name), &v), "%s in %s", name, line);
    return v;
}

/* ---- jobs ---- */

/* The data set of a CSV file, as a job has it. */
static json_t *dataset_of(const char *path, const char *target, dataset_task task)
{
    const struct dataset_paths paths = {.table = path};
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    ck_ok(dataset_inspect(&paths, DATASET_CSV, target, task, NULL, &info, &err), err);
    json_t *j = dataset_info_to_json(&info);
    ck_assert_int_eq(json_object_set_new(j, "paths", json_pack("{s:s}", "table", path)), 0);
    return j;
}

static void write_job(const json_t *dataset, const char *model, const char *more)
{
    AS_AUTO(as_freep) char *text = json_format(dataset);
    AS_AUTO(str_done) struct str b = {0};
    str_printf(&b, "{\"train\":{\"dataset\":\"d\",\"model\":{%s}%s},\"dataset\":%s}", model, more,
               text);
    child_write(&child, "job.json", b.s, b.len);
}

static void digits_job(const char *model, const char *more)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/examples/digits.csv", source_root());
    JSON_AUTO dataset = dataset_of(path, "-1", DATASET_CLASSIFICATION);
    write_job(dataset, model, more);
}

/* Numbers, of which one is sometimes missing, a category that decides most, and noise. Where the
 * number is missing the target is 4 higher: only a model that sees the gap knows. */
static void write_table(const char *name, size_t rows, bool classes)
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

static char *table_job(bool classes, const char *model, const char *more)
{
    write_table("t.csv", 800, classes);
    char *path = in_dir("t.csv");
    JSON_AUTO dataset =
        dataset_of(path, "y", classes ? DATASET_CLASSIFICATION : DATASET_REGRESSION);
    write_job(dataset, model, more);
    return path;
}

/* Run the job to its end; returns the number of reports. */
static int run_job(void)
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

/* The job must end with this code, and this in the last line of its stderr. */
static void run_ends(int code, const char *part)
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

struct stored {
    struct safetensors *file;
    struct train_spec spec;
    struct dataset_info info;
    struct preprocess fit;
    struct tree_model *model;
};

static void stored_read(struct stored *s)
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
    const struct safetensors_tensor *trees = safetensors_get(s->file, "trees");
    ck_assert(trees && trees->type == SAFETENSORS_U8 && trees->n_dims == 1);
    ck_ok(tree_model_load(trees->data, trees->size_bytes, &s->spec, &s->info, 1, &s->model, &err),
          err);
}

static void stored_done(struct stored *s)
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

static double *recorded(const char *name, size_t *ret_n)
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

/* The stored model, in this process and one row at a time, predicts what the trainer recorded. */
static void predicts_as_recorded(const char *path)
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
        tree_inputs_of(&s.info, set.x, codes, rows + i, 1, x);
        ck_ok(tree_model_predict(s.model, x, 1, got, &err), err);
        if (s.info.task == DATASET_REGRESSION)
            outputs_to_own_unit(got, 1, outputs, s.fit.target_mean, s.fit.target_scale);
        for (size_t c = 0; c < outputs; c++) {
            float expected = (float)want[i * outputs + c];
            ck_assert_msg(memcmp(&expected, &got[c], sizeof expected) == 0,
                          "row %zu column %zu: %.9g, recorded %.9g", i, c, (double)got[c],
                          (double)expected);
        }
    }
}

/* ---- what they learn ---- */

/* Guessing the most frequent class has an error of 0.89, a linear model about 0.04. */
START_TEST(boosted_digits)
{
    digits_job("\"kind\":\"boosted_trees\",\"n_estimators\":40,\"learning_rate\":0.2,"
               "\"subsample\":0.8,\"colsample_bytree\":0.5",
               ",\"metrics\":[\"val_auc\",\"val_log_loss\",\"val_top5\",\"val_f1\"]");
    ck_assert_int_eq(run_job(), 20);
    ck_assert_double_eq(field(last, "step"), 40);
    ck_assert_double_lt(field(last, "val_error"), 0.05);
    ck_assert_double_gt(field(last, "val_auc"), 0.99);
    ck_assert_double_gt(field(last, "val_f1"), 0.94);
    ck_assert_double_ge(field(last, "val_top5"), 0.99);
    ck_assert_double_eq_tol(field(last, "val_log_loss"), field(last, "val_loss"), 1e-9);
    ck_assert_double_lt(field(last, "train_loss"), field(last, "val_loss"));
    AS_AUTO(as_freep) char *path = file_join(source_root(), "examples/digits.csv");
    predicts_as_recorded(path);
}
END_TEST

START_TEST(forest_of_digits)
{
    digits_job("\"kind\":\"random_forest\",\"n_estimators\":60", ",\"report_every\":20");
    ck_assert_int_eq(run_job(), 3);
    ck_assert_double_lt(field(last, "val_error"), 0.06);
    AS_AUTO(as_freep) char *path = file_join(source_root(), "examples/digits.csv");
    predicts_as_recorded(path);
}
END_TEST

/* The target has a deviation of 41. Without the category a model stays above 38, without the gaps
 * above 10. */
START_TEST(categories_and_gaps)
{
    static const char *const models[] = {"\"kind\":\"boosted_trees\",\"n_estimators\":60",
                                         "\"kind\":\"random_forest\",\"n_estimators\":60"};
    for (size_t i = 0; i < AS_ARRAY_LEN(models); i++) {
        AS_AUTO(as_freep) char *path = table_job(false, models[i], "");
        (void)run_job();
        ck_assert_msg(field(last, "val_rmse") < 2, "%s", last);
        ck_assert_double_gt(field(last, "val_r2"), 0.99);
        predicts_as_recorded(path);
        teardown();
        setup();
    }
}
END_TEST

START_TEST(losses_and_weights)
{
    AS_AUTO(as_freep)
    char *path =
        table_job(true, "\"kind\":\"boosted_trees\",\"n_estimators\":30",
                  ",\"loss\":\"bce\",\"class_weights\":\"balanced\",\"metrics\":[\"val_auc\"]");
    (void)run_job();
    ck_assert_double_lt(field(last, "val_error"), 0.05);
    predicts_as_recorded(path);
    free(as_steal(path));
    teardown();
    setup();
    path = table_job(false, "\"kind\":\"boosted_trees\",\"n_estimators\":80",
                     ",\"loss\":\"huber\",\"huber_delta\":0.5");
    (void)run_job();
    ck_assert_double_lt(field(last, "val_rmse"), 8);
    predicts_as_recorded(path);
}
END_TEST

/* The column that decides is worth most, and noise least. */
START_TEST(importance)
{
    AS_AUTO(as_freep)
    char *path =
        table_job(false, "\"kind\":\"boosted_trees\",\"n_estimators\":20,\"max_depth\":4", "");
    (void)run_job();
    AS_AUTO(as_freep) char *text = child_read(&child, "artifacts/importance.json", NULL);
    JSON_AUTO doc = NULL;
    ck_ok(json_parse(text, strlen(text), &doc, &err), err);
    const json_t *list = json_object_get(doc, "columns");
    ck_assert_uint_ge(json_array_size(list), 2);
    double sum = 0, before = 1;
    for (size_t i = 0; i < json_array_size(list); i++) {
        double share = json_number_value(json_object_get(json_array_get(list, i), "share"));
        ck_assert_double_le(share, before);
        sum += before = share;
    }
    ck_assert_double_eq_tol(sum, 1, 1e-6);
    const json_t *first = json_array_get(list, 0);
    ck_assert_str_eq(json_string_value(json_object_get(first, "column")), "colour");
    ck_assert_double_gt(json_number_value(json_object_get(first, "share")), 0.7);
}
END_TEST

/* ---- ends ---- */

/* The last report is of the model that is kept: its loss is the least of all reports, and the
 * recorded predictions have it. */
START_TEST(early_stopping)
{
    char line[LINE];
    double best = INFINITY, best_step = 0;
    digits_job("\"kind\":\"boosted_trees\",\"n_estimators\":2000,\"learning_rate\":0.5,"
               "\"max_depth\":3,\"early_stopping_rounds\":5",
               ",\"report_every\":1");
    child_start(&child, "11", NULL);
    while (child_line(&child, line, sizeof line)) {
        (void)snprintf(last, sizeof last, "%s", line);
        if (field(line, "val_loss") < best) {
            best = field(line, "val_loss");
            best_step = field(line, "step");
        }
    }
    ck_assert_int_eq(child_wait(&child), 0);
    ck_assert_double_lt(field(last, "step"), 2000);
    ck_assert_double_eq(field(last, "step"), best_step + 5);
    ck_assert_double_eq_tol(field(last, "val_loss"), best, 1e-6);
    AS_AUTO(stored_done) struct stored s = {0};
    stored_read(&s);
    ck_assert_double_eq((double)tree_model_rounds(s.model), best_step);
    AS_AUTO(as_freep) char *path = file_join(source_root(), "examples/digits.csv");
    predicts_as_recorded(path);
}
END_TEST

/* Stopped and killed by turns, it ends with the files of a run that was left alone. */
static void resumes(const char *model, const char *more)
{
    char line[LINE];
    size_t len = 0, again = 0;
    struct rng r;
    rng_init(&r, 20261123, 0);
    digits_job(model, more);
    (void)run_job();
    char whole[LINE];
    (void)snprintf(whole, sizeof whole, "%s", last);
    AS_AUTO(as_freep) char *want = child_read(&child, "artifacts/model.safetensors", &len);
    AS_AUTO(as_freep) char *want_p = child_read(&child, "artifacts/predictions.npy", NULL);
    teardown();
    setup();
    digits_job(model, more);
    int resumed = 0, code = -1;
    for (int round = 0; code != 0; round++) {
        uint64_t after = 1 + rng_below(&r, 20);
        child_start(&child, "11", "--checkpoint-every=1ms");
        for (uint64_t n = 0; child_line(&child, line, sizeof line); n++) {
            resumed += n == 0 && field(line, "step") > 1;
            (void)snprintf(last, sizeof last, "%s", line);
            if (n == after && round < 6)
                ck_assert_int_eq(kill(child.pid, round % 2 ? SIGKILL : SIGTERM), 0);
        }
        code = child_wait(&child);
        ck_assert_msg(code == 0 || code == 75 || code == -SIGKILL, "code %d", code);
    }
    ck_assert_int_gt(resumed, 0);
    ck_assert_str_eq(last, whole);
    AS_AUTO(as_freep) char *got = child_read(&child, "artifacts/model.safetensors", &again);
    AS_AUTO(as_freep) char *got_p = child_read(&child, "artifacts/predictions.npy", NULL);
    ck_assert_uint_eq(len, again);
    ck_assert_mem_eq(want, got, len);
    ck_assert_mem_eq(want_p, got_p, 128 + sizeof(float) * 449 * 10);
}

START_TEST(resumes_with_the_same_bits)
{
    resumes("\"kind\":\"boosted_trees\",\"n_estimators\":60,\"max_depth\":3",
            ",\"report_every\":1");
}
END_TEST

START_TEST(resumes_when_rows_and_columns_are_drawn)
{
    resumes("\"kind\":\"boosted_trees\",\"n_estimators\":60,\"max_depth\":3,\"subsample\":0.7,"
            "\"colsample_bytree\":0.7,\"colsample_bynode\":0.7,\"learning_rate\":0.1,"
            "\"early_stopping_rounds\":30",
            ",\"report_every\":1");
}
END_TEST

START_TEST(a_forest_resumes)
{
    resumes("\"kind\":\"random_forest\",\"n_estimators\":60", ",\"report_every\":1");
}
END_TEST

START_TEST(another_jobs_checkpoint)
{
    char line[LINE];
    digits_job("\"kind\":\"boosted_trees\",\"n_estimators\":100000,\"max_depth\":2",
               ",\"report_every\":1");
    child_start(&child, "11", NULL);
    ck_assert_ptr_nonnull(child_line(&child, line, sizeof line));
    ck_assert_int_eq(kill(child.pid, SIGTERM), 0);
    ck_assert_int_eq(child_wait(&child), 75);
    digits_job("\"kind\":\"boosted_trees\",\"n_estimators\":99999,\"max_depth\":2", "");
    run_ends(1, "belongs to another job");
}
END_TEST

/* ---- the group form ---- */

/* Three members of two kinds in one process leave what each leaves alone. */
START_TEST(members_of_a_group)
{
    static const char *const models[] = {
        "\"kind\":\"boosted_trees\",\"n_estimators\":12,\"subsample\":0.5",
        "\"kind\":\"random_forest\",\"n_estimators\":12",
        "\"kind\":\"boosted_trees\",\"n_estimators\":20,\"subsample\":0.5,\"max_depth\":2"};
    char *alone[3], name[40];
    size_t len[3], again;
    for (int i = 0; i < 3; i++) {
        free(table_job(true, models[i], ""));
        (void)run_job();
        alone[i] = child_read(&child, "artifacts/predictions.npy", &len[i]);
        teardown();
        setup();
    }
    write_table("t.csv", 800, true);
    AS_AUTO(as_freep) char *path = in_dir("t.csv");
    JSON_AUTO dataset = dataset_of(path, "y", DATASET_CLASSIFICATION);
    AS_AUTO(as_freep) char *text = json_format(dataset);
    AS_AUTO(str_done) struct str b = {0};
    str_printf(&b, "{\"dataset\":%s,\"slots\":4,\"members\":[", text);
    for (int i = 0; i < 3; i++)
        str_printf(&b,
                   "%s{\"id\":\"m%d\",\"train\":{\"dataset\":\"d\",\"model\":{%s}},\"seed\":\"11\","
                   "\"artifacts\":\"%s/m%d\"}",
                   i ? "," : "", i, models[i], child.dir, i);
    str_puts(&b, "]}");
    child_write(&child, "job.json", b.s, b.len);
    child_start(&child, "0", NULL);
    ck_assert_int_eq(child_wait(&child), 0);
    for (int i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof name, "m%d/predictions.npy", i);
        AS_AUTO(as_freep) char *got = child_read(&child, name, &again);
        ck_assert_uint_eq(again, len[i]);
        ck_assert_mem_eq(got, alone[i], again);
        free(alone[i]);
    }
}
END_TEST

/* ---- refusals ---- */

/* The other kinds do not notice that the library is missing. */
START_TEST(without_the_library)
{
    ck_assert_int_eq(setenv("ASSAY_XGBOOST", "/nowhere/libxgboost.so", 1), 0);
    digits_job("\"kind\":\"boosted_trees\"", "");
    run_ends(1, "models of trees need XGBoost's library");
    teardown();
    setup();
    digits_job("\"kind\":\"linear\"", ",\"epochs\":1");
    ck_assert_int_eq(run_job(), 1);
}
END_TEST

START_TEST(another_library)
{
    ck_assert_int_eq(setenv("ASSAY_XGBOOST", "libm.so.6", 1), 0);
    digits_job("\"kind\":\"random_forest\"", "");
    run_ends(1, "expected a version from 1.7 to 2.x");
}
END_TEST

START_TEST(as_a_rank)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/examples/digits.csv", source_root());
    JSON_AUTO dataset = dataset_of(path, "-1", DATASET_CLASSIFICATION);
    AS_AUTO(as_freep) char *text = json_format(dataset);
    AS_AUTO(str_done) struct str b = {0};
    str_printf(&b,
               "{\"train\":{\"dataset\":\"d\",\"model\":{\"kind\":\"boosted_trees\"}},"
               "\"listen\":\"127.0.0.1\",\"dataset\":%s}",
               text);
    child_write(&child, "job.json", b.s, b.len);
    run_ends(1, "/train/model/kind: found boosted_trees, which trains in one process");
}
END_TEST

/* A model of other columns, and bytes that are none. */
START_TEST(models_that_do_not_fit)
{
    AS_AUTO(as_freep)
    char *path = table_job(false, "\"kind\":\"boosted_trees\",\"n_estimators\":2", "");
    (void)run_job();
    AS_AUTO(stored_done) struct stored s = {0};
    struct tree_model *other = NULL;
    stored_read(&s);
    const struct safetensors_tensor *t = safetensors_get(s.file, "trees");
    struct dataset_info wide = s.info;
    wide.n_features = 4;
    wide.columns = NULL;
    ck_fails(tree_model_load(t->data, t->size_bytes, &s.spec, &wide, 1, &other, &err), AS_E_INVAL,
             err, "3 inputs, expected 4");
    struct dataset_info many = s.info;
    many.n_outputs = 3;
    ck_fails(tree_model_load(t->data, t->size_bytes, &s.spec, &many, 1, &other, &err), AS_E_INVAL,
             err, "expected 3");
    ck_fails(tree_model_load("{}", 2, &s.spec, &s.info, 1, &other, &err), AS_E_INVAL, err,
             "no model of trees");
}
END_TEST

Suite *test_suite(void)
{
    static const char lacks[] = "XGBoost's library is not here (Debian: libxgboost0)";
    const struct xgboost *x = NULL;
    Suite *s = suite_create("train_trees");
    TCase *t = tcase_create("all");
    bool here = xgboost_open(&x, NULL) == AS_OK;
    tcase_add_checked_fixture(t, setup, teardown);
    add_test_if(t, boosted_digits, here, lacks);
    add_test_if(t, forest_of_digits, here, lacks);
    add_test_if(t, categories_and_gaps, here, lacks);
    add_test_if(t, losses_and_weights, here, lacks);
    add_test_if(t, importance, here, lacks);
    add_test_if(t, early_stopping, here, lacks);
    add_test_if(t, resumes_with_the_same_bits, here, lacks);
    add_test_if(t, resumes_when_rows_and_columns_are_drawn, here, lacks);
    add_test_if(t, a_forest_resumes, here, lacks);
    add_test_if(t, another_jobs_checkpoint, here, lacks);
    add_test_if(t, members_of_a_group, here, lacks);
    add_test_if(t, models_that_do_not_fit, here, lacks);
    tcase_add_test(t, without_the_library);
    tcase_add_test(t, another_library);
    tcase_add_test(t, as_a_rank);
    suite_add_tcase(s, t);
    return s;
}
