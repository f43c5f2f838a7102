/* Predicting with what assay-train stored. A process of its own trains a model and records its
 * predictions of the rows held out; here the model file alone must give the recorded predictions
 * bit for bit, all rows at once, one at a time and backwards. This program does not link the
 * trainer. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "data/dataset_read.h"
#include "data/formats/npy.h"
#include "data/preprocess/train_data.h"
#include "model/file/model_file.h"
#include "model/predict/predictor.h"
#include "model/trees/xgboost.h"
#include "search/ensemble/ensemble.h"
#include "tests/support/check_main.h"
#include "tests/support/trained.h"

#define MOST_MODELS 4

static struct as_err err;
static struct child child[MOST_MODELS]; /* one for each model */

static void setup(void)
{
    for (size_t i = 0; i < MOST_MODELS; i++)
        child_setup(&child[i]);
}

static void teardown(void)
{
    for (size_t i = 0; i < MOST_MODELS; i++)
        child_teardown(&child[i]);
}

static void train(size_t i, const struct dataset_paths *paths, dataset_format format,
                  const char *target, dataset_task task, const char *fields)
{
    char report[512];
    trained_model(&child[i], paths, format, target, task, fields, report, sizeof report);
}

static struct model_file *read_trial(size_t i)
{
    AS_AUTO(as_freep) char *path = trained_path(&child[i], "artifacts/model.safetensors");
    struct model_file *f = NULL;
    ck_ok(model_file_read(path, 1 << 26, &f, &err), err);
    return f;
}

/* ---- the rows held out ---- */

struct rows {
    size_t n, width;
    float *x; /* [n, width], as predictor_run() takes them */
};

static void rows_done(struct rows *r)
{
    free(r->x);
}

/* The split is a function of its seed and the number of rows: which rows, in the order of the
 * recorded predictions. */
static void held_rows(const struct model_file *f, const struct dataset_paths *paths,
                      struct rows *ret)
{
    AS_AUTO(train_data_done) struct train_data d = {0};
    AS_AUTO(dataset_done) struct dataset set = {0};
    const struct dataset_info *info = model_file_data(f);
    const struct train_spec *spec = model_file_member(f, 0)->spec;
    struct dataset split;
    const struct preprocess_opts opts = {
        .split_seed = (uint64_t)spec->validation_seed,
        .n_validation = train_spec_validation_rows(spec, info->n_rows),
    };
    ck_ok(dataset_load(paths, info, &split, &err), err);
    ck_ok(train_data_prepare(&split, info, &opts, &d, &err), err);
    ck_ok(dataset_load(paths, info, &set, &err), err);
    *ret = (struct rows){.n = d.n_val, .width = set.n_features};
    ret->x = as_calloc(ret->n * ret->width, sizeof *ret->x);
    ck_assert(ret->n > 0 && ret->x);
    for (size_t i = 0; i < ret->n; i++)
        memcpy(ret->x + i * ret->width, set.x + (size_t)d.val_rows[i] * ret->width,
               ret->width * sizeof *ret->x);
}

/* The predictions that the trainer of model i recorded. */
static float *recorded(size_t i, size_t rows, size_t columns)
{
    AS_AUTO(as_freep) char *path = trained_path(&child[i], "artifacts/predictions.npy");
    AS_AUTO(npy_freep) struct npy *npy = NULL;
    ck_ok(npy_open(path, &npy, &err), err);
    const struct npy_header *h = npy_header_of(npy);
    ck_assert(h->type == NPY_F4 && h->n_dims == 2);
    ck_assert_uint_eq(h->shape[0], rows);
    ck_assert_uint_eq(h->shape[1], columns);
    AS_AUTO(as_freep) double *values = as_calloc(h->n_values, sizeof *values);
    float *ret = as_calloc(h->n_values, sizeof *ret);
    ck_assert(values && ret);
    ck_ok(npy_read(npy, h->n_values, values, &err), err);
    for (size_t k = 0; k < h->n_values; k++)
        ret[k] = (float)values[k]; /* exact: it was a float32 */
    return ret;
}

/* ---- predicting ---- */

static void same_bits(const float *got, const float *expected, size_t n, const char *how)
{
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(memcmp(&got[i], &expected[i], sizeof *got) == 0,
                      "%s: number %zu is %.9g, expected %.9g", how, i, (double)got[i],
                      (double)expected[i]);
}

/* The model gives these predictions, however the rows are cut. */
static void predicts(const struct model_file *f, const struct rows *rows, const float *expected,
                     size_t columns)
{
    AS_AUTO(as_freep) float *got = as_calloc(rows->n * columns, sizeof *got);
    static const size_t passes[] = {0, 1, 3, 7, 16};
    for (size_t i = 0; i < AS_ARRAY_LEN(passes); i++) {
        AS_AUTO(predictor_freep) struct predictor *p = NULL;
        ck_ok(predictor_create(f, passes[i], &p, &err), err);
        ck_assert_uint_eq(predictor_inputs(p), rows->width);
        ck_assert_uint_eq(predictor_outputs(p), columns);
        ck_ok(predictor_run(p, rows->x, rows->n, got, &err), err);
        same_bits(got, expected, rows->n * columns, "all rows");
        for (size_t r = rows->n; i == 0 && r-- > 0;) {
            ck_ok(predictor_run(p, rows->x + r * rows->width, 1, got, &err), err);
            same_bits(got, expected + r * columns, columns, "one row");
        }
    }
}

/* The stored model predicts what the trainer recorded. */
static void predicts_as_recorded(const struct dataset_paths *paths, size_t columns)
{
    AS_AUTO(model_file_freep) struct model_file *f = read_trial(0);
    AS_AUTO(rows_done) struct rows rows = {0};
    held_rows(f, paths, &rows);
    AS_AUTO(as_freep) float *expected = recorded(0, rows.n, columns);
    predicts(f, &rows, expected, columns);
}

static void table_case(int classes, const char *fields)
{
    trained_write_table(&child[0], 211, classes);
    AS_AUTO(as_freep) char *path = trained_path(&child[0], "t.csv");
    const struct dataset_paths paths = {.table = path};
    train(0, &paths, DATASET_CSV, "y", classes ? DATASET_CLASSIFICATION : DATASET_REGRESSION,
          fields);
    predicts_as_recorded(&paths, classes ? (size_t)classes : 1);
}

START_TEST(categories_and_missing_values)
{
    table_case(3, "\"epochs\":4,\"batch_size\":16,\"model\":{\"layers\":[12,7],\"norm\":\"batch\","
                  "\"dropout\":0.1},\"optimizer\":{\"lr\":0.01,\"ema\":0.9}");
}
END_TEST

START_TEST(embedded_categories_of_two_classes)
{
    table_case(2, "\"epochs\":3,\"loss\":\"bce\",\"model\":{\"layers\":[9],\"embedding\":3,"
                  "\"activation\":\"gelu\"}");
}
END_TEST

START_TEST(logistic)
{
    table_case(3, "\"epochs\":3,\"model\":{\"kind\":\"logistic\"}");
}
END_TEST

START_TEST(regression)
{
    table_case(0, "\"epochs\":4,\"batch_size\":8,\"model\":{\"layers\":[33,10],\"activation\":"
                  "\"tanh\"}");
}
END_TEST

/* The model is the mean of several weights of one training. */
START_TEST(snapshots_of_classes)
{
    table_case(3,
               "\"epochs\":7,\"batch_size\":16,\"model\":{\"layers\":[12],\"norm\":\"batch\","
               "\"embedding\":2},\"schedule\":{\"kind\":\"cosine\",\"cycles\":4,\"snapshots\":3}");
    AS_AUTO(model_file_freep) struct model_file *f = read_trial(0);
    ck_assert_uint_eq(model_file_n_members(f), 3);
}
END_TEST

START_TEST(snapshots_of_numbers)
{
    table_case(0, "\"epochs\":5,\"optimizer\":{\"ema\":0.8},\"schedule\":{\"kind\":\"cosine\","
                  "\"cycles\":5,\"snapshots\":5}");
}
END_TEST

/* The model of folds can be read; with snapshots each fold gives several members. */
START_TEST(folds_of_snapshots)
{
    trained_write_table(&child[0], 211, 3);
    AS_AUTO(as_freep) char *path = trained_path(&child[0], "t.csv");
    const struct dataset_paths paths = {.table = path};
    train(0, &paths, DATASET_CSV, "y", DATASET_CLASSIFICATION,
          "\"epochs\":4,\"validation\":{\"folds\":3},\"schedule\":{\"kind\":\"cosine\","
          "\"cycles\":2,\"snapshots\":2}");
    AS_AUTO(model_file_freep) struct model_file *f = read_trial(0);
    AS_AUTO(predictor_freep) struct predictor *p = NULL;
    ck_assert_uint_eq(model_file_n_members(f), 6);
    for (size_t i = 0; i < 6; i++)
        ck_assert_double_eq_tol(model_file_member(f, i)->weight, 1.0 / 6, 1e-12);
    ck_ok(predictor_create(f, 0, &p, &err), err);
}
END_TEST

START_TEST(not_standardised)
{
    table_case(0, "\"epochs\":2,\"standardize\":false,\"model\":{\"kind\":\"linear\"},"
                  "\"optimizer\":{\"lr\":0.0001}");
}
END_TEST

/* Metrics are in the targets' own unit, here thousands; the loss is of the transformed targets. */
static void check_units(const char *report)
{
    JSON_AUTO j = NULL;
    ck_ok(json_parse(report, strlen(report), &j, &err), err);
    double rmse = json_number_value(json_object_get(j, "val_rmse"));
    ck_assert_double_gt(rmse, 10);
    ck_assert_double_lt(json_number_value(json_object_get(j, "val_loss")), 3);
}

START_TEST(transformed_targets)
{
    static const char *const transforms[] = {"log", "log1p", "quantile"};
    for (size_t i = 0; i < AS_ARRAY_LEN(transforms); i++) {
        char fields[128], report[512];
        (void)snprintf(fields, sizeof fields,
                       "\"epochs\":3,\"batch_size\":16,\"model\":{\"layers\":[9]},\"target\":{"
                       "\"transform\":\"%s\"}",
                       transforms[i]);
        trained_write_table(&child[0], 211, 0);
        AS_AUTO(as_freep) char *path = trained_path(&child[0], "t.csv");
        const struct dataset_paths paths = {.table = path};
        trained_model(&child[0], &paths, DATASET_CSV, "y", DATASET_REGRESSION, fields, report,
                      sizeof report);
        check_units(report);
        predicts_as_recorded(&paths, 1);
    }
}
END_TEST

/* Dates, texts and categories, as networks and trees see them. */
static void mixed_case(int classes, const char *fields)
{
    static const struct dataset_options options = {.comment = '#'};
    char report[512];
    trained_write_mixed(&child[0], 150, classes);
    AS_AUTO(as_freep) char *path = trained_path(&child[0], "t.csv");
    const struct dataset_paths paths = {.table = path};
    trained_model_with(&child[0], &paths, DATASET_CSV, &options, "y",
                       classes ? DATASET_CLASSIFICATION : DATASET_REGRESSION, fields, report,
                       sizeof report);
    AS_AUTO(model_file_freep) struct model_file *f = read_trial(0);
    ck_assert_uint_eq(dataset_inputs(model_file_data(f)), 7 + 1 + DATASET_BUCKETS + 3 + 1);
    predicts_as_recorded(&paths, classes ? (size_t)classes : 1);
}

START_TEST(dates_and_texts)
{
    mixed_case(0, "\"epochs\":3,\"batch_size\":16,\"model\":{\"layers\":[9]}");
    mixed_case(2, "\"epochs\":3,\"model\":{\"layers\":[9],\"embedding\":2}");
}
END_TEST

START_TEST(trees_of_dates_and_texts)
{
    static const char *const kinds[] = {"boosted_trees", "random_forest"};
    static const char *const transforms[] = {"none", "log", "quantile"};
    char fields[200];
    mixed_case(2, "\"model\":{\"kind\":\"boosted_trees\",\"n_estimators\":5}");
    for (size_t i = 0; i < 6; i++) {
        (void)snprintf(fields, sizeof fields,
                       "\"model\":{\"kind\":\"%s\",\"n_estimators\":5},\"target\":{"
                       "\"transform\":\"%s\"}",
                       kinds[i % 2], transforms[i / 2]);
        mixed_case(0, fields);
    }
}
END_TEST

static void image_case(double scale)
{
    AS_AUTO(as_freep) char *x = trained_path(&child[0], "x.npy");
    AS_AUTO(as_freep) char *y = trained_path(&child[0], "y.npy");
    const struct dataset_paths paths = {.features = x, .targets = y};
    trained_write_images(x, y, 120, scale);
    train(0, &paths, DATASET_NPY, NULL, DATASET_CLASSIFICATION,
          "\"epochs\":2,\"batch_size\":16,\"augment\":{\"flip\":0.5},\"model\":{\"kind\":\"cnn\","
          "\"layers\":[{\"conv\":4,\"norm\":\"batch\"},{\"pool\":\"max\",\"size\":2},{\"residual\":"
          "[{\"conv\":4}]},{\"conv\":4,\"depthwise\":true},{\"pool\":\"global\"},{\"dense\":5}]}");
    predicts_as_recorded(&paths, 2);
}

START_TEST(images_of_bytes)
{
    image_case(1);
}
END_TEST

START_TEST(images_of_fractions)
{
    image_case(1.0 / 256 / 3);
}
END_TEST

/* ---- trees ---- */

START_TEST(trees_of_classes)
{
    table_case(3, "\"model\":{\"kind\":\"boosted_trees\",\"n_estimators\":7,\"max_depth\":3}");
}
END_TEST

START_TEST(trees_of_two_classes)
{
    table_case(2, "\"model\":{\"kind\":\"boosted_trees\",\"n_estimators\":5}");
}
END_TEST

START_TEST(forest_of_numbers)
{
    table_case(0, "\"model\":{\"kind\":\"random_forest\",\"n_estimators\":9}");
}
END_TEST

/* ---- ensembles ---- */

/* Train MOST_MODELS models of the table on the same split (two of one shape, one with codes), put
 * them together, and compare with the weighted sum of what each of them recorded. */
static void ensemble_case(int classes, bool trees)
{
    static const char *const fields[MOST_MODELS] = {
        "\"epochs\":2,\"model\":{\"layers\":[12]}",
        "\"epochs\":3,\"model\":{\"layers\":[5,4],\"embedding\":2}",
        "\"epochs\":4,\"model\":{\"layers\":[12]}",
        "\"epochs\":2,\"standardize\":false,\"model\":{\"kind\":\"linear\"},\"optimizer\":{\"lr\":"
        "1e-5}"};
    static const char *const with_trees =
        "\"model\":{\"kind\":\"boosted_trees\",\"n_estimators\":4}";
    const double weights[MOST_MODELS] = {0.4, 0.3, 0.2, 0.1};
    struct model_source sources[MOST_MODELS];
    size_t columns = classes ? (size_t)classes : 1;
    AS_AUTO(as_freep) char *table = trained_path(&child[0], "t.csv");
    AS_AUTO(as_freep) char *all = trained_path(&child[0], "all.model");
    const struct dataset_paths paths = {.table = table};
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    AS_AUTO(rows_done) struct rows rows = {0};
    trained_write_table(&child[0], 211, classes);
    for (size_t i = 0; i < MOST_MODELS; i++) {
        train(i, &paths, DATASET_CSV, "y", classes ? DATASET_CLASSIFICATION : DATASET_REGRESSION,
              trees && i == 1 ? with_trees : fields[i]);
        sources[i] = (struct model_source){
            .path = trained_path(&child[i], "artifacts/model.safetensors"), .weight = weights[i]};
    }
    ck_ok(model_file_write(all, sources, MOST_MODELS, NULL, NULL, &err), err);
    ck_ok(model_file_read(all, 1 << 26, &f, &err), err);
    held_rows(f, &paths, &rows);
    AS_AUTO(as_freep) double *sum = as_calloc(rows.n * columns, sizeof *sum);
    AS_AUTO(as_freep) float *expected = as_calloc(rows.n * columns, sizeof *expected);
    for (size_t i = 0; i < MOST_MODELS; i++) {
        AS_AUTO(as_freep) float *own = recorded(i, rows.n, columns);
        for (size_t k = 0; k < rows.n * columns; k++)
            sum[k] += weights[i] * (double)own[k];
        free((char *)sources[i].path);
    }
    for (size_t k = 0; k < rows.n * columns; k++)
        expected[k] = (float)sum[k];
    predicts(f, &rows, expected, columns);
}

START_TEST(ensemble_of_shapes)
{
    ensemble_case(3, false);
}
END_TEST

START_TEST(ensemble_of_a_regression)
{
    ensemble_case(0, false);
}
END_TEST

START_TEST(ensemble_with_trees)
{
    ensemble_case(3, true);
}
END_TEST

/* ---- stacked ensembles ---- */

#define CANDIDATES 3

/* What is true of the held-out rows, as the trainer of model 0 recorded it. */
static void read_truth(bool of_classes, size_t rows, int64_t **ret_classes, float **ret_targets)
{
    AS_AUTO(as_freep) char *path = trained_path(&child[0], "artifacts/targets.npy");
    AS_AUTO(npy_freep) struct npy *npy = NULL;
    AS_AUTO(as_freep) double *values = as_calloc(rows, sizeof *values);
    ck_ok(npy_open(path, &npy, &err), err);
    ck_assert(values && npy_header_of(npy)->n_values == rows);
    ck_ok(npy_read(npy, rows, values, &err), err);
    int64_t *classes = as_calloc(rows, sizeof *classes);
    float *targets = as_calloc(rows, sizeof *targets);
    ck_assert(classes && targets);
    for (size_t i = 0; i < rows; i++) {
        classes[i] = (int64_t)values[i];
        targets[i] = (float)values[i];
    }
    *ret_classes = of_classes ? as_steal(classes) : NULL;
    *ret_targets = of_classes ? NULL : as_steal(targets);
    free(classes);
    free(targets);
}

/* Compose the stacked ensemble as the server does: its members in their order. Candidate 0 is the
 * model file `pair`, which is of two trials. */
static void compose_stacked(const struct ensemble *e, bool of_classes, const char *pair,
                            const char *path)
{
    size_t order[CANDIDATES];
    struct model_source sources[CANDIDATES];
    JSON_AUTO biases = json_array();
    ensemble_members(e, order);
    for (size_t c = 0; c < e->outputs; c++)
        ck_assert_int_eq(json_array_append_new(biases, json_real(e->biases[c])), 0);
    JSON_AUTO combine = json_pack("{s:s, s:s, s:O}", "kind", "linear", "inputs",
                                  of_classes ? "log" : "outputs", "biases", biases);
    for (size_t i = 0; i < e->members; i++)
        sources[i] = (struct model_source){
            .path = order[i] == 0
                        ? strdup(pair)
                        : trained_path(&child[order[i] + 1], "artifacts/model.safetensors"),
            .weight = e->weights[order[i]]};
    ck_ok(model_file_write(path, sources, e->members, combine, NULL, &err), err);
    for (size_t i = 0; i < e->members; i++)
        free((char *)sources[i].path);
}

/* The predictions of the candidates on the held-out rows: the first is the mean of models 0 and
 * 1. */
static void read_candidates(size_t rows, size_t columns, float **ret)
{
    AS_AUTO(as_freep) float *other = recorded(1, rows, columns);
    ret[0] = recorded(0, rows, columns);
    for (size_t k = 0; k < rows * columns; k++) /* in double, as its own predictor does */
        ret[0][k] = (float)(0.75 * (double)ret[0][k] + 0.25 * (double)other[k]);
    for (size_t i = 1; i < CANDIDATES; i++)
        ret[i] = recorded(i + 1, rows, columns);
}

/* Fit a stacked ensemble on the recorded predictions, as the server does. The model that is
 * composed of it predicts the held-out rows to the bits of what the ensemble measured. */
static void stacked_case(int classes)
{
    static const char *const fields[MOST_MODELS] = {
        "\"epochs\":2,\"model\":{\"layers\":[12]}",
        "\"epochs\":3,\"model\":{\"layers\":[5,4],\"embedding\":2}",
        "\"epochs\":6,\"model\":{\"layers\":[12]}",
        "\"epochs\":4,\"standardize\":false,\"model\":{\"kind\":\"linear\"},\"optimizer\":{\"lr\":"
        "1e-5}"};
    size_t columns = classes ? (size_t)classes : 1;
    AS_AUTO(as_freep) char *table = trained_path(&child[0], "t.csv");
    AS_AUTO(as_freep) char *pair = trained_path(&child[0], "pair.model");
    AS_AUTO(as_freep) char *all = trained_path(&child[0], "all.model");
    AS_AUTO(as_freep) char *first = trained_path(&child[0], "artifacts/model.safetensors");
    AS_AUTO(as_freep) char *second = trained_path(&child[1], "artifacts/model.safetensors");
    const struct dataset_paths paths = {.table = table};
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    AS_AUTO(rows_done) struct rows rows = {0};
    AS_AUTO(as_freep) int64_t *labels = NULL;
    AS_AUTO(as_freep) float *targets = NULL;
    float *candidates[CANDIDATES];
    trained_write_table(&child[0], 401, classes);
    for (size_t i = 0; i < MOST_MODELS; i++)
        train(i, &paths, DATASET_CSV, "y", classes ? DATASET_CLASSIFICATION : DATASET_REGRESSION,
              fields[i]);
    const struct model_source two[] = {{.path = first, .weight = 0.75},
                                       {.path = second, .weight = 0.25}};
    ck_ok(model_file_write(pair, two, 2, NULL, NULL, &err), err);
    AS_AUTO(model_file_freep) struct model_file *trial = read_trial(0);
    held_rows(trial, &paths, &rows);
    read_candidates(rows.n, columns, candidates);
    read_truth(classes > 0, rows.n, &labels, &targets);
    const struct ensemble_input in = {.candidates = CANDIDATES,
                                      .truth = {rows.n, columns, labels, targets},
                                      .predictions = (const float *const *)candidates,
                                      .metric = classes ? SCORE_LOG_LOSS : SCORE_RMSE,
                                      .method = ENSEMBLE_STACKING,
                                      .size = CANDIDATES,
                                      .seed = 1};
    AS_AUTO(ensemble_freep) struct ensemble *e = NULL;
    ck_ok(ensemble_select(&in, &e, &err), err);
    ck_assert(e->members == CANDIDATES && e->biases);
    compose_stacked(e, classes > 0, pair, all);
    ck_ok(model_file_read(all, 1 << 26, &f, &err), err);
    AS_AUTO(as_freep) double *sum = as_calloc(rows.n * columns, sizeof *sum);
    AS_AUTO(as_freep) float *expected = as_calloc(rows.n * columns, sizeof *expected);
    ensemble_predict(e, &in, NULL, rows.n, sum);
    for (size_t k = 0; k < rows.n * columns; k++)
        expected[k] = (float)sum[k];
    predicts(f, &rows, expected, columns);
    for (size_t i = 0; i < CANDIDATES; i++)
        free(candidates[i]);
}

START_TEST(stacked_classes)
{
    stacked_case(3);
}
END_TEST

START_TEST(stacked_numbers)
{
    stacked_case(0);
}
END_TEST

/* ---- by a column ---- */

/* Compose the models 0..2: 0 and 1 for two values of the column, 2 for all others. */
static void compose_by(const char *column, const char *const values[2], const char *path)
{
    struct model_source sources[CANDIDATES];
    JSON_AUTO combine = json_pack("{s:s, s:s, s:[{s:s, s:i}, {s:s, s:i}], s:i}", "kind", "by",
                                  "column", column, "buckets", "value", values[0], "input", 0,
                                  "value", values[1], "input", 1, "other", 2);
    for (size_t i = 0; i < CANDIDATES; i++)
        sources[i] =
            (struct model_source){.path = trained_path(&child[i], "artifacts/model.safetensors")};
    ck_ok(model_file_write(path, sources, CANDIDATES, combine, NULL, &err), err);
    for (size_t i = 0; i < CANDIDATES; i++)
        free((char *)sources[i].path);
}

/* Each held-out row has the recorded bits of the model of its value: by a category (its index is
 * that of `values`), and by a number, which only two rows have. */
static void by_case(int classes, bool trees)
{
    static const char *const fields[CANDIDATES] = {
        "\"epochs\":2,\"model\":{\"layers\":[12]}", "\"epochs\":4,\"model\":{\"layers\":[12]}",
        "\"epochs\":3,\"model\":{\"layers\":[5,4],\"embedding\":2}"};
    static const char *const colours[] = {"red", "blue"};
    size_t columns = classes ? (size_t)classes : 1;
    AS_AUTO(as_freep) char *table = trained_path(&child[0], "t.csv");
    AS_AUTO(as_freep) char *all = trained_path(&child[0], "all.model");
    const struct dataset_paths paths = {.table = table};
    AS_AUTO(rows_done) struct rows rows = {0};
    float *own[CANDIDATES];
    trained_write_table(&child[0], 211, classes);
    for (size_t i = 0; i < CANDIDATES; i++)
        train(i, &paths, DATASET_CSV, "y", classes ? DATASET_CLASSIFICATION : DATASET_REGRESSION,
              trees && i == 1 ? "\"model\":{\"kind\":\"boosted_trees\",\"n_estimators\":4}"
                              : fields[i]);
    AS_AUTO(model_file_freep) struct model_file *trial = read_trial(0);
    held_rows(trial, &paths, &rows);
    for (size_t i = 0; i < CANDIDATES; i++)
        own[i] = recorded(i, rows.n, columns);
    AS_AUTO(as_freep) float *expected = as_calloc(rows.n * columns, sizeof *expected);
    size_t n[CANDIDATES] = {0};
    for (int by_number = 0; by_number < 2; by_number++) {
        AS_AUTO(model_file_freep) struct model_file *f = NULL;
        char numbers[2][32];
        for (int k = 0; k < 2; k++)
            (void)snprintf(numbers[k], sizeof numbers[k], "%.9g0",
                           (double)rows.x[(size_t)(3 + 2 * k) * rows.width + 1]);
        const char *texts[] = {numbers[0], numbers[1]};
        compose_by(by_number ? "weight" : "colour", by_number ? texts : colours, all);
        ck_ok(model_file_read(all, 1 << 26, &f, &err), err);
        for (size_t r = 0; r < rows.n; r++) {
            size_t colour = (size_t)rows.x[r * rows.width + 2]; /* blue, green, red */
            size_t i = by_number ? (r == 3 ? 0 : r == 5 ? 1 : 2) : (size_t[]){1, 2, 0}[colour];
            n[i]++;
            memcpy(expected + r * columns, own[i] + r * columns, columns * sizeof *expected);
        }
        predicts(f, &rows, expected, columns);
    }
    for (size_t i = 0; i < CANDIDATES; i++) {
        ck_assert_uint_gt(n[i], 3);
        free(own[i]);
    }
}

START_TEST(classes_by_a_column)
{
    by_case(3, false);
}
END_TEST

START_TEST(numbers_by_a_column)
{
    by_case(0, false);
}
END_TEST

START_TEST(trees_by_a_column)
{
    by_case(2, true);
}
END_TEST

/* Two ways to write a date are one value, and a cell without one is another. */
START_TEST(dates_by_a_column)
{
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    AS_AUTO(predictor_freep) struct predictor *p = NULL;
    AS_AUTO(as_freep) char *table = trained_path(&child[0], "t.csv");
    AS_AUTO(as_freep) char *all = trained_path(&child[0], "all.model");
    const struct dataset_paths paths = {.table = table};
    static const char text[] = "when,x,y\n2024-03-09,1,2\n2024-04-10 06:00,2,3\n,3,5\n"
                               "2025-01-01,3,6\n2024-03-09,2,4\n2024-04-10,7,3\n";
    child_write(&child[0], "t.csv", text, sizeof text - 1);
    for (size_t i = 0; i < CANDIDATES; i++)
        train(i, &paths, DATASET_CSV, "y", DATASET_REGRESSION,
              i == 0   ? "\"epochs\":1,\"model\":{\"layers\":[2]}"
              : i == 1 ? "\"epochs\":7,\"model\":{\"layers\":[3]}"
                       : "\"epochs\":3,\"model\":{\"layers\":[2]}");
    const char *const dates[] = {"2024-03-09 00:00", "2024-04-10 06:00:00"};
    compose_by("when", dates, all);
    ck_ok(model_file_read(all, 1 << 26, &f, &err), err);
    ck_ok(predictor_create(f, 0, &p, &err), err);
    size_t width = predictor_inputs(p);
    static const char *const cells[] = {"2024-03-09", "2024-04-10T06:00", "2024-04-10", ""};
    static const size_t inputs[] = {0, 1, 2, 2};
    for (size_t i = 0; i < AS_ARRAY_LEN(cells); i++) {
        AS_AUTO(model_file_freep) struct model_file *one = read_trial(inputs[i]);
        AS_AUTO(predictor_freep) struct predictor *own = NULL;
        AS_AUTO(as_freep) float *row = as_calloc(width, sizeof *row);
        float got = 0, expected = 0;
        ck_ok(predictor_create(one, 0, &own, &err), err);
        ck_ok(predictor_cell(p, 0, cells[i], strlen(cells[i]), row, &err), err);
        row[width - 1] = 4;
        ck_ok(predictor_run(p, row, 1, &got, &err), err);
        ck_ok(predictor_run(own, row, 1, &expected, &err), err);
        same_bits(&got, &expected, 1, cells[i]);
    }
}
END_TEST

/* ---- cells ---- */

static as_status cell(const struct predictor *p, size_t column, const char *text, float *ret)
{
    return predictor_cell(p, column, text, strlen(text), ret, &err);
}

START_TEST(cells)
{
    float v = 0;
    trained_write_table(&child[0], 211, 2);
    AS_AUTO(as_freep) char *path = trained_path(&child[0], "t.csv");
    const struct dataset_paths paths = {.table = path};
    train(0, &paths, DATASET_CSV, "y", DATASET_CLASSIFICATION, "\"epochs\":1");
    AS_AUTO(model_file_freep) struct model_file *f = read_trial(0);
    AS_AUTO(predictor_freep) struct predictor *p = NULL;
    ck_ok(predictor_create(f, 0, &p, &err), err);
    ck_ok(cell(p, 0, " 1.5 ", &v), err);
    ck_assert_float_eq(v, 1.5f);
    ck_ok(cell(p, 0, "N/A", &v), err); /* `size` is missing in some rows, `weight` in none */
    ck_assert(isnan(v));
    ck_fails(cell(p, 1, "", &v), AS_E_INVAL, err, "column 'weight': the value is missing");
    ck_fails(cell(p, 1, "heavy", &v), AS_E_INVAL, err,
             "'weight': found 'heavy', expected a number");
    ck_fails(cell(p, 1, "1e39", &v), AS_E_INVAL, err, "too large for float32");
    ck_fails(cell(p, 1, "-inf", &v), AS_E_INVAL, err, "expected a finite number");
    ck_ok(cell(p, 2, "red", &v), err);
    ck_assert_float_eq(v, 2);
    ck_assert(!predictor_is_unknown(p, 2, v));
    ck_ok(cell(p, 2, "pink", &v), err);
    ck_assert_float_eq(v, 3);
    ck_assert(predictor_is_unknown(p, 2, v));
    ck_ok(cell(p, 2, "", &v), err);
    ck_assert(predictor_is_unknown(p, 2, v)); /* the column has none missing */
    ck_assert(!predictor_is_unknown(p, 0, NAN));
    float out[2];
    ck_fails(predictor_run(p, (float[]){1, 2, 0, 1, NAN, 0}, 2, out, &err), AS_E_INVAL, err,
             "row 1: column 'weight': the value is missing");
    ck_fails(predictor_run(p, (float[]){1, 2, 5}, 1, out, &err), AS_E_INVAL, err,
             "found 5, expected the index of a category, 0 to 4");
    ck_fails(predictor_run(p, (float[]){INFINITY, 2, 0}, 1, out, &err), AS_E_INVAL, err, "'size'");
    ck_ok(predictor_run(p, (float[]){NAN, 2, 4}, 1, out, &err), err);
    ck_assert(predictor_class(p, out) == (out[1] > out[0]));
}
END_TEST

START_TEST(text_has_no_rows)
{
    static char text[3000];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = "the quick brown fox. "[i % 21];
    child_write(&child[0], "t.txt", text, sizeof text);
    AS_AUTO(as_freep) char *path = trained_path(&child[0], "t.txt");
    const struct dataset_paths paths = {.table = path};
    train(0, &paths, DATASET_TEXT, NULL, DATASET_TASK_AUTO,
          "\"epochs\":1,\"model\":{\"kind\":\"transformer\",\"depth\":1,\"width\":8,\"heads\":1,"
          "\"context\":12}");
    AS_AUTO(model_file_freep) struct model_file *f = read_trial(0);
    struct predictor *p = NULL;
    ck_fails(predictor_create(f, 0, &p, &err), AS_E_UNSUPPORTED, err, "continues text");
}
END_TEST

Suite *test_suite(void)
{
    static const char lacks[] = "XGBoost's library is not here (Debian: libxgboost0)";
    Suite *s = suite_create("predictor");
    TCase *t = tcase_create("predictor");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, categories_and_missing_values);
    tcase_add_test(t, embedded_categories_of_two_classes);
    tcase_add_test(t, logistic);
    tcase_add_test(t, regression);
    tcase_add_test(t, snapshots_of_classes);
    tcase_add_test(t, snapshots_of_numbers);
    tcase_add_test(t, folds_of_snapshots);
    tcase_add_test(t, not_standardised);
    tcase_add_test(t, transformed_targets);
    tcase_add_test(t, dates_and_texts);
    tcase_add_test(t, images_of_bytes);
    tcase_add_test(t, images_of_fractions);
    tcase_add_test(t, ensemble_of_shapes);
    tcase_add_test(t, ensemble_of_a_regression);
    const struct xgboost *xgboost = NULL;
    bool has_trees = xgboost_open(&xgboost, NULL) == AS_OK;
    add_test_if(t, trees_of_classes, has_trees, lacks);
    add_test_if(t, trees_of_two_classes, has_trees, lacks);
    add_test_if(t, forest_of_numbers, has_trees, lacks);
    add_test_if(t, trees_of_dates_and_texts, has_trees, lacks);
    add_test_if(t, ensemble_with_trees, has_trees, lacks);
    tcase_add_test(t, stacked_classes);
    tcase_add_test(t, stacked_numbers);
    tcase_add_test(t, classes_by_a_column);
    tcase_add_test(t, numbers_by_a_column);
    tcase_add_test(t, dates_by_a_column);
    add_test_if(t, trees_by_a_column, has_trees, lacks);
    tcase_add_test(t, cells);
    tcase_add_test(t, text_has_no_rows);
    suite_add_tcase(s, t);
    return s;
}
