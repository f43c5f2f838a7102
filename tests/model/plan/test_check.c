#include <string.h>

#include "base/json.h"
#include "model/plan/check.h"
#include "tests/support/check_main.h"

static struct as_err err;

static as_status parse(const char *text, struct train_spec *ret)
{
    JSON_AUTO j = NULL;
    ck_ok(json_parse(text, strlen(text), &j, &err), err);
    return train_spec_parse(j, "/trial/train", ret, &err);
}

START_TEST(against_data)
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
    s.model.kind = TRAIN_CNN;
    ck_fails(train_spec_check(&s, &d, "", &err), AS_E_INVAL, err,
             "/model/kind: found cnn, which takes images");
    s.model.kind = TRAIN_MLP;
    s.target_transform = TARGET_LOG;
    ck_fails(train_spec_check(&s, &d, "/trial/train", &err), AS_E_INVAL, err,
             "/trial/train/target/transform: found log, expected none: data set 'd' is for "
             "classification");
    d.task = DATASET_REGRESSION;
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
    s.loss = TRAIN_LOSS_AUTO;
    s.model.n_layers = 2;
    s.model.layers[0] = s.model.layers[1] = TRAIN_MAX_WIDTH;
    ck_fails(train_spec_check(&s, &d, "/trial/train", &err), AS_E_TOO_LARGE, err, "parameters");
    ck_assert_str_eq(err.pointer, "/trial/train/model/layers");
    s.model.n_layers = 0;
    d.n_rows = 1;
    ck_fails(train_spec_check(&s, &d, "", &err), AS_E_INVAL, err, "1 rows");
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

Suite *test_suite(void)
{
    Suite *s = suite_create("check");
    TCase *t = tcase_create("check");
    tcase_add_test(t, against_data);
    suite_add_tcase(s, t);
    return s;
}
