/* Ensembles as ONNX files: means, stacked ones, sums of boosting, and those by a column. As in
 * test_onnx_write.c, members are trained by assay-train, and the graph gives what model/predict
 * gives. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "model/file/model_file.h"
#include "tests/model/onnx/onnx_case.h"
#include "tests/model/onnx/onnx_table.h"
#include "tests/support/check_main.h"

#define ROWS 97

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

static void compose_as(const char *name, const char *const *names, const double *weights, size_t n,
                       json_t *combine)
{
    struct model_source sources[8] = {0};
    AS_AUTO(as_freep) char *path = child_path(&child, name);
    for (size_t i = 0; i < n; i++)
        sources[i] =
            (struct model_source){.path = child_path(&child, names[i]), .weight = weights[i]};
    ck_ok(model_file_write(path, sources, n, combine, NULL, &err), err);
    for (size_t i = 0; i < n; i++)
        free((char *)sources[i].path);
    json_decref(combine);
}

static void compose(const char *const *names, const double *weights, size_t n)
{
    compose_as("ensemble", names, weights, n, NULL);
}

/* Members of different shapes and encodings, with other training rows. */
START_TEST(ensemble_of_classifiers)
{
    onnx_table_write(&child, 211, 2);
    onnx_table_train(&child, 2, "\"epochs\":3,\"model\":{\"layers\":[9]}", "1", "a");
    onnx_table_train(&child, 2,
                     "\"epochs\":3,\"loss\":\"bce\",\"validation\":{\"seed\":7,\"fraction\":0.6},"
                     "\"model\":{\"layers\":[7,5],\"embedding\":2}",
                     "2", "b");
    onnx_table_train(&child, 2,
                     "\"epochs\":3,\"standardize\":false,\"model\":{\"kind\":\"logistic\"}", "3",
                     "c");
    compose((const char *[]){"a", "b", "c"}, (double[]){0.5, 0.3, 0.2}, 3);
    onnx_case_compare(&child, "ensemble", ROWS);
}
END_TEST

START_TEST(ensemble_of_regressions)
{
    onnx_table_write(&child, 211, 0);
    onnx_table_train(&child, 0, "\"epochs\":3,\"model\":{\"layers\":[9]}", "1", "a");
    onnx_table_train(
        &child, 0, "\"epochs\":3,\"validation\":{\"seed\":7},\"model\":{\"layers\":[9]}", "2", "b");
    compose((const char *[]){"a", "b"}, (double[]){0.25, 0.75}, 2);
    onnx_case_compare(&child, "ensemble", ROWS);
}
END_TEST

/* Stacked: of logarithms of probabilities, some of which are too small for one, with a coefficient
 * below 0, and with an input that is a mean of two (a trial of folds). */
START_TEST(stacked_classifiers)
{
    onnx_table_write(&child, 211, 3);
    onnx_table_train(&child, 3, "\"epochs\":3,\"model\":{\"layers\":[9]}", "1", "a");
    onnx_table_train(&child, 3,
                     "\"epochs\":60,\"model\":{\"layers\":[64,64]},\"optimizer\":{\"lr\":0.03}",
                     "2", "b");
    onnx_table_train(&child, 3,
                     "\"epochs\":3,\"standardize\":false,\"model\":{\"kind\":\"logistic\"}", "3",
                     "c");
    compose_as("pair", (const char *[]){"a", "b"}, (double[]){0.25, 0.75}, 2, NULL);
    compose_as("ensemble", (const char *[]){"b", "pair", "c"}, (double[]){0.9, 0.5, -0.3}, 3,
               json_pack("{s:s, s:s, s:[f, f, f]}", "kind", "linear", "inputs", "log", "biases",
                         0.3, -0.2, -0.1));
    onnx_case_compare(&child, "ensemble", ROWS);
}
END_TEST

/* What `assay fit` keeps: neighbours, networks and linear models that see numbers in bins, trees;
 * as a mean, stacked, and calibrated. */
static void neighbours_and_bins_case(int classes)
{
    static const char *const bins = "\"numbers\":{\"encode\":\"piecewise_linear\",\"bins\":5}";
    static const char *const names[] = {"near", "net", "lines", "trees"};
    char fields[400];
    JSON_AUTO biases = json_array();
    onnx_table_write(&child, 211, classes);
    (void)snprintf(fields, sizeof fields,
                   "\"model\":{\"kind\":\"knn\",\"neighbours\":7,\"weights\":\"distance\"},%s",
                   bins);
    onnx_table_train(&child, classes, fields, "1", "near");
    (void)snprintf(
        fields, sizeof fields,
        "\"epochs\":3,\"validation\":{\"seed\":7,\"fraction\":0.6},\"model\":{\"layers\":"
        "[9]},%s",
        bins);
    onnx_table_train(&child, classes, fields, "2", "net");
    (void)snprintf(fields, sizeof fields, "\"epochs\":3,\"model\":{\"kind\":\"%s\"},%s",
                   classes ? "logistic" : "linear", bins);
    onnx_table_train(&child, classes, fields, "3", "lines");
    onnx_table_train(&child, classes, "\"model\":{\"kind\":\"extra_trees\",\"n_estimators\":5}",
                     "4", "trees");
    compose(names, (double[]){0.25, 0.25, 0.375, 0.125}, 4);
    onnx_case_compare(&child, "ensemble", ROWS);
    for (int i = 0; i < (classes ? classes : 2); i++)
        (void)json_array_append_new(biases, json_real(0.25 * i));
    json_t *combine = json_pack("{s:s, s:s, s:O}", "kind", "linear", "inputs",
                                classes ? "log" : "outputs", "biases", biases);
    if (classes)
        (void)json_object_set_new(combine, "calibration", json_pack("{s:f}", "slope", 0.75));
    compose_as("ensemble", names, (double[]){0.5, 0.75, -0.25, 0.125}, 4, combine);
    onnx_case_compare(&child, "ensemble", ROWS);
}

START_TEST(neighbours_and_bins_of_classes)
{
    neighbours_and_bins_case(3);
}
END_TEST

START_TEST(neighbours_and_bins_of_numbers)
{
    neighbours_and_bins_case(0);
}
END_TEST

START_TEST(stacked_regressions)
{
    onnx_table_write(&child, 211, 0);
    onnx_table_train(&child, 0, "\"epochs\":3,\"model\":{\"layers\":[9]}", "1", "a");
    onnx_table_train(
        &child, 0, "\"epochs\":3,\"validation\":{\"seed\":7},\"model\":{\"layers\":[9]}", "2", "b");
    compose_as("ensemble", (const char *[]){"a", "b"}, (double[]){1.25, -0.5}, 2,
               json_pack("{s:s, s:s, s:[f, f]}", "kind", "linear", "inputs", "outputs", "biases",
                         210.5, 0.25));
    onnx_case_compare(&child, "ensemble", ROWS);
}
END_TEST

/* Calibrated, of two classes with a threshold that few rows reach, and of three by temperature and
 * with weights of them. The model of two is one member. */
START_TEST(calibrated_classifiers)
{
    onnx_table_write(&child, 211, 2);
    onnx_table_train(&child, 2, "\"epochs\":9,\"model\":{\"layers\":[9]}", "1", "a");
    compose_as("ensemble", (const char *[]){"a"}, (double[]){1}, 1,
               json_pack("{s:s, s:{s:f, s:f}, s:f}", "kind", "mean", "calibration", "slope", 1.75,
                         "bias", -0.5, "threshold", 0.75));
    onnx_case_compare(&child, "ensemble", ROWS);
    onnx_table_write(&child, 211, 3);
    onnx_table_train(&child, 3, "\"epochs\":3,\"model\":{\"layers\":[9]}", "1", "a");
    onnx_table_train(&child, 3, "\"epochs\":3,\"model\":{\"layers\":[7]}", "2", "b");
    compose_as("ensemble", (const char *[]){"a", "b"}, (double[]){0.25, 0.75}, 2,
               json_pack("{s:s, s:{s:f}, s:[f, f, f]}", "kind", "mean", "calibration", "slope", 0.4,
                         "class_weights", 0.5, 1.0, 4.0));
    onnx_case_compare(&child, "ensemble", ROWS);
}
END_TEST

/* Boosting: scores of the first stage, and numbers of the others. */
static void boosting_case(int classes, const char *fields)
{
    char text[400];
    onnx_table_write(&child, 211, classes);
    onnx_table_train(&child, classes, fields, "1", "model0");
    for (int stage = 1; stage < 3; stage++) {
        char base[] = "model0", name[] = "model0";
        base[5] = (char)('0' + stage - 1);
        name[5] = (char)('0' + stage);
        (void)snprintf(text, sizeof text, "%s,\"boost\":{\"stage\":%d}", fields, stage);
        onnx_table_train_stage(&child, classes, text, "2", base, name);
    }
    onnx_case_compare(&child, "model2", ROWS);
}

START_TEST(boosted_networks)
{
    boosting_case(3, "\"epochs\":20,\"model\":{\"layers\":[32]},\"optimizer\":{\"lr\":0.03}");
    boosting_case(2, "\"epochs\":3,\"model\":{\"kind\":\"logistic\"}");
    boosting_case(0, "\"epochs\":4,\"model\":{\"layers\":[9],\"embedding\":2}");
}
END_TEST

START_TEST(boosted_trees_in_stages)
{
    boosting_case(3, "\"model\":{\"kind\":\"boosted_trees\",\"n_estimators\":5,\"max_depth\":3}");
    boosting_case(0, "\"model\":{\"kind\":\"random_forest\",\"n_estimators\":5,\"max_depth\":3}");
}
END_TEST

/* A sum, its first stage and another model: as a mean, stacked, and by a column. */
static void nested_case(int classes)
{
    static const char *const fields = "\"epochs\":20,\"model\":{\"layers\":[16]}";
    const char *const names[] = {"sum", "c", "a"};
    onnx_table_write(&child, 211, classes);
    onnx_table_train(&child, classes, fields, "1", "a");
    onnx_table_train_stage(&child, classes,
                           "\"epochs\":20,\"model\":{\"layers\":[16]},\"boost\":{\"stage\":1}", "2",
                           "a", "sum");
    onnx_table_train(&child, classes, "\"epochs\":3,\"model\":{\"layers\":[7,5],\"embedding\":2}",
                     "3", "c");
    compose(names, (double[]){0.5, 0.375, 0.125}, 3);
    onnx_case_compare(&child, "ensemble", ROWS);
    json_t *biases = json_array();
    for (int i = 0; i < (classes ? classes : 2); i++)
        (void)json_array_append_new(biases, json_real(0.25 * i));
    compose_as("ensemble", names, (double[]){0.75, -0.25, 0.5}, 3,
               json_pack("{s:s, s:s, s:o}", "kind", "linear", "inputs", classes ? "log" : "outputs",
                         "biases", biases));
    onnx_case_compare(&child, "ensemble", ROWS);
    compose_as("ensemble", names, (double[]){0, 0, 0}, 3,
               json_pack("{s:s, s:s, s:[{s:s, s:i}, {s:s, s:i}, {s:s, s:i}], s:i}", "kind", "by",
                         "column", "colour, NA", "buckets", "value", "green", "input", 0, "value",
                         "blue", "input", 1, "value", "red", "input", 0, "other", 2));
    onnx_case_compare(&child, "ensemble", ROWS);
    compose_as("ensemble", names, (double[]){0, 0, 0}, 3,
               json_pack("{s:s, s:s, s:[{s:s, s:i}, {s:s, s:i}], s:i}", "kind", "by", "column",
                         "probabilities", "buckets", "value", "0.5", "input", 0, "value", "-0",
                         "input", 1, "other", 2));
    onnx_case_compare(&child, "ensemble", ROWS);
    onnx_case_refuses(&child, "ensemble", 0, INFINITY);
}

START_TEST(classes_of_sums_and_by_columns)
{
    nested_case(3);
}
END_TEST

START_TEST(numbers_of_sums_and_by_columns)
{
    nested_case(0);
}
END_TEST

/* A model of two layers alone, beside one that it sees, and by a column. */
static void layers_case(int classes, const char *above)
{
    static const char *const names[] = {"deep", "a"};
    onnx_table_write(&child, 211, classes);
    onnx_table_train_layers(&child, classes, above, "deep");
    onnx_case_compare(&child, "deep", ROWS);
    compose(names, (double[]){0.75, 0.25}, 2);
    onnx_case_compare(&child, "ensemble", ROWS);
    compose_as("ensemble", names, (double[]){0, 0}, 2,
               json_pack("{s:s, s:s, s:[{s:s, s:i}], s:i}", "kind", "by", "column", "colour, NA",
                         "buckets", "value", "green", "input", 0, "other", 1));
    onnx_case_compare(&child, "ensemble", ROWS);
}

START_TEST(layers)
{
    layers_case(3, "\"model\":{\"kind\":\"extra_trees\",\"n_estimators\":4}");
    layers_case(2, "\"epochs\":3,\"model\":{\"layers\":[7],\"embedding\":2}");
    layers_case(0, "\"epochs\":3,\"model\":{\"kind\":\"linear\"}");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("onnx_ensembles");
    TCase *t = tcase_create("onnx_ensembles");
    tcase_add_checked_fixture(t, setup, teardown);
    if (!onnx_case_has_checker())
        skip_tests("checks of the files", 1, "python3 has no package onnx (python3-onnx)");
    if (!onnx_case_has_runtime())
        skip_tests("runs of the files", 1, "no ONNX Runtime is installed: see ASSAY_ONNX_RUNTIME");
    bool trees = onnx_case_has_trees();
    const char *why = "there is no libxgboost (libxgboost0)";
    tcase_add_test(t, ensemble_of_classifiers);
    tcase_add_test(t, ensemble_of_regressions);
    tcase_add_test(t, stacked_classifiers);
    tcase_add_test(t, stacked_regressions);
    tcase_add_test(t, neighbours_and_bins_of_classes);
    tcase_add_test(t, neighbours_and_bins_of_numbers);
    tcase_add_test(t, calibrated_classifiers);
    tcase_add_test(t, boosted_networks);
    tcase_add_test(t, classes_of_sums_and_by_columns);
    tcase_add_test(t, numbers_of_sums_and_by_columns);
    tcase_add_test(t, layers);
    add_test_if(t, boosted_trees_in_stages, trees, why);
    suite_add_tcase(s, t);
    return s;
}
