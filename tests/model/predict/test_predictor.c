/* Predicting with what assay-train stored: the model file alone must give the recorded predictions
 * bit for bit, all rows at once, one at a time and backwards. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "data/formats/safetensors.h"
#include "model/predict/predictor.h"
#include "model/trees/xgboost.h"
#include "tests/model/predict/predicted.h"
#include "tests/support/check_main.h"

static struct as_err err;

/* The stored model predicts what the trainer recorded. */
static void predicts_as_recorded(const struct dataset_paths *paths, size_t columns)
{
    AS_AUTO(model_file_freep) struct model_file *f = predicted_read(0);
    AS_AUTO(predicted_rows_done) struct predicted_rows rows = {0};
    predicted_held_rows(f, paths, &rows);
    AS_AUTO(as_freep) float *expected = predicted_recorded(0, rows.n, columns);
    predicted_check(f, &rows, expected, columns);
}

static void table_case(int classes, const char *fields)
{
    trained_write_table(&predicted_child[0], 211, classes);
    AS_AUTO(as_freep) char *path = child_path(&predicted_child[0], "t.csv");
    const struct dataset_paths paths = {.table = path};
    predicted_train(0, &paths, DATASET_CSV, "y",
                    classes ? DATASET_CLASSIFICATION : DATASET_REGRESSION, fields);
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
    AS_AUTO(model_file_freep) struct model_file *f = predicted_read(0);
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
    trained_write_table(&predicted_child[0], 211, 3);
    AS_AUTO(as_freep) char *path = child_path(&predicted_child[0], "t.csv");
    const struct dataset_paths paths = {.table = path};
    predicted_train(0, &paths, DATASET_CSV, "y", DATASET_CLASSIFICATION,
                    "\"epochs\":4,\"validation\":{\"folds\":3},\"schedule\":{\"kind\":\"cosine\","
                    "\"cycles\":2,\"snapshots\":2}");
    AS_AUTO(model_file_freep) struct model_file *f = predicted_read(0);
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
        trained_write_table(&predicted_child[0], 211, 0);
        AS_AUTO(as_freep) char *path = child_path(&predicted_child[0], "t.csv");
        const struct dataset_paths paths = {.table = path};
        trained_model(&predicted_child[0], &paths, DATASET_CSV, "y", DATASET_REGRESSION, fields,
                      report, sizeof report);
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
    trained_write_mixed(&predicted_child[0], 150, classes);
    AS_AUTO(as_freep) char *path = child_path(&predicted_child[0], "t.csv");
    const struct dataset_paths paths = {.table = path};
    trained_model_with(&predicted_child[0], &paths, DATASET_CSV, &options, "y",
                       classes ? DATASET_CLASSIFICATION : DATASET_REGRESSION, fields, report,
                       sizeof report);
    AS_AUTO(model_file_freep) struct model_file *f = predicted_read(0);
    ck_assert_uint_eq(dataset_inputs(model_file_data(f)), 7 + 1 + DATASET_BUCKETS + 3 + 1);
    predicts_as_recorded(&paths, classes ? (size_t)classes : 1);
}

/* Each number is a value for each bin; categories, dates and texts are as without. */
START_TEST(numbers_in_bins)
{
    table_case(3, "\"epochs\":3,\"model\":{\"kind\":\"logistic\"},\"numbers\":{\"encode\":"
                  "\"piecewise_linear\",\"bins\":5}");
    mixed_case(0, "\"epochs\":3,\"model\":{\"layers\":[9],\"embedding\":2},\"numbers\":{"
                  "\"encode\":\"piecewise_linear\"}");
    mixed_case(2, "\"model\":{\"kind\":\"extra_trees\",\"n_estimators\":5},\"numbers\":{"
                  "\"encode\":\"piecewise_linear\"}");
}
END_TEST

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
    AS_AUTO(as_freep) char *x = child_path(&predicted_child[0], "x.npy");
    AS_AUTO(as_freep) char *y = child_path(&predicted_child[0], "y.npy");
    const struct dataset_paths paths = {.features = x, .targets = y};
    trained_write_images(x, y, 120, scale);
    predicted_train(
        0, &paths, DATASET_NPY, NULL, DATASET_CLASSIFICATION,
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

START_TEST(extra_trees)
{
    table_case(3, "\"model\":{\"kind\":\"extra_trees\",\"n_estimators\":9}");
    table_case(2, "\"model\":{\"kind\":\"extra_trees\",\"n_estimators\":9,\"max_depth\":3}");
    table_case(0, "\"model\":{\"kind\":\"extra_trees\",\"n_estimators\":9}");
    mixed_case(0,
               "\"model\":{\"kind\":\"extra_trees\",\"n_estimators\":5},\"target\":{\"transform\":"
               "\"log\"}");
}
END_TEST

/* What training assigned the held-out rows to; with and without a target, which it leaves out. */
static void clusters_case(dataset_task task, const char *target, const char *fields)
{
    trained_write_table(&predicted_child[0], 211, 3);
    AS_AUTO(as_freep) char *path = child_path(&predicted_child[0], "t.csv");
    const struct dataset_paths paths = {.table = path};
    predicted_train(0, &paths, DATASET_CSV, target, task, fields);
    AS_AUTO(model_file_freep) struct model_file *f = predicted_read(0);
    ck_assert(model_file_data(f)->task == DATASET_CLUSTERING && !model_file_data(f)->classes);
    predicts_as_recorded(&paths, DATASET_CLUSTER_OUTPUTS);
}

START_TEST(kmeans)
{
    clusters_case(DATASET_CLASSIFICATION, "y", "\"model\":{\"kind\":\"kmeans\",\"clusters\":5}");
    clusters_case(DATASET_CLUSTERING, NULL,
                  "\"standardize\":false,\"model\":{\"kind\":\"kmeans\",\"init\":\"random\"}");
    clusters_case(DATASET_CLUSTERING, "y", "\"model\":{\"kind\":\"kmeans\",\"clusters\":2}");
}
END_TEST

/* A file whose centroids are not those of its document: numbers that are not finite, too few, and a
 * tensor beside them. */
static void hostile_case(const struct safetensors *whole, float *values, size_t clusters,
                         bool another, const char *words)
{
    AS_AUTO(as_freep) char *path = child_path(&predicted_child[0], "hostile.safetensors");
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    AS_AUTO(predictor_freep) struct predictor *p = NULL;
    static const char *const keys[] = {"format", "train", "dataset", "preprocessing",
                                       "fingerprint"};
    JSON_AUTO meta = json_object();
    for (size_t i = 0; i < AS_ARRAY_LEN(keys); i++)
        json_object_set_new(meta, keys[i], json_string(safetensors_metadata(whole, keys[i])));
    const struct safetensors_tensor *found = safetensors_get(whole, "centroids");
    const struct safetensors_tensor list[] = {
        {.name = "centroids", .n_dims = 2, .shape = {clusters, found->shape[1]}, .data = values},
        {.name = "more", .n_dims = 1, .shape = {1}, .data = values}};
    ck_ok(safetensors_write(path, meta, list, another ? 2 : 1, &err), err);
    as_status st = model_file_read(path, 1 << 26, &f, &err);
    if (st == AS_OK)
        st = predictor_create(f, 0, &p, &err);
    ck_assert_int_eq(st, words ? AS_E_INVAL : AS_OK);
    ck_assert_msg(!words || strstr(err.msg, words), "%s", err.msg);
}

START_TEST(hostile_centroids)
{
    clusters_case(DATASET_CLUSTERING, NULL, "\"model\":{\"kind\":\"kmeans\",\"clusters\":4}");
    AS_AUTO(as_freep) char *path = child_path(&predicted_child[0], "artifacts/model.safetensors");
    AS_AUTO(safetensors_freep) struct safetensors *whole = NULL;
    ck_ok(safetensors_read(path, 1 << 26, &whole, &err), err);
    const struct safetensors_tensor *found = safetensors_get(whole, "centroids");
    AS_AUTO(as_freep) float *values = as_calloc(found->size_bytes, 1);
    memcpy(values, found->data, found->size_bytes);
    hostile_case(whole, values, 4, false, NULL);
    hostile_case(whole, values, 3, false, "centroids");
    hostile_case(whole, values, 4, true, "'centroids' alone");
    values[5] = INFINITY;
    hostile_case(whole, values, 4, false, "expected a finite one");
}
END_TEST

START_TEST(nearest_neighbours)
{
    table_case(3, "\"model\":{\"kind\":\"knn\"}");
    table_case(2, "\"model\":{\"kind\":\"knn\",\"neighbours\":9,\"weights\":\"distance\"},"
                  "\"class_weights\":\"balanced\",\"numbers\":{\"encode\":\"piecewise_linear\"}");
    table_case(0, "\"model\":{\"kind\":\"knn\",\"weights\":\"distance\",\"embedding\":3},\"loss\":"
                  "\"huber\"");
    mixed_case(0,
               "\"model\":{\"kind\":\"knn\",\"neighbours\":3},\"target\":{\"transform\":\"log\"}");
}
END_TEST

START_TEST(naive_bayes)
{
    table_case(3, "\"model\":{\"kind\":\"naive_bayes\"}");
    table_case(2, "\"model\":{\"kind\":\"naive_bayes\",\"smoothing\":0.1},\"loss\":\"bce\","
                  "\"class_weights\":\"balanced\"");
    mixed_case(2, "\"model\":{\"kind\":\"naive_bayes\"}");
    mixed_case(2, "\"model\":{\"kind\":\"naive_bayes\",\"words\":\"multinomial\"}");
}
END_TEST

START_TEST(forest_of_numbers)
{
    table_case(0, "\"model\":{\"kind\":\"random_forest\",\"n_estimators\":9}");
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
    trained_write_table(&predicted_child[0], 211, 2);
    AS_AUTO(as_freep) char *path = child_path(&predicted_child[0], "t.csv");
    const struct dataset_paths paths = {.table = path};
    predicted_train(0, &paths, DATASET_CSV, "y", DATASET_CLASSIFICATION, "\"epochs\":1");
    AS_AUTO(model_file_freep) struct model_file *f = predicted_read(0);
    AS_AUTO(predictor_freep) struct predictor *p = NULL;
    ck_ok(predictor_create(f, 0, &p, &err), err);
    ck_ok(cell(p, 0, " 1.5 ", &v), err);
    ck_assert_float_eq(v, 1.5f);
    ck_ok(cell(p, 0, "N/A", &v), err); /* `size` is missing in some rows, `weight` in none */
    ck_assert(isnan(v));
    ck_ok(cell(p, 1, "", &v), err);
    ck_assert(isnan(v) && predictor_is_imputed(p, 1, v) && !predictor_is_imputed(p, 0, v));
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
    /* the median of the column stands for a number that no row of the training data lacks */
    float median = predictor_median(p, 1), filled[2];
    ck_assert(!isnan(median) && isnan(predictor_median(p, 0)));
    ck_ok(predictor_run(p, (float[]){1, median, 0}, 1, filled, &err), err);
    ck_ok(predictor_run(p, (float[]){1, NAN, 0}, 1, out, &err), err);
    ck_assert_mem_eq(out, filled, sizeof out);
    ck_ok(predictor_run(p, (float[]){1, median + 9, 0}, 1, filled, &err), err);
    ck_assert_mem_ne(out, filled, sizeof out);
    ck_fails(predictor_run(p, (float[]){1, 2, 5}, 1, out, &err), AS_E_INVAL, err,
             "found 5, expected the index of a category, 0 to 4");
    ck_fails(predictor_run(p, (float[]){INFINITY, 2, 0}, 1, out, &err), AS_E_INVAL, err, "'size'");
    ck_ok(predictor_run(p, (float[]){NAN, 2, 4}, 1, out, &err), err);
}
END_TEST

/* Codes that the data set names are missing in cells, and where numbers come as numbers. */
START_TEST(codes)
{
    char report[400];
    double code[] = {-999};
    float v = 0, out[2], coded[2], other[2];
    trained_write_table(&predicted_child[0], 211, 2);
    AS_AUTO(as_freep) char *path = child_path(&predicted_child[0], "t.csv");
    const struct dataset_paths paths = {.table = path};
    const struct dataset_options o = {.missing = {code, 1}};
    trained_model_with(&predicted_child[0], &paths, DATASET_CSV, &o, "y", DATASET_CLASSIFICATION,
                       "\"epochs\":1", report, sizeof report);
    AS_AUTO(model_file_freep) struct model_file *f = predicted_read(0);
    AS_AUTO(predictor_freep) struct predictor *p = NULL;
    ck_ok(predictor_create(f, 0, &p, &err), err);
    ck_ok(cell(p, 0, "-999.0", &v), err);
    ck_assert(isnan(v));
    ck_ok(cell(p, 1, "-999", &v), err);
    ck_assert(isnan(v) && predictor_is_imputed(p, 1, v));
    ck_ok(cell(p, 2, "-999", &v), err);
    ck_assert(predictor_is_unknown(p, 2, v));
    ck_ok(cell(p, 0, "-99", &v), err);
    ck_assert_float_eq(v, -99);
    ck_ok(predictor_run(p, (float[]){NAN, 2, 1}, 1, out, &err), err);
    ck_ok(predictor_run(p, (float[]){-999, 2, 1}, 1, coded, &err), err);
    ck_ok(predictor_run(p, (float[]){-998, 2, 1}, 1, other, &err), err);
    ck_assert_mem_eq(out, coded, sizeof out);
    ck_assert_mem_ne(out, other, sizeof out);
}
END_TEST

START_TEST(text_has_no_rows)
{
    static char text[3000];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = "the quick brown fox. "[i % 21];
    child_write(&predicted_child[0], "t.txt", text, sizeof text);
    AS_AUTO(as_freep) char *path = child_path(&predicted_child[0], "t.txt");
    const struct dataset_paths paths = {.table = path};
    predicted_train(
        0, &paths, DATASET_TEXT, NULL, DATASET_TASK_AUTO,
        "\"epochs\":1,\"model\":{\"kind\":\"transformer\",\"depth\":1,\"width\":8,\"heads\":1,"
        "\"context\":12}");
    AS_AUTO(model_file_freep) struct model_file *f = predicted_read(0);
    struct predictor *p = NULL;
    ck_fails(predictor_create(f, 0, &p, &err), AS_E_UNSUPPORTED, err, "continues text");
}
END_TEST

TEST_SUITE()
{
    static const char lacks[] = "XGBoost's library is not here (Debian: libxgboost0)";
    Suite *s = suite_create("predictor");
    TCase *t = tcase_create("predictor");
    tcase_add_checked_fixture(t, predicted_setup, predicted_teardown);
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
    const struct xgboost *xgboost = NULL;
    bool has_trees = xgboost_open(&xgboost, NULL) == AS_OK;
    tcase_add_test(t, numbers_in_bins);
    tcase_add_test(t, extra_trees);
    tcase_add_test(t, kmeans);
    tcase_add_test(t, hostile_centroids);
    tcase_add_test(t, nearest_neighbours);
    tcase_add_test(t, naive_bayes);
    add_test_if(t, trees_of_classes, has_trees, lacks);
    add_test_if(t, trees_of_two_classes, has_trees, lacks);
    add_test_if(t, forest_of_numbers, has_trees, lacks);
    add_test_if(t, trees_of_dates_and_texts, has_trees, lacks);
    tcase_add_test(t, cells);
    tcase_add_test(t, codes);
    tcase_add_test(t, text_has_no_rows);
    suite_add_tcase(s, t);
    return s;
}
