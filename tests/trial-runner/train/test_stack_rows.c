/* Trials of a further layer, as the runner starts them: a row sees what the trials of the layer
 * before predicted for it while it was held out, and the model goes through both layers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "data/dataset_json.h"
#include "data/dataset_read.h"
#include "data/formats/npy.h"
#include "model/file/model_file.h"
#include "model/predict/predictor.h"
#include "tests/support/check_main.h"
#include "tests/support/child.h"
#include "tests/support/trained.h"

#define ROWS 90
#define FOLDS 3
#define BELOW 2 /* trials of the layer before */

static struct as_err err;
static struct child child;
static struct dataset_info info;
static struct dataset set; /* the rows as a predictor takes them */
static bool refits;

static void setup(void)
{
    child_setup(&child);
    refits = false;
}

static void teardown(void)
{
    dataset_done(&set);
    dataset_info_done(&info);
    child_teardown(&child);
}

static void load_table(int classes)
{
    AS_AUTO(as_freep) char *table = child_path(&child, "t.csv");
    const struct dataset_paths paths = {.table = table};
    trained_write_table(&child, ROWS, classes);
    ck_ok(dataset_inspect(&paths, DATASET_CSV, "y",
                          classes ? DATASET_CLASSIFICATION : DATASET_REGRESSION, NULL, &info, &err),
          err);
    ck_ok(dataset_load(&paths, &info, &set, &err), err);
}

/* The job with the fields of its document, and further fields of the job. Returns its exit. */
static int run_job(const char *fields, const char *further)
{
    AS_AUTO(as_freep) char *table = child_path(&child, "t.csv");
    AS_AUTO(as_freep) char *checkpoints = child_path(&child, "checkpoints");
    AS_AUTO(str_done) struct str job = {0};
    char line[900];
    JSON_AUTO dataset = dataset_info_to_json(&info);
    ck_assert_int_eq(json_object_set_new(dataset, "paths", json_pack("{s:s}", "table", table)), 0);
    AS_AUTO(as_freep) char *text = json_format(dataset);
    str_printf(
        &job,
        "{\"train\":{\"dataset\":\"t\",%s,\"validation\":{\"folds\":3,\"seed\":1,\"refit\":%s}}"
        ",\"dataset\":%s%s}",
        fields, refits ? "true" : "false", text, further);
    child_write(&child, "job.json", job.s, job.len);
    ck_ok(file_remove_tree(checkpoints, &err), err);
    child_start(&child, "3", NULL);
    while (child_line(&child, line, sizeof line))
        ;
    return child_wait(&child);
}

/* Keep an artifact under another name. */
static void keep(const char *artifact, const char *name)
{
    AS_AUTO(as_freep) char *from = child_path(&child, artifact);
    AS_AUTO(as_freep) char *to = child_path(&child, name);
    ck_assert_int_eq(rename(from, to), 0);
}

static void train_below(void)
{
    ck_assert_int_eq(run_job("\"model\":{\"kind\":\"extra_trees\",\"n_estimators\":3}", ""), 0);
    keep("artifacts/model.safetensors", "m0");
    keep("artifacts/predictions.npy", "p0");
    ck_assert_int_eq(run_job("\"epochs\":2,\"model\":{\"layers\":[4]}", ""), 0);
    keep("artifacts/model.safetensors", "m1");
    keep("artifacts/predictions.npy", "p1");
}

/* The jobs field of both. */
static void stack_field(struct str *b)
{
    str_puts(b, ",\"stack\":[");
    for (size_t i = 0; i < BELOW; i++)
        str_printf(b,
                   "%s{\"sweep\":\"s\",\"trial\":%zu,\"model\":\"%s/m%zu\",\"predictions\":"
                   "\"%s/p%zu\"}",
                   i ? "," : "", i, child.dir, i, child.dir, i);
    str_puts(b, "]");
}

static int train_above(const char *fields)
{
    AS_AUTO(str_done) struct str own = {0};
    AS_AUTO(str_done) struct str further = {0};
    str_printf(&own, "%s,\"stack\":[\"s/0\",\"s/1\"]", fields);
    stack_field(&further);
    return run_job(own.s, further.s);
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

/* What a model file predicts for rows: [n, outputs]. */
static float *predict(const char *name, const float *x, size_t n)
{
    AS_AUTO(as_freep) char *path = child_path(&child, name);
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    AS_AUTO(predictor_freep) struct predictor *p = NULL;
    ck_ok(model_file_read(path, 1 << 26, &f, &err), err);
    ck_ok(predictor_create(f, 7, &p, &err), err);
    float *ret = as_calloc(n * predictor_outputs(p), sizeof *ret);
    ck_assert_ptr_nonnull(ret);
    ck_ok(predictor_run(p, x, n, ret, &err), err);
    return ret;
}

/* Rows with these predictions behind them: of two classes that of the second. */
static float *behind(const float *const *below, size_t *ret_width)
{
    size_t C = info.n_outputs, one = info.n_classes == 2 ? 1 : C;
    size_t width = set.n_features + BELOW * one;
    float *x = as_calloc(ROWS * width, sizeof *x);
    ck_assert_ptr_nonnull(x);
    for (size_t r = 0; r < ROWS; r++) {
        memcpy(x + r * width, set.x + r * set.n_features, set.n_features * sizeof *x);
        for (size_t i = 0; i < BELOW; i++)
            memcpy(x + r * width + set.n_features + i * one, below[i] + r * C + C - one,
                   one * sizeof *x);
    }
    *ret_width = width;
    return x;
}

static void same_bits(const float *got, const float *expected, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(memcmp(&got[i], &expected[i], sizeof *got) == 0,
                      "number %zu is %.9g, expected %.9g", i, (double)got[i], (double)expected[i]);
}

/* The rows of each fold were predicted from what the layer before said of them unseen. */
static void check_folds(void)
{
    size_t n, C = info.n_outputs, width;
    float *below[BELOW];
    AS_AUTO(as_freep) double *recorded = read_array("artifacts/predictions.npy", &n);
    ck_assert_uint_eq(n, ROWS * C);
    for (size_t i = 0; i < BELOW; i++) {
        AS_AUTO(as_freep) double *p = read_array(i ? "p1" : "p0", &n);
        ck_assert_uint_eq(n, ROWS * C);
        below[i] = as_calloc(n, sizeof *below[i]);
        for (size_t k = 0; k < n; k++)
            below[i][k] = (float)p[k];
    }
    AS_AUTO(as_freep) float *x = behind((const float *const *)below, &width);
    for (int fold = 0; fold < FOLDS; fold++) {
        char rows_name[64], model_name[64];
        (void)snprintf(rows_name, sizeof rows_name, "checkpoints/folds/%d/rows.npy", fold);
        (void)snprintf(model_name, sizeof model_name, "checkpoints/folds/%d/model.safetensors",
                       fold);
        AS_AUTO(as_freep) double *rows = read_array(rows_name, &n);
        AS_AUTO(as_freep) float *got = predict(model_name, x, ROWS);
        for (size_t i = 0; i < n; i++)
            for (size_t c = 0; c < C; c++)
                ck_assert_msg(got[(size_t)rows[i] * C + c] ==
                                  (float)recorded[(size_t)rows[i] * C + c],
                              "fold %d, row %g", fold, rows[i]);
    }
    for (size_t i = 0; i < BELOW; i++)
        free(below[i]);
}

/* The model predicts as its parts do one after another. */
static void check_model(void)
{
    size_t width;
    AS_AUTO(as_freep) float *m0 = predict("m0", set.x, ROWS);
    AS_AUTO(as_freep) float *m1 = predict("m1", set.x, ROWS);
    AS_AUTO(as_freep) float *x = behind((const float *const[]){m0, m1}, &width);
    AS_AUTO(as_freep) float *expected = predict("checkpoints/folds/own.safetensors", x, ROWS);
    AS_AUTO(as_freep) float *got = predict("artifacts/model.safetensors", set.x, ROWS);
    same_bits(got, expected, ROWS * info.n_outputs);
}

static void two_layers(int classes, const char *fields)
{
    load_table(classes);
    train_below();
    ck_assert_int_eq(train_above(fields), 0);
    check_folds();
    check_model();
}

START_TEST(trees_see_numbers)
{
    two_layers(0, "\"model\":{\"kind\":\"extra_trees\",\"n_estimators\":3,\"min_child_weight\":2}");
}
END_TEST

START_TEST(networks_see_three_classes)
{
    two_layers(3, "\"epochs\":2,\"model\":{\"layers\":[5],\"embedding\":2}");
}
END_TEST

/* The models are trained on all rows, and measured in folds. */
START_TEST(refitted_models_see_two_classes)
{
    refits = true;
    two_layers(2, "\"epochs\":2,\"model\":{\"kind\":\"linear\"}");
}
END_TEST

/* ---- ensembles of both layers ---- */

/* Three trials, two of which see the same: each model is in the file once, and the file predicts
 * the mean of what the three predict. */
START_TEST(an_ensemble_has_each_model_once)
{
    static const double weights[] = {0.5, 0.3, 0.2};
    static const char *const names[] = {"a", "m1", "b"};
    struct model_source sources[3];
    AS_AUTO(as_freep) char *path = child_path(&child, "all");
    AS_AUTO(as_freep) char *again = child_path(&child, "again");
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    load_table(3);
    train_below();
    ck_assert_int_eq(train_above("\"epochs\":2,\"model\":{\"layers\":[3]}"), 0);
    keep("artifacts/model.safetensors", "a");
    ck_assert_int_eq(train_above("\"epochs\":3,\"model\":{\"layers\":[4]}"), 0);
    keep("artifacts/model.safetensors", "b");
    for (size_t i = 0; i < 3; i++)
        sources[i] =
            (struct model_source){.path = child_path(&child, names[i]), .weight = weights[i]};
    ck_ok(model_file_write(path, sources, 3, NULL, NULL, &err), err);
    ck_ok(model_file_read(path, 1 << 26, &f, &err), err);
    ck_assert_uint_eq(model_file_n_members(f), 4 * FOLDS);
    const struct model_combine *c = model_file_combine(f);
    ck_assert_uint_eq(c->n_inputs, 4);
    ck_assert_uint_eq(c->n_stacks, 1);
    ck_assert_uint_eq(c->stacks[0].of[0], 3); /* m0, which has no weight of its own */
    ck_assert_uint_eq(c->stacks[0].of[1], 1);
    ck_assert_double_eq(c->weights[3], 0);
    AS_AUTO(as_freep) float *got = predict("all", set.x, ROWS);
    AS_AUTO(as_freep) double *sum = as_calloc(ROWS * 3, sizeof *sum);
    AS_AUTO(as_freep) float *expected = as_calloc(ROWS * 3, sizeof *expected);
    for (size_t i = 0; i < 3; i++) {
        AS_AUTO(as_freep) float *own = predict(names[i], set.x, ROWS);
        for (size_t k = 0; k < (size_t)ROWS * 3; k++)
            sum[k] += weights[i] * (double)own[k];
        free((char *)sources[i].path);
    }
    for (size_t k = 0; k < (size_t)ROWS * 3; k++)
        expected[k] = (float)sum[k];
    same_bits(got, expected, (size_t)ROWS * 3);
    sources[0] = (struct model_source){.path = path, .weight = 1};
    ck_assert_int_eq(model_file_write(again, sources, 1, NULL, NULL, &err), AS_E_UNSUPPORTED);
}
END_TEST

/* ---- what is refused ---- */

static void check_refused(const char *expected)
{
    AS_AUTO(as_freep) char *why = child_read(&child, "err", &(size_t){0});
    ck_assert_msg(strstr(why, expected) != NULL, "%s", why);
}

/* Predictions of a part of the rows are of models that held out a part of them. */
START_TEST(predictions_of_other_rows_are_refused)
{
    const size_t shape[] = {ROWS - 1, 1};
    static const float values[ROWS];
    AS_AUTO(as_freep) char *path = child_path(&child, "p1");
    load_table(0);
    train_below();
    ck_ok(npy_write(path, NPY_F4, shape, 2, values, &err), err);
    ck_assert_int_ne(train_above("\"model\":{\"kind\":\"extra_trees\"}"), 0);
    check_refused("s/1: found predictions of 89 rows and 1 outputs, expected 90 and 1");
    ck_assert_int_ne(
        run_job("\"model\":{\"kind\":\"extra_trees\"},\"stack\":[\"s/0\",\"s/1\"]", ""), 0);
    check_refused("/train/stack: found 2 trials, but /stack has 0");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("train_stack_rows");
    TCase *t = tcase_create("train_stack_rows");
    tcase_set_timeout(t, 240);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, trees_see_numbers);
    tcase_add_test(t, networks_see_three_classes);
    tcase_add_test(t, refitted_models_see_two_classes);
    tcase_add_test(t, an_ensemble_has_each_model_once);
    tcase_add_test(t, predictions_of_other_rows_are_refused);
    suite_add_tcase(s, t);
    return s;
}
