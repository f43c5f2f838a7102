#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/spec/train_spec.h"
#include "tests/check_main.h"

static struct as_err err;

static as_status parse(const char *text, struct train_spec *ret)
{
    JSON_AUTO j = NULL;
    ck_ok(json_parse(text, strlen(text), &j, &err), err);
    return train_spec_parse(j, "/trial/train", ret, &err);
}

START_TEST(defaults)
{
    struct train_spec s;
    ck_ok(parse("{\"dataset\":\"digits\",\"epochs\":5}", &s), err);
    ck_assert_str_eq(s.dataset, "digits");
    ck_assert_uint_eq(s.model.n_layers, 1);
    ck_assert_int_eq(s.model.layers[0], 64);
    ck_assert_int_eq(s.optimizer.kind, TRAIN_ADAMW);
    ck_assert_double_eq(s.optimizer.lr, 1e-3);
    ck_assert_int_eq(s.batch_size, 32);
    ck_assert_double_eq(s.validation_fraction, 0.25);
    ck_assert_int_eq(s.validation_seed, 0);
    ck_assert(s.standardize);
    ck_assert_int_eq(s.report_every, 1);
}
END_TEST

START_TEST(everything)
{
    struct train_spec s;
    ck_ok(parse("{\"dataset\":\"d\",\"epochs\":27,\"batch_size\":64,\"model\":{\"kind\":\"mlp\","
                "\"layers\":[64,32],\"activation\":\"gelu\",\"dropout\":0.1},\"loss\":\"mse\","
                "\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.5,\"momentum\":0.9,\"nesterov\":true,"
                "\"beta1\":0.8,\"beta2\":0.9,\"eps\":1e-6,\"weight_decay\":0.01},"
                "\"schedule\":{\"kind\":\"one_cycle\",\"pct_start\":0.2,\"min_lr\":1e-5,"
                "\"warmup_epochs\":2},\"validation\":{\"fraction\":0.5,\"seed\":3},"
                "\"standardize\":false,\"precision\":\"float32\",\"report_every\":3}",
                &s),
          err);
    ck_assert_uint_eq(s.model.n_layers, 2);
    ck_assert_int_eq(s.model.layers[1], 32);
    ck_assert_int_eq(s.model.activation, TRAIN_GELU);
    ck_assert_int_eq(s.loss, TRAIN_MSE);
    ck_assert(s.optimizer.nesterov);
    ck_assert_int_eq(s.schedule.kind, TRAIN_ONE_CYCLE);
    ck_assert_double_eq(s.schedule.min_lr, 1e-5);
    ck_assert_int_eq(s.validation_seed, 3);
    ck_assert(!s.standardize);
    ck_assert_int_eq(s.report_every, 3);
    ck_ok(parse("{\"dataset\":\"d\",\"epochs\":1,\"model\":{\"kind\":\"linear\"}}", &s), err);
    ck_assert_uint_eq(s.model.n_layers, 0);
    ck_ok(parse("{\"dataset\":\"d\",\"epochs\":1,\"optimizer\":{\"kind\":\"sgd\"}}", &s), err);
    ck_assert_double_eq(s.optimizer.lr, 0.1);
}
END_TEST

START_TEST(refused)
{
    static const struct {
        const char *rest, *pointer, *part;
    } cases[] = {
        {"\"epoch\":1", "/trial/train/epoch", "epochs"},
        {"\"batch_size\":0", "/trial/train/batch_size", "found 0"},
        {"\"batch_size\":1.5", "/trial/train/batch_size", "whole number"},
        {"\"precision\":\"bf16\"", "/trial/train/precision", "float32"},
        {"\"loss\":\"hinge\"", "/trial/train/loss", "cross_entropy"},
        {"\"report_every\":\"epochs\"", "/trial/train/report_every", "whole number"},
        {"\"standardize\":1", "/trial/train/standardize", "true or false"},
        {"\"model\":[]", "/trial/train/model", "an object"},
        {"\"model\":{\"kind\":\"cnn\"}", "/trial/train/model/kind", "mlp, linear"},
        {"\"model\":{\"layers\":64}", "/trial/train/model/layers", "a list"},
        {"\"model\":{\"layers\":[64,0]}", "/trial/train/model/layers/1", "found 0"},
        {"\"model\":{\"layers\":[\"64\"]}", "/trial/train/model/layers/0", "\"64\""},
        {"\"model\":{\"dropout\":1}", "/trial/train/model/dropout",
         "found 1, expected a number from 0 to 0.99999994"},
        /* below 1, but not in float32, where the trainer has it */
        {"\"model\":{\"dropout\":0.99999999}", "/trial/train/model/dropout", "found 0.99999999"},
        {"\"optimizer\":{\"beta1\":0.99999999}", "/trial/train/optimizer/beta1", "0.99999999"},
        {"\"optimizer\":{\"beta2\":0.99999999}", "/trial/train/optimizer/beta2", "0.99999999"},
        {"\"model\":{\"width\":3}", "/trial/train/model/width", "width"},
        {"\"optimizer\":{\"kind\":\"adam\"}", "/trial/train/optimizer/kind", "sgd, adamw"},
        {"\"optimizer\":{\"lr\":0}", "/trial/train/optimizer/lr", "found 0"},
        {"\"optimizer\":{\"lr\":\"NaN\"}", "/trial/train/optimizer/lr", "NaN"},
        {"\"optimizer\":{\"momentum\":-0.1}", "/trial/train/optimizer/momentum", "-0.1"},
        {"\"optimizer\":{\"nesterov\":\"yes\"}", "/trial/train/optimizer/nesterov", "yes"},
        {"\"optimizer\":{\"beta1\":1}", "/trial/train/optimizer/beta1", "1"},
        {"\"optimizer\":{\"beta2\":1}", "/trial/train/optimizer/beta2", "1"},
        {"\"optimizer\":{\"eps\":0}", "/trial/train/optimizer/eps", "0"},
        {"\"optimizer\":{\"weight_decay\":-1}", "/trial/train/optimizer/weight_decay", "-1"},
        {"\"optimizer\":{\"decay\":1}", "/trial/train/optimizer/decay", "decay"},
        {"\"schedule\":{\"kind\":\"step\"}", "/trial/train/schedule/kind", "one_cycle"},
        {"\"schedule\":{\"warmup_epochs\":6}", "/trial/train/schedule/warmup_epochs", "to 5"},
        {"\"schedule\":{\"pct_start\":1}", "/trial/train/schedule/pct_start", "found 1"},
        {"\"schedule\":{\"kind\":\"cosine\",\"min_lr\":1}", "/trial/train/schedule/min_lr",
         "at most the learning rate"},
        {"\"schedule\":{\"steps\":1}", "/trial/train/schedule/steps", "steps"},
        {"\"validation\":{\"fraction\":1}", "/trial/train/validation/fraction", "found 1"},
        {"\"validation\":{\"seed\":-1}", "/trial/train/validation/seed", "-1"},
        {"\"validation\":{\"rows\":1}", "/trial/train/validation/rows", "rows"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        struct train_spec s;
        char text[256];
        (void)snprintf(text, sizeof text, "{\"dataset\":\"d\",\"epochs\":5,%s}", cases[i].rest);
        ck_fails(parse(text, &s), AS_E_INVAL, err, cases[i].part);
        ck_assert_str_eq(err.pointer, cases[i].pointer);
    }
    struct train_spec s;
    ck_fails(parse("{\"epochs\":5}", &s), AS_E_INVAL, err, "/trial/train/dataset is missing");
    ck_fails(parse("{\"dataset\":\"d\"}", &s), AS_E_INVAL, err, "/trial/train/epochs is missing");
    ck_fails(parse("{\"dataset\":\"A b\",\"epochs\":5}", &s), AS_E_INVAL, err,
             "name of a data set");
    ck_fails(parse("[]", &s), AS_E_INVAL, err, "/trial/train");
    ck_fails(
        parse("{\"dataset\":\"d\",\"epochs\":1,\"model\":{\"layers\":[1,1,1,1,1,1,1,1,1,1,1,1,1,"
              "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}}",
              &s),
        AS_E_INVAL, err, "33 layers");
}
END_TEST

START_TEST(against_data)
{
    struct train_spec s;
    struct dataset_info d = {
        .task = DATASET_CLASSIFICATION, .n_rows = 10, .n_features = 4, .n_outputs = 3};
    ck_ok(parse("{\"dataset\":\"d\",\"epochs\":5,\"loss\":\"mse\"}", &s), err);
    ck_fails(train_spec_check(&s, &d, "/trial/train", &err), AS_E_INVAL, err,
             "/trial/train/loss: found mse, expected cross_entropy");
    d.task = DATASET_REGRESSION;
    ck_ok(train_spec_check(&s, &d, "/trial/train", &err), err);
    s.loss = TRAIN_LOSS_AUTO;
    ck_assert_int_eq(train_spec_loss(&s, DATASET_REGRESSION), TRAIN_MSE);
    ck_assert_int_eq(train_spec_loss(&s, DATASET_CLASSIFICATION), TRAIN_CROSS_ENTROPY);
    s.model.n_layers = 2;
    s.model.layers[0] = s.model.layers[1] = TRAIN_MAX_WIDTH;
    ck_fails(train_spec_check(&s, &d, "/trial/train", &err), AS_E_TOO_LARGE, err, "parameters");
    ck_assert_str_eq(err.pointer, "/trial/train/model/layers");
    s.model.n_layers = 0;
    d.n_rows = 1;
    ck_fails(train_spec_check(&s, &d, "", &err), AS_E_INVAL, err, "1 rows");
    ck_assert_uint_eq(train_spec_validation_rows(&s, 1797), 449);
    s.validation_fraction = 1e-6;
    ck_assert_uint_eq(train_spec_validation_rows(&s, 2), 1);
    s.validation_fraction = 0.999;
    ck_assert_uint_eq(train_spec_validation_rows(&s, 3), 2);
}
END_TEST

START_TEST(metrics)
{
    struct train_spec s;
    ck_ok(parse("{\"dataset\":\"d\",\"epochs\":5}", &s), err);
    ck_assert(train_spec_reports(&s, DATASET_CLASSIFICATION, "val_error"));
    ck_assert(!train_spec_reports(&s, DATASET_CLASSIFICATION, "val_rmse"));
    ck_assert(train_spec_reports(&s, DATASET_REGRESSION, "val_r2"));
    ck_assert(!train_spec_reports(&s, DATASET_REGRESSION, "val_accuracy"));
    ck_assert(train_spec_reports(&s, DATASET_TASK_AUTO, "val_r2"));
    ck_assert(train_spec_reports(&s, DATASET_TASK_AUTO, "val_error"));
    ck_assert(!train_spec_reports(&s, DATASET_TASK_AUTO, "latency_ms"));
    ck_assert(!train_spec_reports(&s, DATASET_TASK_AUTO, "step"));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("train_spec");
    TCase *t = tcase_create("train_spec");
    tcase_add_test(t, defaults);
    tcase_add_test(t, everything);
    tcase_add_test(t, refused);
    tcase_add_test(t, against_data);
    tcase_add_test(t, metrics);
    suite_add_tcase(s, t);
    return s;
}
