#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "model/plan/plan_check.h"
#include "model/plan/plan.h"
#include "model/plan/signature.h"
#include "tests/support/check_main.h"

static struct as_err err;

static as_status parse(const char *text, struct train_spec *ret)
{
    JSON_AUTO j = NULL;
    ck_ok(json_parse(text, strlen(text), &j, &err), err);
    return train_spec_parse(j, "/trial/train", ret, &err);
}

START_TEST(against_classes)
{
    struct train_spec s;
    struct dataset_info d = {
        .task = DATASET_CLASSIFICATION, .n_rows = 10, .n_features = 4, .n_outputs = 3};
    ck_ok(parse("{\"dataset\":\"d\",\"epochs\":5,\"loss\":\"mse\"}", &s), err);
    ck_fails(train_spec_check(&s, &d, "/trial/train", &err), AS_E_INVAL, err,
             "/trial/train/loss: found mse, expected cross_entropy: data set 'd' is for "
             "classification");
    s.loss = TRAIN_BCE;
    ck_fails(train_spec_check(&s, &d, "", &err), AS_E_INVAL, err, "of more than two classes");
    d.n_classes = d.n_outputs = 2;
    ck_ok(train_spec_check(&s, &d, "", &err), err);
    s.n_class_weights = 3;
    ck_fails(train_spec_check(&s, &d, "", &err), AS_E_INVAL, err,
             "/class_weights: found 3 weights, expected 2");
    s.n_class_weights = 0;
    s.augment.pad = 1;
    ck_fails(train_spec_check(&s, &d, "", &err), AS_E_INVAL, err,
             "/augment: data set 'd' is a table, expected images");
    s.augment.pad = 0;
    s.schedule.kind = TRAIN_COSINE;
    s.schedule.snapshots = 1;
    d.input = DATASET_TOKEN_TEXT;
    ck_fails(train_spec_check(&s, &d, "", &err), AS_E_INVAL, err,
             "/schedule/snapshots: data set 'd' is a text of tokens");
    s.schedule.snapshots = 0;
    d.input = DATASET_TABLE;
    s.model.kind = TRAIN_CNN;
    ck_fails(train_spec_check(&s, &d, "", &err), AS_E_INVAL, err,
             "/model/kind: found cnn, which takes images");
    s.model.kind = TRAIN_MLP;
    s.piecewise = true;
    s.bins = 16;
    d.input = DATASET_IMAGE;
    ck_fails(train_spec_check(&s, &d, "", &err), AS_E_INVAL, err,
             "/numbers/encode: found piecewise_linear, expected none: data set 'd' is images");
    d.input = DATASET_TABLE;
    size_t rows = d.n_rows;
    d.n_rows = DATASET_MAX_ROWS;
    ck_fails(train_spec_check(&s, &d, "", &err), AS_E_INVAL, err, "/numbers/bins: found 16, which");
    s.model.kind = TRAIN_KNN; /* its model would be the rows */
    ck_fails(train_spec_check(&s, &d, "", &err), AS_E_INVAL, err, "/model/kind: found knn, whose");
    s.model.kind = TRAIN_NAIVE_BAYES; /* whatever the rows are */
    ck_ok(train_spec_check(&s, &d, "", &err), err);
    s.loss = TRAIN_CROSS_ENTROPY;
    d.n_features = 65536;
    d.n_classes = d.n_outputs = 4096;
    ck_fails(train_spec_check(&s, &d, "", &err), AS_E_INVAL, err,
             "/model/kind: found naive_bayes, of which 65536 inputs and 4096 classes");
    d.n_features = 4;
    d.n_classes = d.n_outputs = 2;
    d.task = DATASET_REGRESSION;
    s.loss = TRAIN_LOSS_AUTO;
    ck_fails(train_spec_check(&s, &d, "", &err), AS_E_INVAL, err,
             "/model/kind: found naive_bayes, which predicts classes");
    d.task = DATASET_CLASSIFICATION;
    s.model.kind = TRAIN_MLP;
    d.n_rows = rows;
    s.piecewise = false;
    s.target_transform = TARGET_LOG;
    ck_fails(train_spec_check(&s, &d, "/trial/train", &err), AS_E_INVAL, err,
             "/trial/train/target/transform: found log, expected none: data set 'd' is for "
             "classification");
}
END_TEST

START_TEST(iterations_of_lbfgs_are_of_all_rows)
{
    struct train_spec s;
    struct dataset_info d = {
        .task = DATASET_CLASSIFICATION, .n_rows = 100, .n_features = 4, .n_outputs = 3};
    ck_ok(parse("{\"dataset\":\"d\",\"epochs\":5,\"optimizer\":{\"kind\":\"lbfgs\"},"
                "\"batch_size\":99}",
                &s),
          err);
    ck_fails(
        train_spec_check(&s, &d, "/trial/train", &err), AS_E_INVAL, err,
        "/trial/train/batch_size: found 99 with the optimizer lbfgs, expected at least the 100 "
        "rows");
    s.batch_size = 100;
    ck_ok(train_spec_check(&s, &d, "/trial/train", &err), err);
}
END_TEST

/* 4 columns, and 2 hidden layers: the layers are layers.0, layers.1, layers.2. */
static const struct {
    const char *blocks, *expected; /* NULL: it is well */
} placed[] = {
    {"\"auto\"", NULL},
    {"[[\"layers.0\"],[\"layers.1\",\"layers.2\"]]", NULL},
    {"[[\"layers.0\"],[\"layers.2\"]]",
     "/distributed/model_parallel/1/0: found 'layers.2', which is out of its place; expected "
     "'layers.1', the next of its 3 layers"},
    {"[[\"layers.0\"],[\"layers.0\"]]",
     "/distributed/model_parallel/1/0: found 'layers.0', which is there already"},
    {"[[\"layers.0\",\"head\"],[\"layers.1\"]]",
     "/distributed/model_parallel/0/1: found 'head', which is no layer of this model"},
    {"[[\"layers.0\"],[\"layers.1\"]]",
     "/distributed/model_parallel: 'layers.2' is in no block, expected all 3 layers"},
    {"[[\"layers.0\"],[\"layers.1\"],[\"layers.2\"],[\"layers.3\"]]",
     "/distributed/model_parallel/3/0: found 'layers.3', which is no layer of this model; expected "
     "no more layers after 'layers.2'"},
};

START_TEST(blocks_are_the_layers_in_their_order)
{
    struct train_spec s;
    char doc[400];
    struct dataset_info d = {
        .task = DATASET_CLASSIFICATION, .n_rows = 100, .n_features = 4, .n_outputs = 3};
    (void)snprintf(doc, sizeof doc,
                   "{\"dataset\":\"d\",\"epochs\":5,\"model\":{\"layers\":[8,6]},"
                   "\"distributed\":{\"model_parallel\":%s}}",
                   placed[_i].blocks);
    ck_ok(parse(doc, &s), err);
    if (placed[_i].expected)
        ck_fails(train_spec_check(&s, &d, "/trial/train", &err), AS_E_INVAL, err,
                 placed[_i].expected);
    else
        ck_ok(train_spec_check(&s, &d, "/trial/train", &err), err);
    train_spec_done(&s);
}
END_TEST

START_TEST(one_layer_is_no_pipeline)
{
    struct train_spec s;
    struct dataset_info d = {
        .task = DATASET_CLASSIFICATION, .n_rows = 100, .n_features = 4, .n_outputs = 3};
    ck_ok(parse("{\"dataset\":\"d\",\"epochs\":5,\"model\":{\"kind\":\"linear\"},"
                "\"distributed\":{\"model_parallel\":\"auto\"}}",
                &s),
          err);
    ck_fails(train_spec_check(&s, &d, "/trial/train", &err), AS_E_INVAL, err,
             "/distributed/model_parallel: found with a model of one layer, expected 2 or more");
}
END_TEST

START_TEST(against_numbers)
{
    struct train_spec s;
    struct dataset_info d = {
        .task = DATASET_REGRESSION, .n_rows = 10, .n_features = 4, .n_outputs = 2};
    ck_ok(parse("{\"dataset\":\"d\",\"epochs\":5,\"loss\":\"bce\"}", &s), err);
    s.target_transform = TARGET_LOG;
    ck_fails(train_spec_check(&s, &d, "", &err), AS_E_INVAL, err, "with the loss bce");
    s.loss = TRAIN_MSE;
    ck_ok(train_spec_check(&s, &d, "/trial/train", &err), err);
    s.target_transform = TARGET_AS_IS;
    ck_ok(train_spec_check(&s, &d, "/trial/train", &err), err);
    s.balanced = true;
    ck_fails(train_spec_check(&s, &d, "", &err), AS_E_INVAL, err, "has no classes");
    s.balanced = false;
    s.model.logistic = true;
    ck_fails(train_spec_check(&s, &d, "", &err), AS_E_INVAL, err,
             "found logistic, expected linear");
    s.model.logistic = false;
    ck_assert(train_spec_request(&s, "val_auc"));
    ck_fails(train_spec_check(&s, &d, "", &err), AS_E_INVAL, err, "/metrics: found val_auc");
    s.n_metrics = 0;
    ck_assert(train_spec_request(&s, "val_r2") && train_spec_request(&s, "lr"));
    ck_ok(train_spec_check(&s, &d, "", &err), err);
    ck_assert(train_spec_request(&s, "val_accuracy")); /* stands, but for others */
    ck_fails(train_spec_check(&s, &d, "", &err), AS_E_INVAL, err, "/metrics: found val_accuracy");
    s.n_metrics = 0;
    s.loss = TRAIN_CROSS_ENTROPY;
    ck_fails(train_spec_check(&s, &d, "", &err), AS_E_INVAL, err, "expected mse, huber or bce");
}
END_TEST

START_TEST(against_sizes)
{
    struct train_spec s;
    struct dataset_info d = {
        .task = DATASET_REGRESSION, .n_rows = 10, .n_features = 4, .n_outputs = 2};
    ck_ok(parse("{\"dataset\":\"d\",\"epochs\":5}", &s), err);
    s.model.n_layers = 2;
    s.model.layers[0] = s.model.layers[1] = TRAIN_MAX_WIDTH;
    ck_fails(train_spec_check(&s, &d, "/trial/train", &err), AS_E_TOO_LARGE, err, "parameters");
    ck_assert_str_eq(err.pointer, "/trial/train/model/layers");
    s.model.n_layers = 0;
    d.n_rows = 1;
    ck_fails(train_spec_check(&s, &d, "", &err), AS_E_INVAL, err, "1 rows");
}
END_TEST

START_TEST(against_tokens)
{
    struct train_spec s;
    ck_ok(parse("{\"dataset\":\"d\",\"epochs\":5}", &s), err);
    struct dataset_info text = {.input = DATASET_TOKEN_TEXT,
                                .task = DATASET_LANGUAGE_MODELING,
                                .n_rows = 129,
                                .n_features = 1,
                                .n_outputs = 50};
    ck_fails(train_spec_check(&s, &text, "", &err), AS_E_INVAL, err, "expected transformer");
    s.model.kind = TRAIN_TRANSFORMER;
    ck_fails(train_spec_check(&s, &text, "", &err), AS_E_INVAL, err,
             "has 129 tokens, expected 130 or more");
    text.n_rows = 130;
    ck_ok(train_spec_check(&s, &text, "", &err), err);
}
END_TEST

START_TEST(trees_take_rows)
{
    struct train_spec s;
    struct dataset_info d = {
        .task = DATASET_CLASSIFICATION, .n_rows = 10, .n_features = 4, .n_outputs = 3};
    ck_ok(parse("{\"dataset\":\"d\",\"model\":{\"kind\":\"random_forest\"}}", &s), err);
    ck_ok(train_spec_check(&s, &d, "/trial/train", &err), err);
    d.input = DATASET_IMAGE;
    ck_ok(train_spec_check(&s, &d, "/trial/train", &err), err);
    d.n_rows = 1;
    ck_fails(train_spec_check(&s, &d, "/trial/train", &err), AS_E_INVAL, err, "expected 2 or more");
    s.loss = TRAIN_HUBER;
    ck_fails(train_spec_check(&s, &d, "/trial/train", &err), AS_E_INVAL, err,
             "/trial/train/loss: found huber, expected cross_entropy");
    s.loss = TRAIN_LOSS_AUTO;
    d = (struct dataset_info){.task = DATASET_LANGUAGE_MODELING,
                              .input = DATASET_TOKEN_TEXT,
                              .n_rows = 1000,
                              .n_features = 1,
                              .n_outputs = 9};
    ck_fails(train_spec_check(&s, &d, "/trial/train", &err), AS_E_INVAL, err,
             "/trial/train/model/kind: found random_forest, expected transformer");
}
END_TEST

/* ---- columns with a use of their own ---- */

static struct dataset_column columns[] = {
    {.name = "a"},
    {.name = "b", .n_missing = 3},
    {.name = "who", .categorical = true, .n_values = 4},
    {.name = "w"},
};

static const struct dataset_info people = {.format = DATASET_CSV,
                                           .task = DATASET_CLASSIFICATION,
                                           .n_rows = 100,
                                           .n_features = 4,
                                           .n_outputs = 2,
                                           .n_classes = 2,
                                           .columns = columns};

static as_status check(const char *fields, const struct dataset_info *data)
{
    AS_AUTO(train_spec_done) struct train_spec s = {0};
    char doc[300];
    (void)snprintf(doc, sizeof doc, "{\"dataset\":\"d\",\"epochs\":5,%s}", fields);
    ck_ok(parse(doc, &s), err);
    return train_spec_check(&s, data, "/trial/train", &err);
}

START_TEST(columns_are_checked)
{
    ck_ok(check("\"weights\":\"w\",\"validation\":{\"groups\":\"who\"}", &people), err);
    ck_ok(check("\"weights\":\"w\",\"validation\":{\"order\":\"w\"}", &people), err);
    ck_fails(check("\"weights\":\"weight\"", &people), AS_E_INVAL, err,
             "/trial/train/weights: found 'weight', expected one of 'a', 'b', 'who', 'w'");
    ck_ok(check("\"buckets\":\"who\"", &people), err);
    ck_fails(check("\"buckets\":\"where\"", &people), AS_E_INVAL, err,
             "/trial/train/buckets: found 'where', expected one of 'a', 'b', 'who', 'w'");
    ck_fails(check("\"weights\":\"who\"", &people), AS_E_INVAL, err,
             "has text or dates, expected numbers");
    ck_fails(check("\"validation\":{\"order\":\"b\"}", &people), AS_E_INVAL, err,
             "/trial/train/validation/order: column 'b' has 3 missing cells, expected none");
    ck_fails(check("\"validation\":{\"column\":\"class\"}", &people), AS_E_INVAL, err,
             "/trial/train/validation/column: found 'class'");
    struct dataset_info one = people;
    one.n_features = 1;
    ck_fails(check("\"validation\":{\"column\":\"a\"}", &one), AS_E_INVAL, err,
             "no column is left for the inputs");
    struct dataset_info arrays = {.format = DATASET_NPY,
                                  .task = DATASET_REGRESSION,
                                  .n_rows = 9,
                                  .n_features = 4,
                                  .n_outputs = 1};
    ck_fails(check("\"weights\":\"0\"", &arrays), AS_E_INVAL, err, "no columns with names (npy)");
    struct dataset_info few = people;
    few.n_rows = 4;
    ck_fails(check("\"validation\":{\"folds\":5}", &few), AS_E_INVAL, err,
             "has 4 rows, expected 5");
    ck_fails(check("\"metrics\":[\"val_pinball_10\"]", &people), AS_E_INVAL, err,
             "found val_pinball_10");
}
END_TEST

/* The server's plan is the trainer's: without the columns, and with the most rows that may come. */
START_TEST(columns_are_no_inputs)
{
    AS_AUTO(train_spec_done) struct train_spec s = {0};
    ck_ok(parse("{\"dataset\":\"d\",\"epochs\":5,\"weights\":\"w\",\"batch_size\":1000,"
                "\"validation\":{\"groups\":\"who\"}}",
                &s),
          err);
    const struct net_data all = net_data_of(&people, &s), seen = net_data_for(&people, &s);
    ck_assert_uint_eq(all.numeric, 4); /* a, b and its indicator, w */
    ck_assert_uint_eq(seen.numeric, 3);
    ck_assert_uint_eq(all.category_slots, 5);
    ck_assert(seen.category_slots == 0 && seen.n_categories == 0);
    AS_AUTO(net_plan_freep) struct net_plan *plan = NULL;
    ck_ok(net_plan_create(&s, &seen, "", &plan, &err), err);
    ck_assert_uint_eq(plan->max_rows, 99);
    s.piecewise = true;
    s.bins = 10;
    ck_assert_uint_eq(net_data_of(&people, &s).numeric, 31); /* the indicator stays one */
    ck_assert_uint_eq(net_data_for(&people, &s).numeric, 21);
    AS_AUTO(str_done) struct str of_bins = {0};
    net_signature(&s, &seen, &of_bins);
    ck_assert_ptr_nonnull(strstr(str_cstr(&of_bins), "; numbers in 10 bins"));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("check");
    TCase *t = tcase_create("check");
    tcase_add_test(t, against_classes);
    tcase_add_test(t, iterations_of_lbfgs_are_of_all_rows);
    tcase_add_loop_test(t, blocks_are_the_layers_in_their_order, 0, (int)AS_ARRAY_LEN(placed));
    tcase_add_test(t, one_layer_is_no_pipeline);
    tcase_add_test(t, against_numbers);
    tcase_add_test(t, against_sizes);
    tcase_add_test(t, against_tokens);
    tcase_add_test(t, trees_take_rows);
    tcase_add_test(t, columns_are_checked);
    tcase_add_test(t, columns_are_no_inputs);
    suite_add_tcase(s, t);
    return s;
}
