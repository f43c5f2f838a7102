/* Models of trees in assay-train, a process of its own, with XGBoost's real library: what they
 * learn, what they leave, that a stopped or killed run ends with the bits of one that was not, and
 * what happens on a machine without the library. This program reads the stored models with
 * model/trees. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
#include "model/trees/tree_train.h"
#include "model/trees/xgboost.h"
#include "tests/support/check_main.h"
#include "tests/support/roots.h"
#include "tests/support/tree_jobs.h"

#define LINE 1024

#define FAST "\"kind\":\"boosted_trees\",\"learning_rate\":0.5,\"max_depth\":3,"

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

/* ---- extra trees, which need no library ---- */

START_TEST(extra_trees_of_digits)
{
    digits_job("\"kind\":\"extra_trees\",\"n_estimators\":60",
               ",\"report_every\":20,\"metrics\":[\"val_log_loss\",\"val_auc\"]");
    ck_assert_int_eq(run_job(), 3);
    ck_assert_double_lt(field(last, "val_error"), 0.04);
    ck_assert_double_gt(field(last, "val_auc"), 0.99);
    AS_AUTO(as_freep) char *path = file_join(source_root(), "examples/digits.csv");
    predicts_as_recorded(path);
}
END_TEST

/* Numbers with gaps and a category; two classes with weights, shares and a draw of rows. */
START_TEST(extra_trees_of_tables)
{
    AS_AUTO(as_freep)
    char *path = table_job(false, "\"kind\":\"extra_trees\",\"n_estimators\":60", "");
    (void)run_job();
    ck_assert_msg(field(last, "val_rmse") < 3, "%s", last);
    predicts_as_recorded(path);
    free(as_steal(path));
    teardown();
    setup();
    path =
        table_job(true,
                  "\"kind\":\"extra_trees\",\"n_estimators\":40,\"max_depth\":9,\"subsample\":0.7,"
                  "\"min_child_weight\":2,\"colsample_bynode\":1",
                  ",\"loss\":\"bce\",\"class_weights\":\"balanced\"");
    (void)run_job();
    ck_assert_double_lt(field(last, "val_error"), 0.05);
    predicts_as_recorded(path);
    AS_AUTO(as_freep) char *text = child_read(&child, "artifacts/importance.json", NULL);
    ck_assert_ptr_nonnull(strstr(text, "colour"));
}
END_TEST

/* ---- neighbours, which are trained by the same loop ---- */

START_TEST(neighbours_of_digits)
{
    digits_job("\"kind\":\"knn\",\"weights\":\"distance\",\"n_estimators\":9",
               ",\"metrics\":[\"val_auc\"]");
    ck_assert_int_eq(run_job(), 1);
    ck_assert_double_eq(field(last, "step"), 1);
    ck_assert_double_lt(field(last, "val_error"), 0.05);
    ck_assert_double_lt(field(last, "train_loss"), 1e-6); /* each row is its own neighbour */
    AS_AUTO(as_freep) char *scores = child_path(&child, "artifacts/importance.json");
    ck_assert_int_ne(access(scores, F_OK), 0); /* they have none */
}
END_TEST

/* Of many rows the loss of a part is reported. */
START_TEST(neighbours_of_many_rows)
{
    const struct train_spec near = {.model = {.kind = TRAIN_KNN}},
                            trees = {.model = {.kind = TRAIN_EXTRA_TREES}};
    ck_assert_uint_eq(tree_train_shown(&near, TREE_SHOWN_ROWS + 1), TREE_SHOWN_ROWS);
    ck_assert_uint_eq(tree_train_shown(&trees, TREE_SHOWN_ROWS + 1), TREE_SHOWN_ROWS + 1);
    write_table("t.csv", 3000, true);
    AS_AUTO(as_freep) char *path = child_path(&child, "t.csv");
    JSON_AUTO dataset = dataset_of(path, "y", DATASET_CLASSIFICATION);
    write_job(dataset, "\"kind\":\"knn\",\"weights\":\"distance\"",
              ",\"class_weights\":\"balanced\"");
    ck_assert_int_eq(run_job(), 1);
    ck_assert_double_lt(field(last, "train_loss"), 1e-6); /* each row is its own neighbour */
    predicts_as_recorded(path);
}
END_TEST

START_TEST(naive_bayes_of_digits)
{
    digits_job("\"kind\":\"naive_bayes\",\"var_smoothing\":0.05,\"n_estimators\":9",
               ",\"metrics\":[\"val_auc\"]");
    ck_assert_int_eq(run_job(), 1);
    ck_assert_double_eq(field(last, "step"), 1);
    ck_assert_double_lt(field(last, "val_error"), 0.15);
    AS_AUTO(as_freep) char *scores = child_path(&child, "artifacts/importance.json");
    ck_assert_int_ne(access(scores, F_OK), 0); /* it has none */
    AS_AUTO(as_freep) char *path = file_join(source_root(), "examples/digits.csv");
    predicts_as_recorded(path);
}
END_TEST

/* Trees grow side by side, and are the same ones. */
START_TEST(extra_trees_have_the_same_bits_with_any_threads)
{
    size_t n[2];
    char *bits[2];
    for (size_t i = 0; i < 2; i++) {
        AS_AUTO(as_freep)
        char *path = table_job(true, "\"kind\":\"extra_trees\",\"n_estimators\":23", "");
        ck_assert_int_eq(setenv("ASSAY_THREADS", i ? "5" : "1", 1), 0);
        child_start(&child, "11", NULL);
        ck_assert_int_eq(child_wait(&child), 0);
        bits[i] = child_read(&child, "artifacts/model.safetensors", &n[i]);
        teardown();
        setup();
    }
    ck_assert_uint_eq(n[0], n[1]);
    ck_assert_mem_eq(bits[0], bits[1], n[0]);
    free(bits[0]);
    free(bits[1]);
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

START_TEST(resumes_with_patience)
{
    resumes(FAST "\"n_estimators\":500,\"subsample\":0.8", ",\"report_every\":1,\"patience\":20");
}
END_TEST

START_TEST(a_forest_resumes)
{
    resumes("\"kind\":\"random_forest\",\"n_estimators\":60", ",\"report_every\":1");
}
END_TEST

START_TEST(extra_trees_resume)
{
    resumes("\"kind\":\"extra_trees\",\"n_estimators\":60,\"colsample_bynode\":0.9",
            ",\"report_every\":1");
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
    teardown();
    setup();
    digits_job("\"kind\":\"extra_trees\",\"n_estimators\":2", "");
    ck_assert_int_eq(run_job(), 2);
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

TEST_SUITE()
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
    add_test_if(t, resumes_with_patience, here, lacks);
    add_test_if(t, resumes_with_the_same_bits, here, lacks);
    add_test_if(t, resumes_when_rows_and_columns_are_drawn, here, lacks);
    add_test_if(t, a_forest_resumes, here, lacks);
    add_test_if(t, another_jobs_checkpoint, here, lacks);
    add_test_if(t, members_of_a_group, here, lacks);
    add_test_if(t, models_that_do_not_fit, here, lacks);
    tcase_add_test(t, extra_trees_of_digits);
    tcase_add_test(t, extra_trees_of_tables);
    tcase_add_test(t, neighbours_of_digits);
    tcase_add_test(t, neighbours_of_many_rows);
    tcase_add_test(t, naive_bayes_of_digits);
    tcase_add_test(t, extra_trees_have_the_same_bits_with_any_threads);
    tcase_add_test(t, extra_trees_resume);
    tcase_add_test(t, without_the_library);
    tcase_add_test(t, another_library);
    tcase_add_test(t, as_a_rank);
    suite_add_tcase(s, t);
    return s;
}
