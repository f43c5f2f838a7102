/* Predicting with ensembles that are composed of what assay-train stored: a weighted sum, a stacked
 * one, and one by a column give the bits that follow from the members' recorded predictions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "data/formats/npy.h"
#include "model/predict/predictor.h"
#include "model/trees/xgboost.h"
#include "search/ensemble/ensemble.h"
#include "tests/model/predict/predicted.h"
#include "tests/support/check_main.h"

static struct as_err err;

/* ---- ensembles ---- */

#define LINEAR                                                                                     \
    "\"epochs\":2,\"standardize\":false,\"model\":{\"kind\":\"linear\"},\"optimizer\":{\"lr\":1e-" \
    "5}"
#define BINS "\"numbers\":{\"encode\":\"piecewise_linear\",\"bins\":5}"

/* Two of one shape, one with codes. */
static const char *const shapes[PREDICTED_MOST] = {
    "\"epochs\":2,\"model\":{\"layers\":[12]}",
    "\"epochs\":3,\"model\":{\"layers\":[5,4],\"embedding\":2}",
    "\"epochs\":4,\"model\":{\"layers\":[12]}", LINEAR};
static const char *const with_trees[PREDICTED_MOST] = {
    "\"epochs\":2,\"model\":{\"layers\":[12]}",
    "\"model\":{\"kind\":\"boosted_trees\",\"n_estimators\":4}",
    "\"epochs\":4,\"model\":{\"layers\":[12]}", LINEAR};
/* What `assay fit` keeps. */
static const char *const neighbours_and_bins[PREDICTED_MOST] = {
    "\"epochs\":2,\"model\":{\"layers\":[12]}," BINS,
    "\"model\":{\"kind\":\"knn\",\"neighbours\":7,\"weights\":\"distance\"}," BINS,
    "\"model\":{\"kind\":\"extra_trees\",\"n_estimators\":4}",
    "\"epochs\":2,\"model\":{\"kind\":\"linear\"}," BINS};

/* Train PREDICTED_MOST models of the table on the same split, put them together, and compare with
 * the weighted sum of what each of them recorded. */
static void ensemble_case(int classes, const char *const *fields)
{
    const double weights[PREDICTED_MOST] = {0.4, 0.3, 0.2, 0.1};
    struct model_source sources[PREDICTED_MOST];
    size_t columns = classes ? (size_t)classes : 1;
    AS_AUTO(as_freep) char *table = child_path(&predicted_child[0], "t.csv");
    AS_AUTO(as_freep) char *all = child_path(&predicted_child[0], "all.model");
    const struct dataset_paths paths = {.table = table};
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    AS_AUTO(predicted_rows_done) struct predicted_rows rows = {0};
    trained_write_table(&predicted_child[0], 211, classes);
    for (size_t i = 0; i < PREDICTED_MOST; i++) {
        predicted_train(i, &paths, DATASET_CSV, "y",
                        classes ? DATASET_CLASSIFICATION : DATASET_REGRESSION, fields[i]);
        sources[i] = (struct model_source){
            .path = child_path(&predicted_child[i], "artifacts/model.safetensors"),
            .weight = weights[i]};
    }
    ck_ok(model_file_write(all, sources, PREDICTED_MOST, NULL, NULL, &err), err);
    ck_ok(model_file_read(all, 1 << 26, &f, &err), err);
    predicted_held_rows(f, &paths, &rows);
    AS_AUTO(as_freep) double *sum = as_calloc(rows.n * columns, sizeof *sum);
    AS_AUTO(as_freep) float *expected = as_calloc(rows.n * columns, sizeof *expected);
    for (size_t i = 0; i < PREDICTED_MOST; i++) {
        AS_AUTO(as_freep) float *own = predicted_recorded(i, rows.n, columns);
        for (size_t k = 0; k < rows.n * columns; k++)
            sum[k] += weights[i] * (double)own[k];
        free((char *)sources[i].path);
    }
    for (size_t k = 0; k < rows.n * columns; k++)
        expected[k] = (float)sum[k];
    predicted_check(f, &rows, expected, columns);
}

START_TEST(ensemble_of_shapes)
{
    ensemble_case(3, shapes);
}
END_TEST

START_TEST(ensemble_of_a_regression)
{
    ensemble_case(0, shapes);
}
END_TEST

START_TEST(ensemble_with_trees)
{
    ensemble_case(3, with_trees);
}
END_TEST

START_TEST(ensemble_of_neighbours_and_bins)
{
    ensemble_case(3, neighbours_and_bins);
    ensemble_case(0, neighbours_and_bins);
}
END_TEST

/* ---- stacked ensembles ---- */

#define CANDIDATES 3

/* What is true of the held-out rows, as the trainer of model 0 recorded it. */
static void read_truth(bool of_classes, size_t rows, int64_t **ret_classes, float **ret_targets)
{
    AS_AUTO(as_freep) char *path = child_path(&predicted_child[0], "artifacts/targets.npy");
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
    if (of_classes)
        ck_assert_int_eq(json_object_set_new(combine, "calibration",
                                             json_pack("{s:f}", "slope", e->calibration.slope)),
                         0);
    for (size_t i = 0; i < e->members; i++)
        sources[i] =
            (struct model_source){.path = order[i] == 0 ? strdup(pair)
                                                        : child_path(&predicted_child[order[i] + 1],
                                                                     "artifacts/model.safetensors"),
                                  .weight = e->weights[order[i]]};
    ck_ok(model_file_write(path, sources, e->members, combine, NULL, &err), err);
    for (size_t i = 0; i < e->members; i++)
        free((char *)sources[i].path);
}

/* The predictions of the candidates on the held-out rows: the first is the mean of models 0 and
 * 1. */
static void read_candidates(size_t rows, size_t columns, float **ret)
{
    AS_AUTO(as_freep) float *other = predicted_recorded(1, rows, columns);
    ret[0] = predicted_recorded(0, rows, columns);
    for (size_t k = 0; k < rows * columns; k++) /* in double, as its own predictor does */
        ret[0][k] = (float)(0.75 * (double)ret[0][k] + 0.25 * (double)other[k]);
    for (size_t i = 1; i < CANDIDATES; i++)
        ret[i] = predicted_recorded(i + 1, rows, columns);
}

/* Fit a stacked ensemble on the recorded predictions, as the server does. The model that is
 * composed of it predicts the held-out rows to the bits of what the ensemble measured. */
static void stacked_case(int classes)
{
    static const char *const fields[PREDICTED_MOST] = {
        "\"epochs\":2,\"model\":{\"layers\":[12]}",
        "\"epochs\":3,\"model\":{\"layers\":[5,4],\"embedding\":2}",
        "\"epochs\":6,\"model\":{\"layers\":[12]}",
        ("\"epochs\":4,\"standardize\":false,\"model\":{\"kind\":\"linear\"},\"optimizer\":{\"lr\":"
         "1e-5}")};
    size_t columns = classes ? (size_t)classes : 1;
    AS_AUTO(as_freep) char *table = child_path(&predicted_child[0], "t.csv");
    AS_AUTO(as_freep) char *pair = child_path(&predicted_child[0], "pair.model");
    AS_AUTO(as_freep) char *all = child_path(&predicted_child[0], "all.model");
    AS_AUTO(as_freep)
    char *first = child_path(&predicted_child[0], "artifacts/model.safetensors");
    AS_AUTO(as_freep)
    char *second = child_path(&predicted_child[1], "artifacts/model.safetensors");
    const struct dataset_paths paths = {.table = table};
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    AS_AUTO(predicted_rows_done) struct predicted_rows rows = {0};
    AS_AUTO(as_freep) int64_t *labels = NULL;
    AS_AUTO(as_freep) float *targets = NULL;
    float *candidates[CANDIDATES];
    trained_write_table(&predicted_child[0], 401, classes);
    for (size_t i = 0; i < PREDICTED_MOST; i++)
        predicted_train(i, &paths, DATASET_CSV, "y",
                        classes ? DATASET_CLASSIFICATION : DATASET_REGRESSION, fields[i]);
    const struct model_source two[] = {{.path = first, .weight = 0.75},
                                       {.path = second, .weight = 0.25}};
    ck_ok(model_file_write(pair, two, 2, NULL, NULL, &err), err);
    AS_AUTO(model_file_freep) struct model_file *trial = predicted_read(0);
    predicted_held_rows(trial, &paths, &rows);
    read_candidates(rows.n, columns, candidates);
    read_truth(classes > 0, rows.n, &labels, &targets);
    const struct ensemble_input in = {.candidates = CANDIDATES,
                                      .truth = {rows.n, columns, labels, targets},
                                      .predictions = (const float *const *)candidates,
                                      .metric = classes ? SCORE_LOG_LOSS : SCORE_RMSE,
                                      .method = ENSEMBLE_STACKING,
                                      .size = CANDIDATES,
                                      .calibrate = classes > 0,
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
    predicted_check(f, &rows, expected, columns);
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
        sources[i] = (struct model_source){
            .path = child_path(&predicted_child[i], "artifacts/model.safetensors")};
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
    AS_AUTO(as_freep) char *table = child_path(&predicted_child[0], "t.csv");
    AS_AUTO(as_freep) char *all = child_path(&predicted_child[0], "all.model");
    const struct dataset_paths paths = {.table = table};
    AS_AUTO(predicted_rows_done) struct predicted_rows rows = {0};
    float *own[CANDIDATES];
    trained_write_table(&predicted_child[0], 211, classes);
    for (size_t i = 0; i < CANDIDATES; i++)
        predicted_train(
            i, &paths, DATASET_CSV, "y", classes ? DATASET_CLASSIFICATION : DATASET_REGRESSION,
            trees && i == 1 ? "\"model\":{\"kind\":\"boosted_trees\",\"n_estimators\":4}"
                            : fields[i]);
    AS_AUTO(model_file_freep) struct model_file *trial = predicted_read(0);
    predicted_held_rows(trial, &paths, &rows);
    for (size_t i = 0; i < CANDIDATES; i++)
        own[i] = predicted_recorded(i, rows.n, columns);
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
        predicted_check(f, &rows, expected, columns);
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
    AS_AUTO(as_freep) char *table = child_path(&predicted_child[0], "t.csv");
    AS_AUTO(as_freep) char *all = child_path(&predicted_child[0], "all.model");
    const struct dataset_paths paths = {.table = table};
    static const char text[] = "when,x,y\n2024-03-09,1,2\n2024-04-10 06:00,2,3\n,3,5\n"
                               "2025-01-01,3,6\n2024-03-09,2,4\n2024-04-10,7,3\n";
    child_write(&predicted_child[0], "t.csv", text, sizeof text - 1);
    for (size_t i = 0; i < CANDIDATES; i++)
        predicted_train(i, &paths, DATASET_CSV, "y", DATASET_REGRESSION,
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
        AS_AUTO(model_file_freep) struct model_file *one = predicted_read(inputs[i]);
        AS_AUTO(predictor_freep) struct predictor *own = NULL;
        AS_AUTO(as_freep) float *row = as_calloc(width, sizeof *row);
        float got = 0, expected = 0;
        ck_ok(predictor_create(one, 0, &own, &err), err);
        ck_ok(predictor_cell(p, 0, cells[i], strlen(cells[i]), row, &err), err);
        row[width - 1] = 4;
        ck_ok(predictor_run(p, row, 1, &got, &err), err);
        ck_ok(predictor_run(own, row, 1, &expected, &err), err);
        predicted_same_bits(&got, &expected, 1, cells[i]);
    }
}
END_TEST

TEST_SUITE()
{
    static const char lacks[] = "XGBoost's library is not here (Debian: libxgboost0)";
    const struct xgboost *xgboost = NULL;
    bool has_trees = xgboost_open(&xgboost, NULL) == AS_OK;
    Suite *s = suite_create("predictor_ensembles");
    TCase *t = tcase_create("ensembles");
    tcase_add_checked_fixture(t, predicted_setup, predicted_teardown);
    tcase_add_test(t, ensemble_of_shapes);
    tcase_add_test(t, ensemble_of_a_regression);
    tcase_add_test(t, ensemble_of_neighbours_and_bins);
    add_test_if(t, ensemble_with_trees, has_trees, lacks);
    tcase_add_test(t, stacked_classes);
    tcase_add_test(t, stacked_numbers);
    tcase_add_test(t, classes_by_a_column);
    tcase_add_test(t, numbers_by_a_column);
    tcase_add_test(t, dates_by_a_column);
    add_test_if(t, trees_by_a_column, has_trees, lacks);
    suite_add_tcase(s, t);
    return s;
}
