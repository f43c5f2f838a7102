/* The document `trial.train`: defaults, every field at its bounds, presets, and errors that carry
 * the pointer of the field. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "model/document/train_spec.h"
#include "tests/support/check_main.h"

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
    ck_assert_int_eq(s.validation_split, TRAIN_SPLIT_RANDOM);
    ck_assert(s.standardize);
    ck_assert_int_eq(s.report_every, 1);
    ck_assert_int_eq(s.resample, 0);
    ck_assert_uint_eq(train_spec_bins(&s), 0);
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
                "\"warmup_epochs\":2},\"validation\":{\"fraction\":0.5,\"seed\":3,"
                "\"split\":\"stratified\"},"
                "\"standardize\":false,\"precision\":\"float32\",\"report_every\":3,"
                "\"resample\":7}",
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
    ck_assert_int_eq(s.validation_split, TRAIN_SPLIT_STRATIFIED);
    ck_assert(!s.standardize);
    ck_assert_int_eq(s.report_every, 3);
    ck_assert_int_eq(s.resample, 7);
    ck_ok(parse("{\"dataset\":\"d\",\"epochs\":1,\"numbers\":{\"bins\":9}}", &s), err);
    ck_assert_uint_eq(train_spec_bins(&s), 0);
    ck_ok(
        parse("{\"dataset\":\"d\",\"epochs\":1,\"numbers\":{\"encode\":\"piecewise_linear\"}}", &s),
        err);
    ck_assert_uint_eq(train_spec_bins(&s), 16);
    s.model.kind = TRAIN_EXTRA_TREES; /* trees cut by themselves */
    ck_assert_uint_eq(train_spec_bins(&s), 0);
    ck_ok(parse("{\"dataset\":\"d\",\"epochs\":1,\"model\":{\"kind\":\"linear\"}}", &s), err);
    ck_assert_uint_eq(s.model.n_layers, 0);
    ck_ok(parse("{\"dataset\":\"d\",\"epochs\":1,\"optimizer\":{\"kind\":\"sgd\"}}", &s), err);
    ck_assert_double_eq(s.optimizer.lr, 0.1);
}
END_TEST

START_TEST(trees)
{
    struct train_spec s;
    ck_ok(parse("{\"dataset\":\"d\",\"model\":{\"kind\":\"boosted_trees\"}}", &s), err);
    ck_assert_int_eq(s.model.kind, TRAIN_BOOSTED_TREES);
    ck_assert(train_model_is_trees(&s.model));
    ck_assert_int_eq(s.epochs, 100); /* its rounds */
    ck_assert_int_eq(s.report_every, 5);
    ck_assert_int_eq(s.model.trees.max_depth, 6);
    ck_assert_double_eq(s.model.trees.learning_rate, 0.3);
    ck_assert_double_eq(s.model.trees.reg_lambda, 1);
    ck_assert_double_eq(s.model.trees.colsample_bynode, 1);
    ck_ok(
        parse("{\"dataset\":\"d\",\"epochs\":3,\"model\":{\"kind\":\"random_forest\","
              "\"n_estimators\":250,\"layers\":[4],\"max_leaves\":8,\"grow_policy\":\"lossguide\","
              "\"tree_method\":\"hist\"},\"schedule\":{\"warmup_epochs\":2.5}}",
              &s),
        err);
    ck_assert_int_eq(s.epochs, 250);
    ck_assert_int_eq(s.report_every, 13); /* about twenty reports */
    ck_assert(s.model.trees.by_loss);
    ck_assert_int_eq(s.model.trees.max_depth, 12);
    ck_assert_double_eq(s.model.trees.subsample, 0.8);
    ck_assert_double_eq(s.model.trees.colsample_bynode, 0); /* the trainer chooses */
    ck_assert_str_eq(train_model_name(&s.model), "random_forest");
    ck_ok(
        parse("{\"dataset\":\"d\",\"epochs\":2,\"model\":{\"kind\":\"logistic\",\"n_estimators\":9,"
              "\"learning_rate\":0.1}}",
              &s),
        err);
    ck_assert_int_eq(s.epochs, 2);
    ck_assert_str_eq(train_model_name(&s.model), "logistic");
}
END_TEST

/* Fields of trees are checked for every kind, because a sweep may search over kinds. */
START_TEST(trees_refused)
{
    static const struct {
        const char *model, *message;
    } cases[] = {
        {"\"kind\":\"xgboost\"", "/trial/train/model/kind: found \"xgboost\""},
        {"\"kind\":\"boosted_trees\",\"n_estimators\":0", "/model/n_estimators: found 0"},
        {"\"n_estimators\":1.5", "/model/n_estimators: found 1.5"},
        {"\"kind\":\"mlp\",\"max_depth\":-1", "/model/max_depth: found -1"},
        {"\"learning_rate\":0", "/model/learning_rate: found 0"},
        {"\"subsample\":1.01", "/model/subsample: found 1.01"},
        {"\"colsample_bynode\":0", "/model/colsample_bynode: found 0"},
        {"\"reg_lambda\":-1", "/model/reg_lambda: found -1"},
        {"\"max_bin\":1", "/model/max_bin: found 1"},
        {"\"tree_method\":\"gpu_hist\"", "/model/tree_method: found \"gpu_hist\""},
        {"\"grow_policy\":\"best\"", "/model/grow_policy: found \"best\""},
        {"\"kind\":\"boosted_trees\",\"eta\":0.1", "/model/eta"},
    };
    struct train_spec s;
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        AS_AUTO(str_done) struct str b = {0};
        str_printf(&b, "{\"dataset\":\"d\",\"epochs\":1,\"model\":{%s}}", cases[i].model);
        ck_fails(parse(str_cstr(&b), &s), AS_E_INVAL, err, cases[i].message);
    }
    ck_fails(parse("{\"dataset\":\"d\",\"model\":{\"n_estimators\":9}}", &s), AS_E_INVAL, err,
             "/trial/train/epochs is missing");
}
END_TEST

START_TEST(neighbours)
{
    struct train_spec s;
    ck_ok(parse("{\"dataset\":\"d\",\"model\":{\"kind\":\"knn\",\"n_estimators\":300},"
                "\"numbers\":{\"encode\":\"piecewise_linear\",\"bins\":4}}",
                &s),
          err);
    ck_assert_int_eq(s.model.kind, TRAIN_KNN);
    ck_assert(!train_model_is_trees(&s.model) && !train_model_is_network(&s.model));
    ck_assert_str_eq(train_model_name(&s.model), "knn");
    ck_assert_int_eq(s.model.neighbours, 5);
    ck_assert(!s.model.by_distance);
    ck_assert_int_eq(s.epochs, 1); /* whatever it is of other kinds */
    ck_assert_uint_eq(train_spec_bins(&s), 4);
    ck_ok(parse("{\"dataset\":\"d\",\"model\":{\"kind\":\"knn\",\"neighbours\":1000,"
                "\"weights\":\"distance\"}}",
                &s),
          err);
    ck_assert_int_eq(s.model.neighbours, 1000);
    ck_assert(s.model.by_distance);
    ck_fails(parse("{\"dataset\":\"d\",\"model\":{\"kind\":\"knn\",\"neighbours\":1001}}", &s),
             AS_E_INVAL, err, "/trial/train/model/neighbours: found 1001");
    ck_fails(parse("{\"dataset\":\"d\",\"model\":{\"kind\":\"knn\",\"weights\":\"rank\"}}", &s),
             AS_E_INVAL, err, "/trial/train/model/weights: found");
    ck_fails(parse("{\"dataset\":\"d\",\"model\":{\"kind\":\"knn\"},\"privacy\":{\"clip\":1,"
                   "\"noise\":1}}",
                   &s),
             AS_E_INVAL, err, "knn");
}
END_TEST

START_TEST(naive_bayes)
{
    struct train_spec s;
    ck_ok(parse("{\"dataset\":\"d\",\"model\":{\"kind\":\"naive_bayes\",\"n_estimators\":300},"
                "\"numbers\":{\"encode\":\"piecewise_linear\",\"bins\":4}}",
                &s),
          err);
    ck_assert_int_eq(s.model.kind, TRAIN_NAIVE_BAYES);
    ck_assert(!train_model_is_trees(&s.model) && !train_model_is_network(&s.model));
    ck_assert(train_model_sees_cells(&s.model));
    ck_assert_str_eq(train_model_name(&s.model), "naive_bayes");
    ck_assert(s.model.smoothing == 1 && s.model.var_smoothing == 1e-3 && !s.model.multinomial);
    ck_assert_int_eq(s.epochs, 1);
    ck_assert_uint_eq(train_spec_bins(&s), 0); /* numbers are numbers */
    ck_ok(parse("{\"dataset\":\"d\",\"model\":{\"kind\":\"naive_bayes\",\"smoothing\":0.1,"
                "\"var_smoothing\":1,\"words\":\"multinomial\"}}",
                &s),
          err);
    ck_assert(s.model.smoothing == 0.1 && s.model.var_smoothing == 1 && s.model.multinomial);
    ck_fails(parse("{\"dataset\":\"d\",\"model\":{\"kind\":\"naive_bayes\",\"smoothing\":0}}", &s),
             AS_E_INVAL, err, "/trial/train/model/smoothing: found 0");
    ck_fails(parse("{\"dataset\":\"d\",\"model\":{\"kind\":\"naive_bayes\",\"words\":\"x\"}}", &s),
             AS_E_INVAL, err, "/trial/train/model/words: found");
    ck_fails(parse("{\"dataset\":\"d\",\"model\":{\"kind\":\"naive_bayes\"},\"privacy\":{"
                   "\"clip\":1,\"noise\":1}}",
                   &s),
             AS_E_INVAL, err, "naive_bayes");
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
        {"\"privacy\":{\"clip\":1}", "/trial/train/privacy/noise", "missing"},
        {"\"privacy\":{\"clip\":0,\"noise\":1}", "/trial/train/privacy/clip", "found 0"},
        {"\"privacy\":{\"clip\":1,\"noise\":0}", "/trial/train/privacy/noise", "0.01"},
        {"\"privacy\":{\"clip\":1,\"noise\":1,\"delta\":1}", "/trial/train/privacy/delta", "0.1"},
        {"\"privacy\":{\"clip\":1,\"noise\":1,\"epsilon\":3}", "/trial/train/privacy/epsilon",
         "delta"},
        {"\"resample\":-1", "/trial/train/resample", "from 0 to 1000000"},
        {"\"schedule\":{\"cycles\":0}", "/trial/train/schedule/cycles", "from 1 to"},
        {"\"schedule\":{\"cycles\":65}", "/trial/train/schedule/cycles", "found 65"},
        {"\"schedule\":{\"kind\":\"cosine\",\"cycles\":3,\"snapshots\":4}",
         "/trial/train/schedule/snapshots", "from 1 to 3"},
        {"\"patience\":2,\"schedule\":{\"kind\":\"cosine\",\"snapshots\":1}",
         "/trial/train/schedule/snapshots", "with patience"},
        {"\"report_every\":\"epochs\"", "/trial/train/report_every", "whole number"},
        {"\"target\":\"log\"", "/trial/train/target", "an object"},
        {"\"target\":{\"transform\":\"sqrt\"}", "/trial/train/target/transform", "log1p"},
        {"\"target\":{\"transfrom\":\"log\"}", "/trial/train/target/transfrom", "transform"},
        {"\"numbers\":{\"encode\":\"spline\"}", "/trial/train/numbers/encode", "piecewise_linear"},
        {"\"numbers\":{\"bins\":1}", "/trial/train/numbers/bins", "from 2 to 256"},
        {"\"numbers\":{\"bins\":257}", "/trial/train/numbers/bins", "from 2 to 256"},
        {"\"numbers\":{\"knots\":9}", "/trial/train/numbers/knots", "bins"},
        {"\"standardize\":1", "/trial/train/standardize", "true or false"},
        {"\"model\":[]", "/trial/train/model", "an object"},
        {"\"model\":{\"kind\":\"rnn\"}", "/trial/train/model/kind", "mlp, linear, cnn"},
        {"\"model\":{\"layers\":64}", "/trial/train/model/layers", "a list"},
        {"\"model\":{\"layers\":[64,0]}", "/trial/train/model/layers/1", "found 0"},
        {"\"model\":{\"layers\":[\"64\"]}", "/trial/train/model/layers/0", "\"64\""},
        {"\"model\":{\"dropout\":1}", "/trial/train/model/dropout",
         "found 1, expected a number from 0 to 0.99999994"},
        /* below 1, but not in float32, where the trainer has it */
        {"\"model\":{\"dropout\":0.99999999}", "/trial/train/model/dropout", "found 0.99999999"},
        {"\"optimizer\":{\"beta1\":0.99999999}", "/trial/train/optimizer/beta1", "0.99999999"},
        {"\"optimizer\":{\"beta2\":0.99999999}", "/trial/train/optimizer/beta2", "0.99999999"},
        {"\"model\":{\"widths\":3}", "/trial/train/model/widths", "width"},
        {"\"model\":{\"width\":0}", "/trial/train/model/width", "found 0"},
        {"\"model\":{\"norm\":\"layer\"}", "/trial/train/model/norm", "none, batch"},
        {"\"model\":{\"embedding\":-1}", "/trial/train/model/embedding", "found -1"},
        {"\"model\":{\"kind\":\"transformer\",\"width\":10}", "/trial/train/model/heads",
         "found 4, expected a divisor of the width 10"},
        {"\"model\":{\"context\":8193}", "/trial/train/model/context", "8192"},
        {"\"model\":{\"depth\":0}", "/trial/train/model/depth", "found 0"},
        {"\"model\":{\"preset\":\"vgg16\"}", "/trial/train/model/preset", "lenet, vgg8"},
        {"\"optimizer\":{\"kind\":\"adadelta\"}", "/trial/train/optimizer/kind",
         "sgd, adam, adamw"},
        {"\"optimizer\":{\"alpha\":1}", "/trial/train/optimizer/alpha", "found 1"},
        {"\"optimizer\":{\"clip_norm\":-1}", "/trial/train/optimizer/clip_norm", "found -1"},
        {"\"optimizer\":{\"ema\":1}", "/trial/train/optimizer/ema", "found 1"},
        {"\"label_smoothing\":1.1", "/trial/train/label_smoothing", "1.1"},
        {"\"huber_delta\":0", "/trial/train/huber_delta", "found 0"},
        {"\"class_weights\":\"equal\"", "/trial/train/class_weights", "balanced, or a list"},
        {"\"class_weights\":[1]", "/trial/train/class_weights", "a list"},
        {"\"class_weights\":[1,-1]", "/trial/train/class_weights/1", "found -1"},
        {"\"class_weights\":[1,\"2\"]", "/trial/train/class_weights/1", "\"2\""},
        {"\"class_weights\":[0,0]", "/trial/train/class_weights", "above 0"},
        {"\"micro_batch\":5", "/trial/train/micro_batch", "a divisor of the batch size 32"},
        {"\"augment\":{\"pad\":65}", "/trial/train/augment/pad", "found 65"},
        {"\"augment\":{\"flip\":2}", "/trial/train/augment/flip", "found 2"},
        {"\"augment\":{\"cutout\":-1}", "/trial/train/augment/cutout", "found -1"},
        {"\"augment\":{\"crop\":1}", "/trial/train/augment/crop", "crop"},
        {"\"metrics\":[\"val_auc\",\"auc\"]", "/trial/train/metrics/1",
         "found \"auc\", expected one of train_loss"},
        {"\"metrics\":\"val_auc\"", "/trial/train/metrics", "a list"},
        {"\"schedule\":{\"kind\":\"step\",\"gamma\":0}", "/trial/train/schedule/gamma", "found 0"},
        {"\"schedule\":{\"step_epochs\":0}", "/trial/train/schedule/step_epochs", "found 0"},
        {"\"optimizer\":{\"lr\":0}", "/trial/train/optimizer/lr", "found 0"},
        {"\"optimizer\":{\"lr\":\"NaN\"}", "/trial/train/optimizer/lr", "NaN"},
        {"\"optimizer\":{\"momentum\":-0.1}", "/trial/train/optimizer/momentum", "-0.1"},
        {"\"optimizer\":{\"nesterov\":\"yes\"}", "/trial/train/optimizer/nesterov", "yes"},
        {"\"optimizer\":{\"beta1\":1}", "/trial/train/optimizer/beta1", "1"},
        {"\"optimizer\":{\"beta2\":1}", "/trial/train/optimizer/beta2", "1"},
        {"\"optimizer\":{\"eps\":0}", "/trial/train/optimizer/eps", "0"},
        {"\"optimizer\":{\"weight_decay\":-1}", "/trial/train/optimizer/weight_decay", "-1"},
        {"\"optimizer\":{\"decay\":1}", "/trial/train/optimizer/decay", "decay"},
        {"\"schedule\":{\"kind\":\"linear\"}", "/trial/train/schedule/kind", "one_cycle, step"},
        {"\"schedule\":{\"warmup_epochs\":6}", "/trial/train/schedule/warmup_epochs", "to 5"},
        {"\"schedule\":{\"pct_start\":1}", "/trial/train/schedule/pct_start", "found 1"},
        {"\"schedule\":{\"kind\":\"cosine\",\"min_lr\":1}", "/trial/train/schedule/min_lr",
         "at most the learning rate"},
        {"\"schedule\":{\"steps\":1}", "/trial/train/schedule/steps", "steps"},
        {"\"validation\":{\"fraction\":1}", "/trial/train/validation/fraction", "found 1"},
        {"\"validation\":{\"seed\":-1}", "/trial/train/validation/seed", "-1"},
        {"\"validation\":{\"split\":\"even\"}", "/trial/train/validation/split", "stratified"},
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

static void parse_model(const char *model, struct train_spec *ret)
{
    char text[512];
    (void)snprintf(text, sizeof text, "{\"dataset\":\"d\",\"epochs\":5,\"model\":{%s}}", model);
    ck_ok(parse(text, ret), err);
}

START_TEST(newer_fields)
{
    struct train_spec s;
    ck_ok(parse("{\"dataset\":\"d\",\"epochs\":9,\"batch_size\":64,\"micro_batch\":16,"
                "\"loss\":\"huber\",\"huber_delta\":2,\"label_smoothing\":0.1,"
                "\"class_weights\":[1,2.5],\"precision\":\"bfloat16\",\"optimizer\":{\"kind\":"
                "\"rmsprop\",\"alpha\":0.9,\"clip_norm\":1,\"ema\":0.99},\"schedule\":{\"kind\":"
                "\"step\",\"step_epochs\":3,\"gamma\":0.5,\"min_lr\":1},\"augment\":{\"pad\":4,"
                "\"flip\":0.5,\"cutout\":8},\"metrics\":[\"val_auc\",\"val_auc\",\"lr\"]}",
                &s),
          err);
    ck_assert_int_eq(s.micro_batch, 16);
    ck_assert_int_eq(s.loss, TRAIN_HUBER);
    ck_assert_double_eq(s.huber_delta, 2);
    ck_assert_double_eq(s.label_smoothing, 0.1);
    ck_assert_uint_eq(s.n_class_weights, 2);
    ck_assert_double_eq(s.class_weights[1], 2.5);
    ck_assert_int_eq(s.precision, TRAIN_BFLOAT16);
    ck_assert_int_eq(s.optimizer.kind, TRAIN_RMSPROP);
    ck_assert_double_eq(s.optimizer.beta2, 0.9);
    ck_assert_double_eq(s.optimizer.clip_norm, 1);
    ck_assert_double_eq(s.optimizer.ema, 0.99);
    ck_assert_int_eq(s.schedule.kind, TRAIN_STEP);
    ck_assert_double_eq(s.schedule.step_epochs, 3);
    ck_assert_double_eq(s.schedule.gamma, 0.5);
    ck_assert_int_eq(s.augment.pad, 4);
    ck_assert_double_eq(s.augment.flip, 0.5);
    ck_assert_int_eq(s.augment.cutout, 8);
    ck_assert_uint_eq(s.n_metrics, 1);
    ck_assert_str_eq(s.metrics[0], "val_auc");
    train_spec_done(&s);
    ck_ok(parse("{\"dataset\":\"d\",\"epochs\":1,\"class_weights\":\"balanced\"}", &s), err);
    ck_assert(s.balanced);
    ck_assert_int_eq(s.micro_batch, 32);
    static const struct {
        const char *kind;
        double lr, beta2, eps;
    } kinds[] = {{"sgd", 0.1, 0.999, 1e-8},      {"adam", 1e-3, 0.999, 1e-8},
                 {"rmsprop", 1e-3, 0.99, 1e-8},  {"lamb", 1e-3, 0.999, 1e-6},
                 {"lion", 1e-4, 0.99, 1e-8},     {"adamw", 1e-3, 0.999, 1e-8},
                 {"adagrad", 0.01, 0.999, 1e-10}};
    for (size_t i = 0; i < AS_ARRAY_LEN(kinds); i++) {
        char text[128];
        (void)snprintf(text, sizeof text,
                       "{\"dataset\":\"d\",\"epochs\":1,\"optimizer\":{\"kind\":\"%s\"}}",
                       kinds[i].kind);
        ck_ok(parse(text, &s), err);
        ck_assert_double_eq(s.optimizer.lr, kinds[i].lr);
        ck_assert_double_eq(s.optimizer.beta2, kinds[i].beta2);
        ck_assert_double_eq(s.optimizer.eps, kinds[i].eps);
    }
}
END_TEST

START_TEST(models)
{
    struct train_spec s;
    parse_model("\"kind\":\"logistic\"", &s);
    ck_assert(s.model.kind == TRAIN_LINEAR && s.model.logistic && s.model.n_layers == 0);
    parse_model("\"kind\":\"transformer\",\"activation\":\"relu\"", &s);
    ck_assert(s.model.depth == 4 && s.model.width == 128 && s.model.heads == 4 &&
              s.model.context == 64 && s.model.activation == TRAIN_GELU);
    parse_model("\"layers\":[8],\"norm\":\"batch\",\"embedding\":3", &s);
    ck_assert(s.model.batch_norm && s.model.embedding == 3);
    parse_model("\"kind\":\"cnn\",\"layers\":[{\"conv\":8,\"kernel\":5,\"padding\":\"valid\","
                "\"norm\":\"batch\"},{\"pool\":\"max\"},{\"residual\":[{\"conv\":0,\"depthwise\":"
                "true},{\"conv\":16,\"kernel\":1,\"activation\":\"none\"}]},{\"pool\":\"avg\","
                "\"size\":3,\"stride\":1,\"padding\":1},{\"pool\":\"global\"},{\"dropout\":true},"
                "{\"dense\":10}]",
                &s);
    const struct train_block *b = s.model.blocks;
    ck_assert_uint_eq(s.model.n_blocks, 9);
    ck_assert(b[0].kind == BLOCK_CONV && b[0].out == 8 && b[0].kernel == 5 && b[0].stride == 1 &&
              b[0].padding == 0 && b[0].batch_norm && !b[0].linear);
    ck_assert(b[1].kind == BLOCK_POOL_MAX && b[1].kernel == 2 && b[1].stride == 2 &&
              b[1].padding == 0);
    ck_assert(b[2].kind == BLOCK_RESIDUAL && b[2].inner == 2);
    ck_assert(b[3].depthwise && b[3].out == 0 && b[3].padding == -1);
    ck_assert(b[4].kernel == 1 && b[4].linear);
    ck_assert(b[5].kind == BLOCK_POOL_AVG && b[5].kernel == 3 && b[5].stride == 1 &&
              b[5].padding == 1);
    ck_assert(b[6].kind == BLOCK_POOL_GLOBAL && b[7].kind == BLOCK_DROPOUT);
    ck_assert(b[8].kind == BLOCK_DENSE && b[8].out == 10);
}
END_TEST

START_TEST(presets)
{
    struct train_spec s;
    parse_model("\"kind\":\"cnn\"", &s);
    ck_assert_str_eq(s.model.preset, "lenet");
    const struct train_block *b = s.model.blocks;
    ck_assert_uint_eq(s.model.n_blocks, 8);
    ck_assert(b[0].out == 6 && b[2].out == 16 && b[4].out == 120 && b[6].out == 84);
    parse_model("\"kind\":\"cnn\",\"preset\":\"vgg8\",\"width\":8", &s);
    ck_assert(b[0].out == 8 && b[3].out == 16 && b[7].out == 32);
    parse_model("\"kind\":\"cnn\",\"preset\":\"resnet8\"", &s);
    ck_assert(b[0].out == 16 && b[1].inner == 2 && b[4].inner == 2 && b[5].stride == 2);
    parse_model("\"kind\":\"cnn\",\"preset\":\"resnet18\"", &s);
    ck_assert_uint_eq(s.model.n_blocks, 1 + 8 * 3 + 2);
    ck_assert(b[0].out == 64 && b[24].out == 512 && b[24].linear &&
              b[25].kind == BLOCK_POOL_GLOBAL);
}
END_TEST

START_TEST(layers_refused)
{
    static const struct {
        const char *layers, *pointer, *part;
    } cases[] = {
        {"{\"conv\":0}", "/0/conv", "found 0"},
        {"{\"conv\":8,\"pool\":\"max\"}", "/0", "expected one of conv, pool"},
        {"{\"kernel\":3}", "/0", "expected one of conv"},
        {"8", "/0", "an object"},
        {"{\"conv\":8,\"kernel\":4}", "/0/padding", "an odd kernel"},
        {"{\"conv\":8,\"padding\":3}", "/0/padding", "same, valid, or a whole number from 0 to 2"},
        {"{\"conv\":8,\"activation\":\"tanh\"}", "/0/activation", "relu, none"},
        {"{\"conv\":8,\"size\":2}", "/0/size", "size"},
        {"{\"pool\":\"min\"}", "/0/pool", "max, avg, global"},
        {"{\"pool\":\"global\",\"size\":2}", "/0/size", "size"},
        {"{\"pool\":\"max\",\"padding\":\"same\"}", "/0/padding", "expected valid"},
        {"{\"dropout\":0.5}", "/0/dropout", "true or false"},
        {"{\"dropout\":false}", "/0/dropout", "model.dropout"},
        {"{\"conv\":8},{\"residual\":[]}", "/1/residual", "no layers"},
        {"{\"residual\":[{\"dense\":3}]}", "/0/residual/0", "in a residual branch"},
        {"{\"residual\":[{\"pool\":\"global\"}]}", "/0/residual/0", "pool (max, avg)"},
        {"{\"residual\":[{\"residual\":[]}]}", "/0/residual/0", "in a residual branch"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        struct train_spec s;
        char text[256], at[128];
        (void)snprintf(
            text, sizeof text,
            "{\"dataset\":\"d\",\"epochs\":5,\"model\":{\"kind\":\"cnn\",\"layers\":[%s]}}",
            cases[i].layers);
        (void)snprintf(at, sizeof at, "/trial/train/model/layers%s", cases[i].pointer);
        ck_fails(parse(text, &s), AS_E_INVAL, err, cases[i].part);
        ck_assert_str_eq(err.pointer, at);
    }
    struct train_spec s;
    ck_fails(parse("{\"dataset\":\"d\",\"epochs\":5,\"model\":{\"kind\":\"cnn\",\"layers\":[],"
                   "\"preset\":\"lenet\"}}",
                   &s),
             AS_E_INVAL, err, "one of the two");
    AS_AUTO(str_done) struct str many = {0};
    str_puts(&many, "{\"dataset\":\"d\",\"epochs\":5,\"model\":{\"kind\":\"cnn\",\"layers\":[");
    for (int i = 0; i <= TRAIN_MAX_BLOCKS; i++)
        str_printf(&many, "%s{\"conv\":1}", i ? "," : "");
    str_puts(&many, "]}}");
    ck_fails(parse(str_cstr(&many), &s), AS_E_INVAL, err, "more than 256 layers");
}
END_TEST

START_TEST(what_follows_from_a_task)
{
    struct train_spec s;
    ck_ok(parse("{\"dataset\":\"d\",\"epochs\":5}", &s), err);
    ck_assert_int_eq(train_spec_loss(&s, DATASET_REGRESSION), TRAIN_MSE);
    ck_assert_int_eq(train_spec_loss(&s, DATASET_CLASSIFICATION), TRAIN_CROSS_ENTROPY);
    s.loss = TRAIN_HUBER;
    ck_assert_int_eq(train_spec_loss(&s, DATASET_REGRESSION), TRAIN_HUBER);
    ck_assert_str_eq(train_loss_name(TRAIN_HUBER), "huber");
    ck_assert_uint_eq(train_spec_validation_rows(&s, 1797), 449);
    s.validation_fraction = 1e-6;
    ck_assert_uint_eq(train_spec_validation_rows(&s, 2), 1);
    s.validation_fraction = 0.999;
    ck_assert_uint_eq(train_spec_validation_rows(&s, 3), 2);
}
END_TEST

static void refuses_validation(const char *validation, const char *message)
{
    struct train_spec s;
    char doc[400];
    (void)snprintf(doc, sizeof doc, "{\"dataset\":\"d\",\"epochs\":5,%s}", validation);
    ck_fails(parse(doc, &s), AS_E_INVAL, err, message);
}

START_TEST(validation_by_columns)
{
    struct train_spec s;
    ck_ok(parse("{\"dataset\":\"d\",\"epochs\":5,\"weights\":\"w\",\"patience\":3,"
                "\"validation\":{\"order\":\"day\",\"last\":0.2}}",
                &s),
          err);
    ck_assert(s.holdout == TRAIN_HOLD_ORDER && s.validation_fraction == 0.2 && s.patience == 3);
    ck_assert_str_eq(s.holdout_column, "day");
    ck_assert_str_eq(s.weights, "w");
    train_spec_done(&s);
    ck_ok(parse("{\"dataset\":\"d\",\"epochs\":5,"
                "\"validation\":{\"groups\":\"who\",\"fraction\":0.3,\"seed\":4}}",
                &s),
          err);
    ck_assert(s.holdout == TRAIN_HOLD_GROUPS && s.validation_seed == 4 && !s.weights);
    train_spec_done(&s);
    ck_ok(parse("{\"dataset\":\"d\",\"epochs\":5,\"validation\":{\"column\":\"part\"}}", &s), err);
    ck_assert(s.holdout == TRAIN_HOLD_COLUMN && s.patience == 0);
    train_spec_done(&s);
    ck_ok(parse("{\"dataset\":\"d\",\"epochs\":5,\"validation\":{\"folds\":5,\"seed\":2,"
                "\"split\":\"stratified\"}}",
                &s),
          err);
    ck_assert(s.holdout == TRAIN_HOLD_FOLDS && s.folds == 5 && !s.holdout_column);
    ck_assert_uint_eq(train_spec_validation_rows(&s, 100), 20);
    train_spec_done(&s);
    ck_ok(parse("{\"dataset\":\"d\",\"epochs\":5,\"validation\":{\"folds\":5,\"refit\":true}}", &s),
          err);
    ck_assert(s.folds == 5 && s.refit);
    train_spec_done(&s);
    refuses_validation("\"validation\":{\"refit\":true}",
                       "/trial/train/validation/refit: found without folds, expected folds");
    refuses_validation("\"validation\":{\"groups\":\"g\",\"refit\":true}",
                       "/trial/train/validation/refit: found beside groups");
    refuses_validation("\"validation\":{\"folds\":3,\"refit\":true},\"boost\":{\"stage\":0}",
                       "/trial/train/boost: found beside validation.refit");
    refuses_validation("\"validation\":{\"folds\":1}", "/trial/train/validation/folds");
    refuses_validation("\"validation\":{\"folds\":21}", "/trial/train/validation/folds");
    refuses_validation("\"validation\":{\"folds\":3,\"fraction\":0.1}",
                       "/trial/train/validation/fraction: found beside folds");
    refuses_validation("\"validation\":{\"folds\":3,\"groups\":\"g\"}",
                       "/trial/train/validation/folds: found beside groups");
    refuses_validation("\"validation\":{\"column\":\"a\",\"order\":\"b\"}",
                       "/trial/train/validation/order: found beside column, expected one of them");
    refuses_validation("\"validation\":{\"column\":\"a\",\"fraction\":0.2}",
                       "/trial/train/validation/fraction: found beside column");
    refuses_validation("\"validation\":{\"order\":\"a\",\"split\":\"random\"}",
                       "/trial/train/validation/split: found beside order");
    refuses_validation("\"validation\":{\"last\":0.2}",
                       "/trial/train/validation/last: found without order");
    refuses_validation("\"validation\":{\"column\":7}", "/trial/train/validation/column");
    refuses_validation("\"validation\":{\"column\":\"\"}", "/trial/train/validation/column");
    refuses_validation("\"patience\":0", "/trial/train/patience");
    refuses_validation("\"weights\":1", "/trial/train/weights");
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
    /* on request */
    ck_assert(!train_spec_wants(&s, "val_auc"));
    ck_assert(!train_spec_reports(&s, DATASET_CLASSIFICATION, "val_auc"));
    ck_assert(train_spec_can_report(DATASET_CLASSIFICATION, "val_auc"));
    ck_assert(!train_spec_can_report(DATASET_REGRESSION, "val_auc"));
    ck_assert(train_spec_request(&s, "val_auc") && train_spec_request(&s, "val_error"));
    ck_assert(train_spec_wants(&s, "val_auc") && !train_spec_wants(&s, "val_f1"));
    for (const char *const *m = train_spec_metrics(DATASET_TASK_AUTO); *m; m++)
        ck_assert(train_spec_request(&s, *m) && s.n_metrics <= TRAIN_MAX_EXTRA_METRICS);
    ck_assert(train_spec_request(&s, "val_pinball_1") && train_spec_request(&s, "val_pinball_99"));
    ck_assert(!train_spec_request(&s, "val_pinball_0") &&
              !train_spec_request(&s, "val_pinball_100"));
    ck_assert(!train_spec_can_report(DATASET_CLASSIFICATION, "val_pinball_50"));
    ck_assert(train_spec_reports(&s, DATASET_REGRESSION, "val_pinball_99"));
    ck_assert(!train_spec_reports(&s, DATASET_REGRESSION, "val_pinball_98"));
    ck_assert(train_spec_is_maximized("val_auc") && !train_spec_is_maximized("val_brier"));
    ck_assert(train_spec_reports(&s, DATASET_CLASSIFICATION, "val_auc"));
    ck_assert(!train_spec_reports(&s, DATASET_REGRESSION, "val_auc"));
    ck_assert(!train_spec_request(&s, "latency_ms"));
    ck_assert(train_spec_reports(&s, DATASET_LANGUAGE_MODELING, "val_accuracy"));
    for (dataset_task t = DATASET_TASK_AUTO; t <= DATASET_LANGUAGE_MODELING; t++)
        for (const char *const *m = train_spec_metrics(t); *m; m++)
            ck_assert_msg(train_spec_can_report(t, *m), "%s", *m);
}
END_TEST

/* With what the epsilon that is reported would be wrong. */
START_TEST(privacy)
{
#define PRIVATE "\"privacy\":{\"clip\":1,\"noise\":1.1}"
    static const char *const refusing[] = {
        "\"model\":{\"norm\":\"batch\"}",
        "\"model\":{\"kind\":\"cnn\",\"preset\":\"resnet8\"}",
        "\"model\":{\"kind\":\"boosted_trees\"}",
        "\"weights\":\"w\"",
        "\"class_weights\":\"balanced\"",
        "\"resample\":1",
        "\"boost\":{\"stage\":0}",
        "\"validation\":{\"folds\":3}",
        "\"distributed\":{\"local_sgd\":{\"steps\":4}}",
        "\"distributed\":{\"gossip\":{}}",
        "\"distributed\":{\"compress\":\"fp16\"}",
        "\"distributed\":{\"groups\":2}",
        "\"distributed\":{\"server\":{\"mode\":\"async\"}}",
        "\"distributed\":{\"server\":{\"mode\":\"ssp\"}}",
        "\"distributed\":{\"server\":{\"backup\":1}}",
    };
    static const char *const going[] = {
        "\"model\":{\"kind\":\"cnn\",\"preset\":\"lenet\"}",
        "\"distributed\":{\"shard_state\":true}",
        "\"distributed\":{\"server\":{\"mode\":\"ssp\",\"staleness\":0}}",
        "\"optimizer\":{\"clip_norm\":1,\"ema\":0.9}",
    };
    struct train_spec s;
    char text[300];
    for (size_t i = 0; i < AS_ARRAY_LEN(refusing); i++) {
        (void)snprintf(text, sizeof text, "{\"dataset\":\"d\",\"epochs\":5," PRIVATE ",%s}",
                       refusing[i]);
        ck_fails(parse(text, &s), AS_E_INVAL, err, "found with");
        ck_assert_str_eq(err.pointer, "/trial/train/privacy");
    }
    for (size_t i = 0; i < AS_ARRAY_LEN(going); i++) {
        (void)snprintf(text, sizeof text, "{\"dataset\":\"d\",\"epochs\":5," PRIVATE ",%s}",
                       going[i]);
        ck_ok(parse(text, &s), err);
        ck_assert(s.privacy.given && s.privacy.clip == 1 && s.privacy.noise == 1.1);
        ck_assert_double_eq(s.privacy.delta, 1e-5);
        ck_assert(train_spec_reports(&s, DATASET_CLASSIFICATION, "epsilon"));
        train_spec_done(&s);
    }
    ck_ok(parse("{\"dataset\":\"d\",\"epochs\":5}", &s), err);
    ck_assert(!s.privacy.given && !train_spec_reports(&s, DATASET_CLASSIFICATION, "epsilon"));
    ck_assert(!train_spec_can_report(DATASET_CLASSIFICATION, "epsilon")); /* nobody looks for it */
}
END_TEST

START_TEST(lbfgs)
{
    static const char *const refusing[] = {
        "\"model\":{\"dropout\":0.1}",
        "\"augment\":{\"pad\":2}",
        "\"privacy\":{\"clip\":1,\"noise\":1}",
        "\"distributed\":{\"shard_state\":true}",
        "\"distributed\":{\"compress\":\"one_bit\"}",
        "\"distributed\":{\"local_sgd\":{\"steps\":4}}",
        "\"distributed\":{\"server\":{}}",
        "\"distributed\":{\"gossip\":{}}",
    };
    static const char *const more[] = {"\"clip_norm\":1", "\"ema\":0.9"};
    struct train_spec s;
    char text[300];
#define LBFGS "{\"dataset\":\"d\",\"epochs\":5,\"optimizer\":{\"kind\":\"lbfgs\""
    for (size_t i = 0; i < AS_ARRAY_LEN(refusing); i++) {
        (void)snprintf(text, sizeof text, LBFGS "},%s}", refusing[i]);
        ck_fails(parse(text, &s), AS_E_INVAL, err, "found lbfgs with");
        ck_assert_str_eq(err.pointer, "/trial/train/optimizer/kind");
    }
    for (size_t i = 0; i < AS_ARRAY_LEN(more); i++) {
        (void)snprintf(text, sizeof text, LBFGS ",%s}}", more[i]);
        ck_fails(parse(text, &s), AS_E_INVAL, err, "found lbfgs with");
    }
    ck_ok(parse(LBFGS ",\"weight_decay\":0.1,\"history\":3}}", &s), err);
    ck_assert(s.optimizer.kind == TRAIN_LBFGS && s.optimizer.history == 3 && s.optimizer.lr == 1);
    train_spec_done(&s);
    ck_fails(parse(LBFGS ",\"history\":0}}", &s), AS_E_INVAL, err, "/optimizer/history");
}
END_TEST

START_TEST(cocoa)
{
    static const char *const refusing[] = {
        "\"loss\":\"huber\"",
        "\"label_smoothing\":0.1",
        "\"class_weights\":\"balanced\"",
        "\"weights\":\"w\"",
        "\"augment\":{\"flip\":0.5}",
        "\"privacy\":{\"clip\":1,\"noise\":1}",
        "\"distributed\":{\"gossip\":{}}",
        "\"distributed\":{\"compress\":\"fp16\"}",
        "\"distributed\":{\"sufficient_factors\":\"auto\"}",
    };
    struct train_spec s;
    char text[300];
#define COCOA                                                                                      \
    "{\"dataset\":\"d\",\"epochs\":5,\"model\":{\"kind\":\"linear\",\"solver\":\"cocoa\"},"        \
    "\"optimizer\":{\"weight_decay\":"
    for (size_t i = 0; i < AS_ARRAY_LEN(refusing); i++) {
        (void)snprintf(text, sizeof text, COCOA "0.1},%s}", refusing[i]);
        ck_fails(parse(text, &s), AS_E_INVAL, err, "found cocoa with");
        ck_assert_str_eq(err.pointer, "/trial/train/model/solver");
    }
    ck_fails(parse(COCOA "0}}", &s), AS_E_INVAL, err, "its dual needs a penalty");
    ck_fails(parse(COCOA "0.1,\"clip_norm\":1}}", &s), AS_E_INVAL, err, "found cocoa with");
    ck_ok(parse(COCOA "0.1}}", &s), err);
    ck_assert(train_spec_is_cocoa(&s) &&
              train_spec_reports(&s, DATASET_CLASSIFICATION, "duality_gap"));
    train_spec_done(&s);
    ck_ok(parse("{\"dataset\":\"d\",\"epochs\":5,\"model\":{\"solver\":\"cocoa\"}}", &s), err);
    ck_assert(!train_spec_is_cocoa(&s)); /* of another kind: unused */
    train_spec_done(&s);
}
END_TEST

START_TEST(kmeans)
{
    static const char *const refusing[][2] = {
        {"\"loss\":\"mse\"", "/loss"},
        {"\"class_weights\":\"balanced\"", "/class_weights"},
        {"\"weights\":\"w\"", "/weights"},
        {"\"target\":{\"transform\":\"log\"}", "/target"},
        {"\"optimizer\":{\"lr\":0.1}", "/optimizer"},
        {"\"schedule\":{\"kind\":\"cosine\"}", "/schedule"},
        {"\"augment\":{\"flip\":0.5}", "/augment"},
        {"\"batch_size\":64", "/batch_size"},
        {"\"resample\":1", "/resample"},
        {"\"buckets\":\"w\"", "/buckets"},
        {"\"boost\":{\"stage\":0}", "/boost"},
        {"\"patience\":3", "/patience"},
        {"\"precision\":\"bfloat16\"", "/precision"},
        {"\"validation\":{\"folds\":3}", "/validation/folds"},
        {"\"distributed\":{\"gossip\":{}}", "/distributed/gossip"},
        {"\"distributed\":{\"compress\":\"fp16\"}", "/distributed/compress"},
    };
    struct train_spec s;
    char text[300], at[80];
#define KMEANS "{\"dataset\":\"d\",\"model\":{\"kind\":\"kmeans\""
    for (size_t i = 0; i < AS_ARRAY_LEN(refusing); i++) {
        (void)snprintf(text, sizeof text, KMEANS "},%s}", refusing[i][0]);
        (void)snprintf(at, sizeof at, "/trial/train%s", refusing[i][1]);
        ck_fails(parse(text, &s), AS_E_INVAL, err, "no such field with the kind kmeans");
        ck_assert_str_eq(err.pointer, at);
    }
    ck_fails(parse(KMEANS ",\"dropout\":0.1}}", &s), AS_E_INVAL, err, "it is no network");
    ck_fails(parse(KMEANS ",\"clusters\":1}}", &s), AS_E_INVAL, err, "from 2 to 4096");
    ck_fails(parse(KMEANS ",\"init\":\"k\"}}", &s), AS_E_INVAL, err, "k-means++");
    ck_fails(parse(KMEANS ",\"tolerance\":-1}}", &s), AS_E_INVAL, err, "tolerance");
    ck_ok(parse(KMEANS "}}", &s), err);
    ck_assert(s.model.kmeans.clusters == 8 && !s.model.kmeans.random && s.epochs == 300);
    ck_assert(train_model_is_kmeans(&s.model) && !train_model_is_network(&s.model));
    ck_assert_int_eq(train_spec_task(&s, DATASET_REGRESSION), DATASET_CLUSTERING);
    ck_assert(train_spec_can_report(DATASET_CLUSTERING, "val_davies_bouldin") &&
              !train_spec_can_report(DATASET_CLUSTERING, "val_loss") &&
              !train_spec_can_report(DATASET_CLASSIFICATION, "val_inertia"));
    train_spec_done(&s);
    ck_ok(parse(KMEANS ",\"clusters\":3,\"init\":\"random\",\"tolerance\":0},\"epochs\":7,"
                       "\"distributed\":{\"encrypt\":true}}",
                &s),
          err);
    ck_assert(s.model.kmeans.clusters == 3 && s.model.kmeans.random && s.epochs == 7);
    train_spec_done(&s);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("train_spec");
    TCase *t = tcase_create("train_spec");
    tcase_add_test(t, defaults);
    tcase_add_test(t, everything);
    tcase_add_test(t, refused);
    tcase_add_test(t, newer_fields);
    tcase_add_test(t, models);
    tcase_add_test(t, trees);
    tcase_add_test(t, trees_refused);
    tcase_add_test(t, neighbours);
    tcase_add_test(t, naive_bayes);
    tcase_add_test(t, presets);
    tcase_add_test(t, layers_refused);
    tcase_add_test(t, what_follows_from_a_task);
    tcase_add_test(t, validation_by_columns);
    tcase_add_test(t, metrics);
    tcase_add_test(t, privacy);
    tcase_add_test(t, lbfgs);
    tcase_add_test(t, cocoa);
    tcase_add_test(t, kmeans);
    suite_add_tcase(s, t);
    return s;
}
