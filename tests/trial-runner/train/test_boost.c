/* Stages of boosting, as the runner starts them: each lowers the loss that those before left; the
 * model of the sum predicts what the trainer recorded, bit for bit; a stage that is killed ends
 * with the same bits. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/str.h"
#include "data/dataset_json.h"
#include "data/dataset_read.h"
#include "data/formats/npy.h"
#include "data/preprocess/train_data.h"
#include "model/file/model_file.h"
#include "model/predict/predictor.h"
#include "model/trees/xgboost.h"
#include "tests/support/check_main.h"
#include "tests/support/child.h"

#define ROWS 240
#define STAGES 4

static struct as_err err;
static struct child child;

static void setup(void)
{
    child_setup(&child);
}

static void teardown(void)
{
    child_teardown(&child);
}

/* A square of a number decides, which a linear model cannot see; c is a category. */
static void write_table(int classes)
{
    static const char *const names[] = {"low", "mid", "top"};
    AS_AUTO(str_done) struct str table = {0};
    struct rng r;
    rng_init(&r, 6, 7);
    str_puts(&table, "a,b,c,w,y\n");
    for (size_t i = 0; i < ROWS; i++) {
        double a = rng_normal(&r), b = rng_normal(&r);
        double y = a * a + b + 0.3 * rng_normal(&r) + (i % 3 == 0);
        str_printf(&table, "%.6f,%.6f,%s,%zu,", a, b, i % 3 == 0 ? "x" : "z", 1 + i % 4);
        if (classes == 0)
            str_printf(&table, "%.6f\n", 100 + 20 * y);
        else
            str_printf(&table, "%s\n", names[y < 1 ? 0 : y > 2.5 && classes == 3 ? 2 : 1]);
    }
    child_write(&child, "t.csv", table.s, table.len);
}

static void write_job(int classes, size_t stage, const char *fields)
{
    AS_AUTO(str_done) struct str job = {0};
    AS_AUTO(as_freep) char *table = child_path(&child, "t.csv");
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    const struct dataset_paths paths = {.table = table};
    write_table(classes);
    ck_ok(dataset_inspect(&paths, DATASET_CSV, "y",
                          classes ? DATASET_CLASSIFICATION : DATASET_REGRESSION, NULL, &info, &err),
          err);
    JSON_AUTO dataset = dataset_info_to_json(&info);
    ck_assert_int_eq(json_object_set_new(dataset, "paths", json_pack("{s:s}", "table", table)), 0);
    AS_AUTO(as_freep) char *text = json_format(dataset);
    str_printf(
        &job,
        "{\"train\":{\"dataset\":\"t\",%s,\"boost\":{\"stage\":%zu,\"rate\":0.5}},\"dataset\":%s",
        fields, stage, text);
    if (stage > 0)
        str_printf(&job, ",\"base\":\"%s/base\"", child.dir);
    str_puts(&job, "}");
    child_write(&child, "job.json", job.s, job.len);
}

static double field(const char *line, const char *name)
{
    JSON_AUTO j = NULL;
    double v = NAN;
    ck_ok(json_parse(line, strlen(line), &j, &err), err);
    ck_assert_msg(json_number_get(json_object_get(j, name), &v), "%s in %s", name, line);
    return v;
}

/* Remove what the stage before has left, but keep its model as the base. */
static void next_stage(void)
{
    AS_AUTO(as_freep) char *model = child_path(&child, "artifacts/model.safetensors");
    AS_AUTO(as_freep) char *base = child_path(&child, "base");
    AS_AUTO(as_freep) char *checkpoints = child_path(&child, "checkpoints");
    AS_AUTO(as_freep) char *report = child_path(&child, "report");
    ck_assert_int_eq(rename(model, base), 0);
    ck_ok(file_remove_tree(checkpoints, &err), err);
    (void)remove(report);
}

/* Run the job that was written; `last` gets the last line of the report. */
static void run(char last[900])
{
    child_start(&child, "3", NULL);
    while (child_line(&child, last, 900))
        ;
    ck_assert_int_eq(child_wait(&child), 0);
}

static double *read_array(const char *name, size_t *ret_n)
{
    AS_AUTO(as_freep) char *path = child_path(&child, name);
    AS_AUTO(npy_freep) struct npy *npy = NULL;
    ck_ok(npy_open(path, &npy, &err), err);
    *ret_n = npy_header_of(npy)->n_values;
    double *values = as_calloc(*ret_n, sizeof *values);
    ck_assert_ptr_nonnull(values);
    ck_ok(npy_read(npy, *ret_n, values, &err), err);
    return values;
}

/* The rows that are held out, which follow from the document alone. */
static void held_rows(int classes, const struct model_file *f, float **ret, size_t *ret_n)
{
    AS_AUTO(as_freep) char *table = child_path(&child, "t.csv");
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    AS_AUTO(train_data_done) struct train_data d = {0};
    AS_AUTO(dataset_done) struct dataset set = {0};
    struct dataset split;
    const struct dataset_paths paths = {.table = table};
    ck_ok(dataset_inspect(&paths, DATASET_CSV, "y",
                          classes ? DATASET_CLASSIFICATION : DATASET_REGRESSION, NULL, &info, &err),
          err);
    const struct preprocess_opts opts = {
        .n_validation = train_spec_validation_rows(model_file_member(f, 0)->spec, info.n_rows),
        .stratify = classes > 0};
    ck_ok(dataset_load(&paths, &info, &split, &err), err);
    ck_ok(train_data_prepare(&split, &info, &opts, &d, &err), err);
    ck_ok(dataset_load(&paths, &info, &set, &err), err);
    size_t width = model_file_data(f)->n_features; /* without w where it weighs */
    *ret = as_calloc(d.n_val * width, sizeof **ret);
    ck_assert_ptr_nonnull(*ret);
    *ret_n = d.n_val;
    for (size_t i = 0; i < d.n_val; i++)
        memcpy(*ret + i * width, set.x + (size_t)d.val_rows[i] * set.n_features,
               width * sizeof **ret);
}

static void predicts_what_was_recorded(int classes, size_t members)
{
    AS_AUTO(as_freep) char *path = child_path(&child, "artifacts/model.safetensors");
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    AS_AUTO(predictor_freep) struct predictor *p = NULL;
    AS_AUTO(as_freep) float *x = NULL;
    size_t n = 0, n_values = 0;
    AS_AUTO(as_freep) double *recorded = read_array("artifacts/predictions.npy", &n_values);
    ck_ok(model_file_read(path, 1 << 26, &f, &err), err);
    ck_assert_uint_eq(model_file_n_members(f), members);
    ck_assert_int_eq(model_file_combine(f)->kind, members > 1 ? MODEL_SUM : MODEL_MEAN);
    ck_ok(predictor_create(f, 7, &p, &err), err);
    held_rows(classes, f, &x, &n);
    ck_assert_uint_eq(n * predictor_outputs(p), n_values);
    AS_AUTO(as_freep) float *got = as_calloc(n_values, sizeof *got);
    ck_ok(predictor_run(p, x, n, got, &err), err);
    for (size_t i = 0; i < n_values; i++)
        ck_assert_msg(got[i] == (float)recorded[i], "value %zu: %.9g, recorded %.9g", i,
                      (double)got[i], recorded[i]);
}

/* Run all stages: the loss of the training rows falls with each. Returns the first and the last
 * held-out loss. */
static void boost(int classes, const char *fields, double losses[2])
{
    char line[900];
    double before = INFINITY;
    for (size_t s = 0; s < STAGES; s++) {
        if (s > 0)
            next_stage();
        write_job(classes, s, fields);
        run(line);
        ck_assert_msg(field(line, "train_loss") < before, "stage %zu: %s, before %g", s, line,
                      before);
        before = field(line, "train_loss");
        losses[s > 0] = field(line, "val_loss");
        if (s > 0)
            ck_assert_double_eq(field(line, "step"), 1);
        predicts_what_was_recorded(classes, s + 1);
    }
}

#define HOLD "\"validation\":{\"split\":\"stratified\"}"

START_TEST(classes_by_networks)
{
    double loss[2];
    boost(3,
          "\"epochs\":8,\"batch_size\":16,\"optimizer\":{\"lr\":0.01},\"model\":{\"layers\":[6]},"
          "\"metrics\":[\"val_auc\"]," HOLD,
          loss);
    ck_assert_double_lt(loss[1], loss[0]);
}
END_TEST

/* Weights of rows and of classes count in each stage. */
START_TEST(weighted_classes)
{
    double loss[2];
    boost(2,
          "\"epochs\":6,\"model\":{\"layers\":[6]},\"class_weights\":\"balanced\","
          "\"label_smoothing\":0.05,\"weights\":\"w\",\"optimizer\":{\"lr\":0.01}," HOLD,
          loss);
}
END_TEST

START_TEST(numbers_by_networks)
{
    double loss[2];
    boost(0, "\"epochs\":8,\"patience\":4,\"model\":{\"layers\":[8]},\"optimizer\":{\"lr\":0.01}",
          loss);
    ck_assert_double_lt(loss[1], loss[0]);
}
END_TEST

START_TEST(classes_by_trees)
{
    double loss[2];
    boost(3,
          "\"model\":{\"kind\":\"boosted_trees\",\"n_estimators\":3,\"max_depth\":2,"
          "\"learning_rate\":0.2}," HOLD,
          loss);
    ck_assert_double_lt(loss[1], loss[0]);
}
END_TEST

#define FOLDS 3

/* Part `fold` of the model is the sum of the fold's own stages: for the rows that the fold held out
 * it predicts the bits that the trial recorded. */
static void part_predicts_its_fold(size_t fold, size_t stages, const float *x, size_t width,
                                   const double *recorded)
{
    char name[64];
    AS_AUTO(as_freep) char *whole = child_path(&child, "artifacts/model.safetensors");
    AS_AUTO(as_freep) char *part = child_path(&child, "part");
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    AS_AUTO(predictor_freep) struct predictor *p = NULL;
    size_t n = 0;
    (void)snprintf(name, sizeof name, "checkpoints/folds/%zu/rows.npy", fold);
    AS_AUTO(as_freep) double *rows = read_array(name, &n);
    ck_ok(model_file_write_part(part, whole, fold, FOLDS, &err), err);
    ck_ok(model_file_read(part, 1 << 26, &f, &err), err);
    ck_assert_uint_eq(model_file_n_members(f), stages);
    ck_ok(predictor_create(f, 7, &p, &err), err);
    size_t outputs = predictor_outputs(p);
    for (size_t i = 0; i < n; i++) {
        float got[3];
        size_t row = (size_t)rows[i];
        ck_ok(predictor_run(p, x + row * width, 1, got, &err), err);
        for (size_t c = 0; c < outputs; c++)
            ck_assert_msg(got[c] == (float)recorded[row * outputs + c], "fold %zu, row %zu", fold,
                          row);
    }
}

static void folds(int classes, const char *fields)
{
    char line[900];
    double before = INFINITY;
    for (size_t s = 0; s < 3; s++) {
        if (s > 0)
            next_stage();
        write_job(classes, s, fields);
        run(line);
        ck_assert_msg(field(line, "train_loss") < before, "stage %zu: %s, before %g", s, line,
                      before);
        before = field(line, "train_loss");
        ck_assert_double_eq(field(line, "step"), FOLDS);
    }
    AS_AUTO(as_freep) char *table = child_path(&child, "t.csv");
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    AS_AUTO(dataset_done) struct dataset set = {0};
    const struct dataset_paths paths = {.table = table};
    size_t n = 0;
    AS_AUTO(as_freep) double *recorded = read_array("artifacts/predictions.npy", &n);
    ck_ok(dataset_inspect(&paths, DATASET_CSV, "y",
                          classes ? DATASET_CLASSIFICATION : DATASET_REGRESSION, NULL, &info, &err),
          err);
    ck_ok(dataset_load(&paths, &info, &set, &err), err);
    for (size_t fold = 0; fold < FOLDS; fold++)
        part_predicts_its_fold(fold, 3, set.x, set.n_features, recorded);
}

START_TEST(folds_of_networks)
{
    folds(3,
          "\"epochs\":6,\"batch_size\":16,\"optimizer\":{\"lr\":0.01},\"model\":{\"layers\":[6]},"
          "\"validation\":{\"folds\":3}");
}
END_TEST

START_TEST(folds_of_trees)
{
    folds(0, "\"model\":{\"kind\":\"boosted_trees\",\"n_estimators\":3,\"max_depth\":2,"
             "\"learning_rate\":0.2},\"validation\":{\"folds\":3}");
}
END_TEST

START_TEST(killed_it_ends_with_the_same_bits)
{
    char line[900];
    size_t n = 0, again = 0;
#define LONG "\"epochs\":300,\"batch_size\":4,\"model\":{\"layers\":[6]}," HOLD
    write_job(3, 0, "\"epochs\":3,\"model\":{\"layers\":[6]}," HOLD);
    run(line);
    next_stage();
    write_job(3, 1, LONG);
    run(line);
    AS_AUTO(as_freep) char *want = child_read(&child, "artifacts/model.safetensors", &n);
    AS_AUTO(as_freep) char *checkpoints = child_path(&child, "checkpoints");
    AS_AUTO(as_freep) char *artifacts = child_path(&child, "artifacts");
    ck_ok(file_remove_tree(checkpoints, &err), err);
    ck_ok(file_remove_tree(artifacts, &err), err);
    int code = -1, killed = 0;
    ino_t last = 0;
    for (int round = 0; code != 0; round++) {
        AS_AUTO(as_freep)
        char *saved = child_path(&child, "checkpoints/stage/checkpoint.safetensors");
        struct stat sb = {.st_ino = last};
        child_start(&child, "3", "--checkpoint-every=1ms");
        if (round < 2) { /* when it has written a checkpoint of its own */
            while ((stat(saved, &sb) != 0 || sb.st_ino == last) && !child_has_ended(&child))
                (void)usleep(500);
            last = sb.st_ino;
            killed += kill(child.pid, round ? SIGTERM : SIGKILL) == 0;
        }
        while (child_line(&child, line, sizeof line))
            ;
        code = child_wait(&child);
        ck_assert_msg(code == 0 || code == 75 || code == -SIGKILL, "code %d", code);
    }
    ck_assert_int_gt(killed, 0);
    AS_AUTO(as_freep) char *got = child_read(&child, "artifacts/model.safetensors", &again);
    ck_assert_uint_eq(n, again);
    ck_assert_mem_eq(want, got, n);
}
END_TEST

/* The base must be the sum of all stages before. */
START_TEST(not_the_stage_before)
{
    char line[900];
    const char *fields = "\"epochs\":1,\"model\":{\"layers\":[6]}," HOLD;
    write_job(2, 0, fields);
    run(line);
    next_stage();
    write_job(2, 2, fields);
    child_start(&child, "3", NULL);
    while (child_line(&child, line, sizeof line))
        ;
    ck_assert_int_eq(child_wait(&child), 1);
    write_job(2, 1, fields);
    run(line);
}
END_TEST

START_TEST(refused)
{
    static const char *const cases[] = {
        "\"epochs\":2,\"schedule\":{\"kind\":\"cosine\",\"cycles\":2,\"snapshots\":2}",
        "\"epochs\":1,\"loss\":\"bce\""};
    char line[900];
    for (size_t i = 0; i < 2; i++) {
        write_job(2, 0, cases[i]);
        child_start(&child, "3", NULL);
        while (child_line(&child, line, sizeof line))
            ;
        ck_assert_int_eq(child_wait(&child), 1);
    }
    write_job(2, 1, "\"epochs\":1"); /* no such file */
    child_start(&child, "3", NULL);
    while (child_line(&child, line, sizeof line))
        ;
    ck_assert_int_eq(child_wait(&child), 1);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("train_boost");
    const struct xgboost *xgboost = NULL;
    TCase *t = tcase_create("train_boost");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, classes_by_networks);
    tcase_add_test(t, weighted_classes);
    tcase_add_test(t, numbers_by_networks);
    tcase_add_test(t, folds_of_networks);
    if (xgboost_open(&xgboost, NULL) == AS_OK) {
        tcase_add_test(t, classes_by_trees);
        tcase_add_test(t, folds_of_trees);
    }
    tcase_add_test(t, killed_it_ends_with_the_same_bits);
    tcase_add_test(t, not_the_stage_before);
    tcase_add_test(t, refused);
    suite_add_tcase(s, t);
    return s;
}
