/* Each field of the manifest of real models, changed in each way that makes sense, with a new
 * checksum. A change is refused, and the message names a field that it contradicts; or it stands in
 * one of the two lists below. docs/models.md says the same for people.
 *   information   is not used for predicting: the predictions stay the same bits
 *   parameters    are a part of the model as its weights are: nothing else in the file says what
 *                 they are, so another value is another model, as another weight would be. The
 *                 checksum and the SHA-256 by which a model is known protect them */
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "model/predict/predictor.h"
#include "model/trees/xgboost.h"
#include "data/preprocess/table.h"
#include "tests/model/predict/predicted.h"
#include "tests/support/check_main.h"

#define ROWS 12
#define POINTER 256

static const char *const information[] = {
    /* what was measured, and where the model comes from */
    "/metrics", "/metrics/*", "/measured_on", "/lineage", "/lineage/*", "/members/*/trial",
    "/members/*/attempt", "/members/*/seed", "/members/*/sweep",
    /* how it was trained: its weights and trees are stored */
    "/members/*/train/dataset", "/members/*/train/epochs", "/members/*/train/batch_size",
    "/members/*/train/augment", "/members/*/train/augment/*", "/members/*/train/optimizer",
    "/members/*/train/optimizer/*", "/members/*/train/model/dropout",
    "/members/*/train/model/max_depth", "/members/*/train/model/n_estimators",
    /* fields of models of another kind, which a document may have */
    "/members/*/train/model/depth", "/members/*/train/model/width",
    "/members/*/train/model/context", "/members/*/train/model/heads",
    "/members/*/train/model/embedding", "/members/*/train/model/layers",
    "/members/*/train/model/norm", "/members/*/train/model/activation",
    "/members/*/train/standardize", /* of trees, which do without */
    "/members/*/train/target",      /* of classes, which are not transformed */
    "/members/*/train/loss",        /* of networks, where it changes neither outputs nor targets */
    /* counts of rows. They are bounded by one another, see model/file/manifest_fit.c */
    "/members/*/preprocessing/training_rows", "/members/*/preprocessing/validation_rows",
    "/members/*/preprocessing/text/training_tokens", "/dataset/rows", "/dataset/columns/*/missing",
    "/dataset/columns/*/other",
    /* the files of the data set: their format, and the name of the target's column there */
    "/dataset/format", "/dataset/target",
    "/dataset", /* more fields: the record of a data set in the database has some */
};

static const char *const parameters[] = {
    "/combine/weights*",
    "/combine/biases*",
    "/combine/buckets*",
    "/combine/other",
    "/combine/calibration*",
    "/combine/threshold",
    "/combine/class_weights*",
    "/combine/stacks/*/of/*",   /* which of several inputs of as many outputs is seen */
    "/dataset/classes/*",       /* what the outputs are called, in ascending order */
    "/dataset/options*",        /* how the cells of a file are read */
    "/dataset/columns/*/since", /* from which day dates count */
    "/members/*/weight",        /* of a sum */
    "/members/*/preprocessing/columns/*/missing",
    "/members/*/preprocessing/columns/*/median",   /* absent in records from before 2026-11-28 */
    "/members/*/preprocessing/columns/*/values/*", /* null: no training row has it */
    "/members/*/preprocessing/target/quantiles/*",
    "/members/*/preprocessing/columns/*/edges/*",
    "/members/*/train/model/activation",
    "/members/*/train/model/heads",
    "/members/*/train/model/layers/*/size", /* of a pool, which has no weights */
    "/members/*/train/model/smoothing",     /* what naive Bayes was trained with … */
    "/members/*/train/model/var_smoothing",
    "/members/*/train/model/words",      /* … */
    "/members/*/train/model/neighbours", /* more of the rows that are there, or fewer */
};

/* What is the default may be left out, or null. */
static const char *const defaults[] = {
    "/dataset/input",
    "/members/*/train/model/kind",
    "/members/*/train/model/layers/*/size",
    "/members/*/train/model/depth",
    "/members/*/train/model/width",
    "/members/*/train/model/context",
};

static struct as_err err;

static bool is_among(const char *pointer, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (fnmatch(list[i], pointer, 0) == 0)
            return true;
    return false;
}

/* ---- a model that is changed ---- */

struct base {
    const char *name;
    char *path;
    struct safetensors *tensors;
    json_t *manifest;
    size_t features, outputs;
    float *rows, *expected; /* [ROWS, features]; [ROWS, outputs] that the model predicts */
    size_t n_refused, n_accepted;
};

/* Write the model with another manifest; the writer makes the checksum. */
static void write_model(const struct base *b, const json_t *manifest)
{
    size_t n = safetensors_count(b->tensors);
    AS_AUTO(as_freep) struct safetensors_tensor *list = as_calloc(n, sizeof *list);
    AS_AUTO(as_freep) char *text = json_format(manifest);
    JSON_AUTO meta = json_pack("{s:s, s:s, s:s}", "format", MODEL_FILE_FORMAT, "version",
                               MODEL_FILE_VERSION, "model", text);
    for (size_t i = 0; i < n; i++)
        list[i] = *safetensors_at(b->tensors, i);
    ck_ok(safetensors_write(b->path, meta, list, n, &err), err);
}

/* Read it, and predict the rows. *ret_same: the predictions are those of the base. A text has no
 * rows: then it has been checked up to there. */
static as_status read_model(const struct base *b, bool *ret_same)
{
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    AS_AUTO(predictor_freep) struct predictor *p = NULL;
    AS_AUTO(as_freep) float *got = as_calloc(ROWS * b->outputs, sizeof *got);
    as_status st = model_file_read(b->path, 1 << 26, &f, &err);
    if (st == AS_OK)
        st = predictor_create(f, 0, &p, &err);
    if (st == AS_E_UNSUPPORTED && strstr(err.msg, "continues text")) {
        *ret_same = true;
        return AS_OK;
    }
    if (st != AS_OK)
        return st;
    *ret_same = predictor_inputs(p) == b->features && predictor_outputs(p) == b->outputs &&
                predictor_run(p, b->rows, ROWS, got, &err) == AS_OK &&
                memcmp(got, b->expected, ROWS * b->outputs * sizeof *got) == 0;
    return AS_OK;
}

/* Categories of all kinds, missing numbers in columns of numbers, and other numbers. */
static void make_rows(struct base *b, const struct dataset_info *info)
{
    for (size_t r = 0; r < ROWS; r++)
        for (size_t c = 0; c < b->features; c++) {
            const struct dataset_column *column = info->columns ? &info->columns[c] : NULL;
            bool is_missing = column && r % 5 == 4 &&
                              (column->n_missing || preprocess_column_is_complete(column));
            b->rows[r * b->features + c] = column && column->categorical
                                               ? (float)(r % (column->n_values + 2))
                                           : is_missing ? NAN
                                                        : (float)(r + c % 3) / 4;
        }
}

static void base_init(struct base *b, const char *name, const struct model_source *sources,
                      size_t n, const json_t *combine)
{
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    AS_AUTO(predictor_freep) struct predictor *p = NULL;
    JSON_AUTO about = json_pack("{s:{s:f}, s:s, s:{s:s}}", "metrics", "val_error", 0.02,
                                "measured_on", "held-out rows", "lineage", "sweep", "s");
    *b = (struct base){.name = name, .path = child_path(&predicted_child[0], "changed.model")};
    ck_ok(model_file_write(b->path, sources, n, combine, about, &err), err);
    ck_ok(safetensors_read(b->path, 1 << 26, &b->tensors, &err), err);
    ck_ok(model_file_read(b->path, 1 << 26, &f, &err), err);
    const struct dataset_info *info = model_file_data(f);
    b->manifest = json_deep_copy(model_file_manifest(f));
    b->features = info->n_features;
    b->outputs = info->n_outputs;
    b->rows = as_calloc(ROWS * b->features, sizeof *b->rows);
    b->expected = as_calloc(ROWS * b->outputs, sizeof *b->expected);
    ck_assert(b->manifest && b->rows && b->expected);
    if (info->input == DATASET_TOKEN_TEXT)
        return;
    make_rows(b, info);
    ck_ok(predictor_create(f, 0, &p, &err), err);
    ck_ok(predictor_run(p, b->rows, ROWS, b->expected, &err), err);
}

static void base_done(struct base *b)
{
    json_decref(b->manifest);
    safetensors_free(b->tensors);
    free(b->rows);
    free(b->expected);
    free(b->path);
}

/* ---- one change ---- */

static json_t *child_of(json_t *j, const char *key)
{
    return json_is_array(j) ? json_array_get(j, strtoul(key, NULL, 10)) : json_object_get(j, key);
}

static json_t *value_at(json_t *root, const char *pointer)
{
    char copy[POINTER], *rest = NULL;
    (void)snprintf(copy, sizeof copy, "%s", pointer);
    for (char *key = strtok_r(copy, "/", &rest); key; key = strtok_r(NULL, "/", &rest))
        root = child_of(root, key);
    return root;
}

/* Put a value (taken) in the place of another, or remove it (NULL). */
static void put(json_t *parent, const char *key, json_t *v)
{
    int bad;
    if (json_is_array(parent))
        bad = v ? json_array_set_new(parent, strtoul(key, NULL, 10), v)
                : json_array_remove(parent, strtoul(key, NULL, 10));
    else
        bad = v ? json_object_set_new(parent, key, v) : json_object_del(parent, key);
    ck_assert_int_eq(bad, 0);
}

/* Does the message name the field, or what it is a part of? An element of a list has the name of
 * the list. */
static bool names_field(const char *message, const char *pointer)
{
    char copy[POINTER];
    (void)snprintf(copy, sizeof copy, "%s", pointer);
    for (int left = 3; left > 0 && copy[0];) {
        char *key = strrchr(copy, '/');
        bool is_index = key[1] >= '0' && key[1] <= '9';
        if (!is_index && strstr(message, key + 1))
            return true;
        left -= !is_index;
        *key = '\0';
    }
    return false;
}

/* Takes v. */
static void change(struct base *b, const char *parent, const char *key, json_t *v, const char *how)
{
    char pointer[POINTER];
    JSON_AUTO m = json_deep_copy(b->manifest);
    bool is_left_out = !v || json_is_null(v), is_same = false;
    (void)snprintf(pointer, sizeof pointer, "%s/%s", parent, key);
    put(value_at(m, parent), key, v);
    if (json_equal(m, b->manifest))
        return;
    write_model(b, m);
    as_status st = read_model(b, &is_same);
    *(st == AS_OK ? &b->n_accepted : &b->n_refused) += 1;
    if (st != AS_OK) {
        ck_assert_msg(names_field(err.msg, pointer), "%s: %s %s: the message names no field: %s",
                      b->name, pointer, how, err.msg);
        return;
    }
    bool is_information = is_among(pointer, information, AS_ARRAY_LEN(information));
    bool is_parameter = is_among(pointer, parameters, AS_ARRAY_LEN(parameters));
    bool is_default = is_left_out && is_among(pointer, defaults, AS_ARRAY_LEN(defaults));
    ck_assert_msg(is_information || is_parameter || is_default, "%s: %s %s: accepted, %s", b->name,
                  pointer, how, is_same ? "and predicts the same" : "and predicts something else");
    ck_assert_msg(is_same || is_parameter, "%s: %s %s: it is used for predicting", b->name, pointer,
                  how);
}

/* ---- all changes ---- */

static void change_number(struct base *b, const char *parent, const char *key, const json_t *v)
{
    json_int_t i = json_integer_value(v);
    double d = json_number_value(v);
    bool whole = json_is_integer(v);
    change(b, parent, key, json_string("7"), "as a text");
    change(b, parent, key, whole ? json_integer(i + 1) : json_real(d + 0.125), "larger");
    change(b, parent, key, whole ? json_integer(i - 1) : json_real(d - 0.125), "smaller");
    change(b, parent, key, whole ? json_integer(2 * i) : json_real(2 * d), "doubled");
    change(b, parent, key, json_integer(d == 0 ? 1 : 0), "zero, or 1 for it");
    change(b, parent, key, whole ? json_integer(-i - 1) : json_real(-d - 1), "negative");
    change(b, parent, key, whole ? json_integer(INT64_MAX) : json_real(1e300), "huge");
}

/* A word of a list, and all words that some list of the manifest has. */
static void change_text(struct base *b, const char *parent, const char *key)
{
    static const char *const of_lists[] = {"format", "task",   "kind",      "part",       "input",
                                           "inputs", "loss",   "pool",      "activation", "norm",
                                           "column", "cycles", "transform", "encode"};
    static const char *const words[] = {"classification",
                                        "regression",
                                        "language_modeling",
                                        "clustering",
                                        "table",
                                        "image",
                                        "tokens",
                                        "csv",
                                        "npy",
                                        "idx",
                                        "text",
                                        "mlp",
                                        "linear",
                                        "cnn",
                                        "transformer",
                                        "boosted_trees",
                                        "random_forest",
                                        "extra_trees",
                                        "knn",
                                        "naive_bayes",
                                        "kmeans",
                                        "relu",
                                        "tanh",
                                        "gelu",
                                        "batch",
                                        "layer",
                                        "none",
                                        "mean",
                                        "sum",
                                        "by",
                                        "log",
                                        "outputs",
                                        "log1p",
                                        "quantile",
                                        "piecewise_linear",
                                        "numeric",
                                        "categorical",
                                        "date",
                                        "bce",
                                        "mse",
                                        "huber",
                                        "size"};
    bool is_word = false;
    for (size_t i = 0; i < AS_ARRAY_LEN(of_lists); i++)
        is_word |= as_streq(key, of_lists[i]);
    for (size_t i = 0; is_word && i < AS_ARRAY_LEN(words); i++)
        change(b, parent, key, json_string(words[i]), words[i]);
    change(b, parent, key, json_string("zzz"), "another text");
    change(b, parent, key, json_string(""), "an empty text");
    change(b, parent, key, json_integer(7), "a number");
}

static void change_field(struct base *b, const char *parent, const char *key);

static void change_object(struct base *b, const char *pointer, const char *parent, const char *key,
                          json_t *v)
{
    const char *name;
    json_t *value, *more = json_deep_copy(v);
    ck_assert_int_eq(json_object_set_new(more, "surprise", json_integer(1)), 0);
    change(b, parent, key, more, "with one more field");
    change(b, parent, key, json_integer(7), "a number");
    change(b, parent, key, json_object(), "empty");
    json_object_foreach(v, name, value) change_field(b, pointer, name);
}

static void change_list(struct base *b, const char *pointer, const char *parent, const char *key,
                        const json_t *v)
{
    size_t n = json_array_size(v);
    json_t *more = json_deep_copy(v), *swapped = json_deep_copy(v);
    change(b, parent, key, json_integer(7), "a number");
    change(b, parent, key, json_array(), "empty");
    ck_assert_int_eq(json_array_append(more, json_array_get(v, n - 1)), 0);
    change(b, parent, key, more, "with its last element twice");
    ck_assert(n < 2 || (json_array_set(swapped, 0, json_array_get(v, 1)) == 0 &&
                        json_array_set(swapped, 1, json_array_get(v, 0)) == 0));
    change(b, parent, key, swapped, "swapped");
    for (size_t i = 0; i < n; i++) {
        char index[24];
        (void)snprintf(index, sizeof index, "%zu", i);
        if (i < 3 || i + 1 == n)
            change_field(b, pointer, index);
    }
}

static void change_field(struct base *b, const char *parent, const char *key)
{
    char pointer[POINTER];
    (void)snprintf(pointer, sizeof pointer, "%s/%s", parent, key);
    json_t *v = value_at(b->manifest, pointer);
    change(b, parent, key, NULL, "removed");
    change(b, parent, key, json_null(), "null");
    change(b, parent, key, json_boolean(!json_is_true(v)), "true or false");
    if (json_is_number(v))
        change_number(b, parent, key, v);
    else if (json_is_string(v))
        change_text(b, parent, key);
    else if (json_is_object(v))
        change_object(b, pointer, parent, key, v);
    else if (json_is_array(v))
        change_list(b, pointer, parent, key, v);
}

/* Fields that a document may have, and this one has not. */
static void add_fields(struct base *b, const char *parent)
{
    static const char *const model[] = {
        "{\"embedding\":2}",  "{\"norm\":\"batch\"}", "{\"activation\":\"tanh\"}",
        "{\"dropout\":0.5}",  "{\"layers\":[5]}",     "{\"kind\":\"linear\"}",
        "{\"max_depth\":2}",  "{\"depth\":2}",        "{\"n_estimators\":2}",
        "{\"kind\":\"cnn\"}", "{\"heads\":4}",        "{\"kind\":\"random_forest\"}"};
    static const char *const train[] = {"{\"loss\":\"bce\"}", "{\"loss\":\"huber\"}",
                                        "{\"standardize\":false}", "{\"batch_size\":8}",
                                        "{\"target\":{\"transform\":\"log\"}}"};
    for (size_t i = 0; i < AS_ARRAY_LEN(model) + AS_ARRAY_LEN(train); i++) {
        bool is_model = i < AS_ARRAY_LEN(model);
        const char *text = is_model ? model[i] : train[i - AS_ARRAY_LEN(model)], *key;
        char at[POINTER];
        JSON_AUTO more = NULL;
        json_t *value;
        (void)snprintf(at, sizeof at, "%s%s", parent, is_model ? "/model" : "");
        ck_ok(json_parse(text, strlen(text), &more, &err), err);
        json_object_foreach(more, key, value) if (json_is_object(value_at(b->manifest, at)))
            change(b, at, key, json_incref(value), "added");
    }
}

static void change_all(struct base *b)
{
    const char *key;
    json_t *value;
    bool is_same = false;
    write_model(b, b->manifest);
    ck_ok(read_model(b, &is_same), err);
    ck_assert_msg(is_same, "%s: the model itself is read back otherwise", b->name);
    json_object_foreach(b->manifest, key, value) change_field(b, "", key);
    for (size_t i = 0; i < json_array_size(json_object_get(b->manifest, "members")); i++) {
        char train[POINTER];
        (void)snprintf(train, sizeof train, "/members/%zu/train", i);
        add_fields(b, train);
    }
    change(b, "", "surprise", json_integer(1), "added");
    ck_assert_uint_gt(b->n_refused, 300);
    ck_assert_uint_gt(b->n_accepted, 30);
    base_done(b);
}

/* ---- models ---- */

static void of_trial(const char *name)
{
    struct base b;
    AS_AUTO(as_freep) char *path = child_path(&predicted_child[0], "artifacts/model.safetensors");
    const struct model_source s = {
        .path = path, .weight = 1, .trial = 12, .attempt = 2, .seed = "77", .sweep = "s"};
    base_init(&b, name, &s, 1, NULL);
    change_all(&b);
}

static void train_table(size_t i, int classes, const char *fields)
{
    trained_write_table(&predicted_child[0], 60, classes);
    AS_AUTO(as_freep) char *path = child_path(&predicted_child[0], "t.csv");
    const struct dataset_paths paths = {.table = path};
    predicted_train(i, &paths, DATASET_CSV, "y",
                    classes ? DATASET_CLASSIFICATION : DATASET_REGRESSION, fields);
}

START_TEST(networks_of_tables)
{
    train_table(0, 3,
                "\"epochs\":1,\"batch_size\":16,\"model\":{\"layers\":[3],\"norm\":\"batch\","
                "\"dropout\":0.1},\"optimizer\":{\"lr\":0.01,\"ema\":0.9}");
    of_trial("mlp");
    train_table(0, 2,
                "\"epochs\":1,\"loss\":\"bce\",\"model\":{\"layers\":[3],\"embedding\":2,"
                "\"activation\":\"gelu\"}");
    of_trial("embedded categories");
    train_table(0, 0,
                "\"epochs\":1,\"model\":{\"kind\":\"linear\"},\"target\":{\"transform\":"
                "\"quantile\"}");
    of_trial("linear");
    train_table(0, 2,
                "\"epochs\":1,\"model\":{\"kind\":\"linear\"},\"numbers\":{\"encode\":"
                "\"piecewise_linear\",\"bins\":3}");
    of_trial("numbers in bins");
}
END_TEST

START_TEST(trees)
{
    train_table(0, 3, "\"model\":{\"kind\":\"boosted_trees\",\"n_estimators\":3,\"max_depth\":3}");
    of_trial("boosted trees");
    train_table(0, 2, "\"model\":{\"kind\":\"random_forest\",\"n_estimators\":3}");
    of_trial("forest");
}
END_TEST

START_TEST(extra_trees)
{
    train_table(0, 3, "\"model\":{\"kind\":\"extra_trees\",\"n_estimators\":3}");
    of_trial("extra trees");
}
END_TEST

START_TEST(kmeans)
{
    train_table(0, 3, "\"model\":{\"kind\":\"kmeans\",\"clusters\":3}");
    of_trial("kmeans");
}
END_TEST

START_TEST(nearest_neighbours)
{
    train_table(0, 3, "\"model\":{\"kind\":\"knn\",\"neighbours\":3}");
    of_trial("neighbours");
}
END_TEST

START_TEST(naive_bayes)
{
    train_table(0, 3, "\"model\":{\"kind\":\"naive_bayes\",\"smoothing\":3}");
    of_trial("naive Bayes");
}
END_TEST

START_TEST(dates_and_texts)
{
    static const struct dataset_options options = {.comment = '#'};
    char report[512];
    trained_write_mixed(&predicted_child[0], 60, 2);
    AS_AUTO(as_freep) char *path = child_path(&predicted_child[0], "t.csv");
    const struct dataset_paths paths = {.table = path};
    trained_model_with(&predicted_child[0], &paths, DATASET_CSV, &options, "y",
                       DATASET_CLASSIFICATION, "\"epochs\":1,\"model\":{\"layers\":[3]}", report,
                       sizeof report);
    of_trial("dates and texts");
}
END_TEST

START_TEST(images)
{
    AS_AUTO(as_freep) char *x = child_path(&predicted_child[0], "x.npy");
    AS_AUTO(as_freep) char *y = child_path(&predicted_child[0], "y.npy");
    const struct dataset_paths paths = {.features = x, .targets = y};
    trained_write_images(x, y, 40, 1);
    predicted_train(
        0, &paths, DATASET_NPY, NULL, DATASET_CLASSIFICATION,
        "\"epochs\":1,\"batch_size\":16,\"augment\":{\"flip\":0.5},\"model\":{\"kind\":\"cnn\","
        "\"layers\":[{\"conv\":4,\"norm\":\"batch\"},{\"pool\":\"max\",\"size\":2},{\"residual\":"
        "[{\"conv\":4}]},{\"conv\":4,\"depthwise\":true},{\"pool\":\"global\"},{\"dense\":5}]}");
    of_trial("cnn");
}
END_TEST

START_TEST(text_of_tokens)
{
    static char text[3000];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = "the quick brown fox. "[i % 21];
    child_write(&predicted_child[0], "t.txt", text, sizeof text);
    AS_AUTO(as_freep) char *path = child_path(&predicted_child[0], "t.txt");
    const struct dataset_paths paths = {.table = path};
    predicted_train(0, &paths, DATASET_TEXT, NULL, DATASET_TASK_AUTO,
                    "\"epochs\":1,\"model\":{\"kind\":\"transformer\",\"depth\":1,\"width\":8,"
                    "\"heads\":2,\"context\":12}");
    of_trial("transformer");
}
END_TEST

START_TEST(ensembles)
{
    struct base b;
    train_table(0, 3, "\"epochs\":1,\"model\":{\"layers\":[3]}");
    train_table(1, 3, "\"epochs\":1,\"model\":{\"layers\":[4]}");
    AS_AUTO(as_freep) char *first = child_path(&predicted_child[0], "artifacts/model.safetensors");
    AS_AUTO(as_freep) char *second = child_path(&predicted_child[1], "artifacts/model.safetensors");
    struct model_source s[] = {{.path = first, .weight = 0.75}, {.path = second, .weight = 0.25}};
    JSON_AUTO linear = json_pack("{s:s, s:s, s:[f, f, f]}", "kind", "linear", "inputs", "log",
                                 "biases", 0.5, 0.25, 0.0);
    JSON_AUTO by =
        json_pack("{s:s, s:s, s:[{s:s, s:i}, {s:s, s:i}], s:i}", "kind", "by", "column", "colour",
                  "buckets", "value", "red", "input", 0, "value", "blue", "input", 1, "other", 1);
    JSON_AUTO calibrated = json_pack("{s:s, s:{s:f}, s:[f, f, f]}", "kind", "mean", "calibration",
                                     "slope", 0.75, "class_weights", 1.0, 2.5, 0.75);
    base_init(&b, "mean", s, 2, calibrated);
    change_all(&b);
    base_init(&b, "by a column", s, 2, by);
    change_all(&b);
    s[1].weight = -2;
    base_init(&b, "stacked", s, 2, linear);
    change_all(&b);
}
END_TEST

/* The table with three further columns, as a model sees it behind one of three classes. */
static void write_wider(void)
{
    AS_AUTO(str_done) struct str wider = {0};
    AS_AUTO(as_freep) char *table = child_read(&predicted_child[0], "t.csv", &(size_t){0});
    size_t row = 0;
    for (const char *line = table, *end; (end = strchr(line, '\n')); line = end + 1, row++) {
        const char *last = end;
        while (*last != ',')
            last--;
        str_printf(&wider, "%.*s%s%.*s\n", (int)(last - line), line,
                   row == 0  ? ",stack.0.0,stack.0.1,stack.0.2"
                   : row % 3 ? ",0.25,0.5,0.25"
                             : ",0.125,0.75,0.125",
                   (int)(end - last), last);
    }
    child_write(&predicted_child[0], "wide.csv", wider.s, wider.len);
}

START_TEST(layers)
{
    struct base b;
    train_table(0, 3, "\"epochs\":1,\"model\":{\"layers\":[3]}");
    train_table(1, 3, "\"epochs\":1,\"model\":{\"layers\":[4]}");
    write_wider();
    AS_AUTO(as_freep) char *wide = child_path(&predicted_child[0], "wide.csv");
    const struct dataset_paths paths = {.table = wide};
    predicted_train(2, &paths, DATASET_CSV, "y", DATASET_CLASSIFICATION,
                    "\"epochs\":1,\"model\":{\"layers\":[2]}");
    AS_AUTO(as_freep) char *first = child_path(&predicted_child[0], "artifacts/model.safetensors");
    AS_AUTO(as_freep) char *second = child_path(&predicted_child[1], "artifacts/model.safetensors");
    AS_AUTO(as_freep) char *own = child_path(&predicted_child[2], "artifacts/model.safetensors");
    AS_AUTO(as_freep) char *deep = child_path(&predicted_child[2], "deep");
    const struct model_source above = {.path = own, .weight = 1},
                              below = {.path = first, .weight = 1};
    ck_ok(model_file_write_stacked(deep, &above, &below, 1, NULL, &err), err);
    const struct model_source s[] = {{.path = deep, .weight = 0.75},
                                     {.path = second, .weight = 0.25}};
    base_init(&b, "layers", s, 2, NULL);
    change_all(&b);
}
END_TEST

TEST_SUITE()
{
    static const char lacks[] = "XGBoost's library is not here (Debian: libxgboost0)";
    const struct xgboost *xgboost = NULL;
    bool has_trees = xgboost_open(&xgboost, NULL) == AS_OK;
    Suite *s = suite_create("manifests");
    TCase *t = tcase_create("manifests");
    tcase_add_checked_fixture(t, predicted_setup, predicted_teardown);
    tcase_add_test(t, networks_of_tables);
    add_test_if(t, trees, has_trees, lacks);
    tcase_add_test(t, extra_trees);
    tcase_add_test(t, kmeans);
    tcase_add_test(t, nearest_neighbours);
    tcase_add_test(t, naive_bayes);
    tcase_add_test(t, dates_and_texts);
    tcase_add_test(t, images);
    tcase_add_test(t, text_of_tokens);
    tcase_add_test(t, ensembles);
    suite_add_tcase(s, t);
    t = tcase_create("layers");
    tcase_add_checked_fixture(t, predicted_setup, predicted_teardown);
    tcase_add_test(t, layers);
    suite_add_tcase(s, t);
    return s;
}
