/* Model files: composing, reading back, equal bytes; damage, other versions, and manifests that say
 * what they must not. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "data/dataset_json.h"
#include "model/file/model_file.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

#define TRAIN "{\"dataset\":\"d\",\"epochs\":1,\"model\":{\"layers\":[%d]}}"
#define DATASET                                                                                    \
    "{\"format\":\"csv\",\"task\":\"classification\",\"rows\":%d,\"features\":2,\"outputs\":2,"    \
    "\"input\":\"table\",\"target\":\"y\",\"classes\":[\"no\",\"yes\"],\"columns\":[{\"name\":"    \
    "\"x\",\"kind\":\"numeric\",\"missing\":1},{\"name\":\"c\",\"kind\":\"categorical\","          \
    "\"missing\":0,\"other\":0,\"values\":[\"u\",\"v\"]}]}"
#define RECORD                                                                                     \
    "{\"input\":\"table\",\"standardize\":true,\"training_rows\":4,\"validation_rows\":2,"         \
    "\"columns\":[{\"column\":\"x\",\"kind\":\"numeric\",\"input\":0,\"mean\":1.5,\"scale\":2,"    \
    "\"missing\":0.5,\"indicator\":1},{\"column\":\"c\",\"kind\":\"categorical\",\"input\":2,"     \
    "\"values\":[\"u\",null],\"other\":4}]}"

static struct as_err err;
static char dir[TEMP_FOLDER_SIZE];

static void setup(void)
{
    temp_folder_make(dir);
}

static void teardown(void)
{
    temp_folder_remove(dir);
}

static char *in_dir(const char *name)
{
    char *path = file_join(dir, name);
    ck_assert_ptr_nonnull(path);
    return path;
}

/* Write a file with this metadata and the tensors `names`, of which the first is of bytes, the
 * others are four numbers that begin with `value`. */
static void write_file(const char *name, const json_t *metadata, const char *const *names, size_t n,
                       float value)
{
    AS_AUTO(as_freep) char *path = in_dir(name);
    const float numbers[4] = {value, 2, 3, 4};
    const unsigned char bytes[3] = {1, 2, (unsigned char)value};
    struct safetensors_tensor tensors[4];
    for (size_t i = 0; i < n; i++)
        tensors[i] = i == 0 ? (struct safetensors_tensor){.name = names[i],
                                                          .type = SAFETENSORS_U8,
                                                          .n_dims = 1,
                                                          .shape = {3},
                                                          .data = bytes}
                            : (struct safetensors_tensor){
                                  .name = names[i], .n_dims = 1, .shape = {4}, .data = numbers};
    ck_ok(safetensors_write(path, metadata, tensors, n, &err), err);
}

/* A trial's own file. */
static void write_trial(const char *name, int width, int rows, float value)
{
    static const char *const names[] = {"odd", "layers.0.weight", "z"};
    char train[200], dataset[600];
    (void)snprintf(train, sizeof train, TRAIN, width);
    (void)snprintf(dataset, sizeof dataset, DATASET, rows);
    JSON_AUTO meta =
        json_pack("{s:s, s:s, s:s, s:s, s:s}", "format", "assay-model-1", "train", train, "dataset",
                  dataset, "preprocessing", RECORD, "fingerprint", "f");
    write_file(name, meta, names, 3, value);
}

static as_status read_model(const char *name, struct model_file **ret)
{
    AS_AUTO(as_freep) char *path = in_dir(name);
    return model_file_read(path, 1 << 20, ret, &err);
}

static as_status compose(const char *to, const char *a, double wa, const char *b, double wb,
                         const json_t *combine, const json_t *about)
{
    AS_AUTO(as_freep) char *path = in_dir(to);
    AS_AUTO(as_freep) char *first = in_dir(a);
    AS_AUTO(as_freep) char *second = b ? in_dir(b) : NULL;
    const struct model_source sources[] = {
        {.path = first, .weight = wa, .trial = 12, .attempt = 2, .seed = "18446744073709551615"},
        {.path = second, .weight = wb, .trial = 3},
    };
    return model_file_write(path, sources, b ? 2 : 1, combine, about, &err);
}

static float first_number(const struct model_file *f, size_t member, const char *name)
{
    float v[4];
    ck_ok(model_file_tensor(f, member, name, SAFETENSORS_F32, 4, v, &err), err);
    return v[0];
}

START_TEST(a_trials_file_is_a_model_of_one_member)
{
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    write_trial("a", 5, 6, 7);
    ck_ok(read_model("a", &f), err);
    ck_assert_uint_eq(model_file_n_members(f), 1);
    const struct model_member *m = model_file_member(f, 0);
    ck_assert_double_eq(m->weight, 1);
    ck_assert_int_eq(m->spec->model.layers[0], 5);
    ck_assert_float_eq(m->fit->fill[0], 0.5f);
    ck_assert_int_eq(m->trial, 0);
    ck_assert_str_eq(model_file_data(f)->classes[1], "yes");
    ck_assert_float_eq(first_number(f, 0, "layers.0.weight"), 7);
    ck_assert_ptr_nonnull(model_file_find(f, 0, "odd"));
    ck_assert_ptr_null(model_file_find(f, 0, "even"));
}
END_TEST

START_TEST(members_keep_their_own)
{
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    JSON_AUTO about = json_pack("{s:{s:f}, s:s, s:{s:s}}", "metrics", "val_error", 0.02,
                                "measured_on", "held-out rows", "lineage", "sweep", "s");
    write_trial("a", 5, 6, 7);
    write_trial("b", 9, 6, 8);
    ck_ok(compose("m", "a", 0.75, "b", 0.25, NULL, about), err);
    ck_ok(read_model("m", &f), err);
    ck_assert_uint_eq(model_file_n_members(f), 2);
    const struct model_member *a = model_file_member(f, 0), *b = model_file_member(f, 1);
    ck_assert(a->weight == 0.75 && b->weight == 0.25);
    ck_assert(a->spec->model.layers[0] == 5 && b->spec->model.layers[0] == 9);
    ck_assert(a->trial == 12 && a->attempt == 2 && b->trial == 3 && b->attempt == 0);
    ck_assert_str_eq(a->seed, "18446744073709551615");
    ck_assert_ptr_null(b->seed);
    ck_assert_float_eq(first_number(f, 0, "z"), 7);
    ck_assert_float_eq(first_number(f, 1, "z"), 8);
    ck_assert_uint_eq(((const unsigned char *)model_file_find(f, 1, "odd")->data)[2], 8);
    ck_assert_str_eq(json_string_value(json_object_get(model_file_manifest(f), "measured_on")),
                     "held-out rows");
    ck_fails(model_file_tensor(f, 1, "z", SAFETENSORS_F32, 5, NULL, &err), AS_E_INVAL, err,
             "members/1/z");
    ck_fails(model_file_tensor(f, 1, "y", SAFETENSORS_F32, 5, NULL, &err), AS_E_INVAL, err,
             "member 1 has no tensor 'y'");
}
END_TEST

/* Tensors of numbers stay at offsets that programs may map. */
START_TEST(numbers_are_aligned)
{
    AS_AUTO(safetensors_freep) struct safetensors *s = NULL;
    AS_AUTO(as_freep) char *path = in_dir("m");
    write_trial("a", 5, 6, 7);
    ck_ok(compose("m", "a", 0.5, "a", 0.5, NULL, NULL), err);
    ck_ok(safetensors_read(path, 1 << 20, &s, &err), err);
    const char *base = safetensors_at(s, 0)->data;
    for (size_t i = 0; i < safetensors_count(s); i++) {
        const struct safetensors_tensor *t = safetensors_at(s, i);
        if (t->type == SAFETENSORS_F32)
            ck_assert_uint_eq((size_t)((const char *)t->data - base) % 4, 0);
    }
}
END_TEST

START_TEST(equal_content_gives_equal_bytes)
{
    char first[SHA256_HEX_SIZE], second[SHA256_HEX_SIZE], other[SHA256_HEX_SIZE];
    AS_AUTO(as_freep) char *m = in_dir("m");
    AS_AUTO(as_freep) char *n = in_dir("n");
    AS_AUTO(as_freep) char *o = in_dir("o");
    JSON_AUTO one =
        json_pack("{s:s, s:{s:f, s:i}}", "measured_on", "x", "metrics", "a", 0.1, "b", 2);
    JSON_AUTO two =
        json_pack("{s:{s:i, s:f}, s:s}", "metrics", "b", 2, "a", 0.1, "measured_on", "x");
    write_trial("a", 5, 6, 7);
    write_trial("b", 9, 6, 8);
    ck_ok(compose("m", "a", 0.75, "b", 0.25, NULL, one), err);
    ck_ok(compose("n", "a", 0.75, "b", 0.25, NULL, two), err);
    ck_ok(compose("o", "a", 0.5, "b", 0.5, NULL, one), err);
    ck_ok(sha256_of_file(m, first, NULL, &err), err);
    ck_ok(sha256_of_file(n, second, NULL, &err), err);
    ck_ok(sha256_of_file(o, other, NULL, &err), err);
    ck_assert_str_eq(first, second);
    ck_assert_str_ne(first, other);
}
END_TEST

START_TEST(a_model_may_be_a_source)
{
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    AS_AUTO(as_freep) char *m = in_dir("m");
    AS_AUTO(as_freep) char *c = in_dir("c");
    AS_AUTO(as_freep) char *all = in_dir("all");
    write_trial("a", 5, 6, 7);
    write_trial("b", 9, 6, 8);
    write_trial("c", 3, 6, 9);
    ck_ok(compose("m", "a", 0.75, "b", 0.25, NULL, NULL), err);
    const struct model_source sources[] = {{.path = c, .weight = 0.6}, {.path = m, .weight = 0.4}};
    ck_ok(model_file_write(all, sources, 2, NULL, NULL, &err), err);
    ck_ok(read_model("all", &f), err);
    ck_assert_uint_eq(model_file_n_members(f), 3);
    ck_assert_double_eq_tol(model_file_member(f, 2)->weight, 0.1, 1e-15);
    ck_assert_int_eq(model_file_member(f, 1)->trial, 12);
    ck_assert_float_eq(first_number(f, 0, "z"), 9);
    ck_assert_float_eq(first_number(f, 2, "z"), 8);
}
END_TEST

/* ---- stacked ensembles ---- */

static json_t *linear(const char *inputs, double bias)
{
    return json_pack("{s:s, s:s, s:[f, f]}", "kind", "linear", "inputs", inputs, "biases", bias,
                     -0.5);
}

/* Sources are inputs; one that has several members (a trial of several folds) stays one input. */
START_TEST(a_stacked_ensemble_has_inputs)
{
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    AS_AUTO(as_freep) char *m = in_dir("m");
    AS_AUTO(as_freep) char *c = in_dir("c");
    AS_AUTO(as_freep) char *all = in_dir("all");
    JSON_AUTO combine = linear("log", 0.1);
    write_trial("a", 5, 6, 7);
    write_trial("b", 9, 6, 8);
    write_trial("c", 3, 6, 9);
    ck_ok(compose("m", "a", 0.75, "b", 0.25, NULL, NULL), err);
    const struct model_source sources[] = {{.path = m, .weight = 1.25, .sweep = "folds"},
                                           {.path = c, .weight = -3, .trial = 4}};
    ck_ok(model_file_write(all, sources, 2, combine, NULL, &err), err);
    ck_ok(read_model("all", &f), err);
    const struct model_combine *k = model_file_combine(f);
    ck_assert(k->kind == MODEL_LINEAR && k->of_logs && k->n_inputs == 2);
    ck_assert(k->weights[0] == 1.25 && k->weights[1] == -3);
    ck_assert(k->biases[0] == 0.1 && k->biases[1] == -0.5);
    const size_t inputs[] = {0, 0, 1};
    const double weights[] = {0.75, 0.25, 1};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(model_file_member(f, i)->input, inputs[i]);
        ck_assert_double_eq(model_file_member(f, i)->weight, weights[i]);
    }
    ck_assert_str_eq(model_file_member(f, 1)->sweep, "folds");
    ck_assert_ptr_null(model_file_member(f, 2)->sweep);
    ck_assert_float_eq(first_number(f, 2, "z"), 9);
    ck_fails(compose("n", "all", 1, NULL, 0, NULL, NULL), AS_E_UNSUPPORTED, err,
             "all: a stacked ensemble cannot be a member");
    ck_fails(compose("n", "a", 0, NULL, 0, combine, NULL), AS_E_INVAL, err,
             "/combine/weights/0: found 0");
    ck_assert_int_eq(json_object_set_new(combine, "weights", json_pack("[f]", 1.0)), 0);
    ck_fails(compose("n", "a", 1, NULL, 0, combine, NULL), AS_E_INVAL, err,
             "they follow from the sources");
}
END_TEST

/* ---- boosting ---- */

/* A trial's file that learnt what the one of write_trial() misses: two numbers. */
static void write_stage(const char *name, float value)
{
    static const char *const names[] = {"odd", "layers.0.weight", "z"};
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    AS_AUTO(dataset_info_done) struct dataset_info residual = {0};
    JSON_AUTO record = NULL;
    write_trial("whole", 5, 6, 0);
    ck_ok(read_model("whole", &f), err);
    ck_ok(model_residual_info(model_file_data(f), &residual, &err), err);
    ck_assert(residual.task == DATASET_REGRESSION && residual.n_outputs == 2 && !residual.classes);
    JSON_AUTO dataset = dataset_info_to_json(&residual);
    ck_ok(json_parse(RECORD, strlen(RECORD), &record, &err), err);
    JSON_AUTO target = json_pack("{s:[f, f], s:[f, f]}", "mean", 0.0, 0.0, "scale", 1.0, 1.0);
    ck_assert_int_eq(json_object_set(record, "target", target), 0);
    char train[200];
    (void)snprintf(train, sizeof train, TRAIN, 5);
    AS_AUTO(as_freep) char *data = json_format(dataset);
    AS_AUTO(as_freep) char *learnt = json_format(record);
    JSON_AUTO meta = json_pack("{s:s, s:s, s:s, s:s, s:s}", "format", "assay-model-1", "train",
                               train, "dataset", data, "preprocessing", learnt, "fingerprint", "f");
    write_file(name, meta, names, 3, value);
}

/* A sum grows at its end, and is kept whole where it is alone. */
START_TEST(a_sum_grows)
{
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    AS_AUTO(model_file_freep) struct model_file *alone = NULL;
    JSON_AUTO sum = json_pack("{s:s}", "kind", "sum");
    write_trial("a", 5, 6, 7);
    write_stage("b", 8);
    write_stage("c", 9);
    ck_ok(compose("two", "a", 1, "b", 4.5, sum, NULL), err);
    ck_ok(compose("three", "two", 1, "c", 0.25, sum, NULL), err);
    ck_ok(read_model("three", &f), err);
    ck_assert(model_file_combine(f)->kind == MODEL_SUM && model_file_combine(f)->sums[0]);
    const double weights[] = {1, 4.5, 0.25};
    for (size_t i = 0; i < 3; i++) {
        const struct model_member *m = model_file_member(f, i);
        ck_assert_double_eq(m->weight, weights[i]);
        ck_assert_int_eq(m->info->task, i ? DATASET_REGRESSION : DATASET_CLASSIFICATION);
        ck_assert_float_eq(first_number(f, i, "z"), (float)(7 + i));
    }
    ck_ok(compose("copy", "three", 1, NULL, 0, NULL, NULL), err);
    ck_ok(read_model("copy", &alone), err);
    ck_assert_int_eq(model_file_combine(alone)->kind, MODEL_SUM);
    ck_assert_double_eq(model_file_member(alone, 1)->weight, 4.5);
    ck_fails(compose("n", "a", 1, "three", 1, sum, NULL), AS_E_INVAL, err, "different data sets");
    ck_fails(compose("n", "a", 1, "a", 1, sum, NULL), AS_E_INVAL, err, "different data sets");
    ck_fails(compose("n", "a", 0.5, "b", 1, sum, NULL), AS_E_INVAL, err,
             "/members/0/weight: found 0.5, expected 1");
    ck_ok(compose("pair", "a", 0.5, "a", 0.5, NULL, NULL), err);
    ck_fails(compose("n", "pair", 1, "b", 1, sum, NULL), AS_E_UNSUPPORTED, err,
             "pair: a mean of several models cannot be a member");
    ck_fails(compose("n", "three", 1, "three", 1, sum, NULL), AS_E_INVAL, err,
             "different data sets");
}
END_TEST

/* The inputs of a model, each with the members from..to. */
static void has_inputs(const struct model_file *f, const size_t *n, const bool *sums, size_t inputs)
{
    size_t at = 0, first = 0;
    ck_assert_uint_eq(model_file_combine(f)->n_inputs, inputs);
    for (size_t k = 0; k < inputs; k++) {
        ck_assert_uint_eq(model_file_input(f, k, &first), n[k]);
        ck_assert_uint_eq(first, at);
        ck_assert_int_eq(model_file_combine(f)->sums[k], sums[k]);
        for (size_t i = at; i < at + n[k]; i++)
            ck_assert_int_eq(model_file_member(f, i)->info->task,
                             sums[k] && i > at ? DATASET_REGRESSION : DATASET_CLASSIFICATION);
        at += n[k];
    }
    ck_assert_uint_eq(at, model_file_n_members(f));
}

/* Beside others a sum is an input, of a mean too. */
START_TEST(a_sum_may_be_an_input)
{
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    AS_AUTO(model_file_freep) struct model_file *stacked = NULL;
    JSON_AUTO sum = json_pack("{s:s}", "kind", "sum");
    JSON_AUTO mean = json_pack("{s:s}", "kind", "mean");
    JSON_AUTO combine = linear("log", 0.1);
    write_trial("a", 5, 6, 7);
    write_stage("b", 8);
    ck_ok(compose("two", "a", 1, "b", 4.5, sum, NULL), err);
    ck_ok(compose("pair", "a", 0.25, "a", 0.75, NULL, NULL), err);
    ck_ok(compose("m", "two", 0.625, "pair", 0.375, mean, NULL), err);
    ck_ok(read_model("m", &f), err);
    ck_assert_int_eq(model_file_combine(f)->kind, MODEL_MEAN);
    ck_assert_double_eq(model_file_combine(f)->weights[0], 0.625);
    has_inputs(f, (size_t[]){2, 2}, (bool[]){true, false}, 2);
    ck_assert_double_eq(model_file_member(f, 1)->weight, 4.5);
    ck_assert_double_eq(model_file_member(f, 3)->weight, 0.75);
    ck_ok(compose("l", "pair", -2, "two", 0.5, combine, NULL), err);
    ck_ok(read_model("l", &stacked), err);
    has_inputs(stacked, (size_t[]){2, 2}, (bool[]){false, true}, 2);
    ck_fails(compose("n", "two", 0.5, "a", 0.4, NULL, NULL), AS_E_INVAL, err,
             "/combine/weights: their sum is 0.9, expected 1");
    ck_fails(compose("n", "two", 1.5, "a", -0.5, NULL, NULL), AS_E_INVAL, err,
             "/combine/weights/1: found -0.5, expected more than 0");
    ck_fails(compose("n", "m", 0.5, "a", 0.5, NULL, NULL), AS_E_UNSUPPORTED, err,
             "m: a mean of several models cannot be a member");
    ck_assert_int_eq(json_object_set_new(combine, "sums", json_pack("[i]", 0)), 0);
    ck_fails(compose("n", "two", 1, "a", 1, combine, NULL), AS_E_INVAL, err,
             "/combine/sums: they follow from the sources");
}
END_TEST

/* ---- by a column ---- */

static json_t *by_column(const char *column, const char *first, const char *second)
{
    return json_pack("{s:s, s:s, s:[{s:s, s:i}, {s:s, s:i}], s:i}", "kind", "by", "column", column,
                     "buckets", "value", first, "input", 0, "value", second, "input", 1, "other",
                     1);
}

/* A row of the data set: x, and the index of c. */
static size_t input_of(const struct model_file *f, float x, float c)
{
    return model_combine_input(model_file_combine(f), (float[]){x, c});
}

START_TEST(an_ensemble_by_a_category)
{
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    JSON_AUTO combine = by_column("c", "v", "u");
    write_trial("a", 5, 6, 7);
    write_trial("b", 9, 6, 8);
    ck_ok(compose("pair", "a", 0.25, "b", 0.75, NULL, NULL), err);
    ck_ok(compose("m", "pair", 0, "b", 0, combine, NULL), err);
    ck_ok(read_model("m", &f), err);
    const struct model_combine *k = model_file_combine(f);
    ck_assert(k->kind == MODEL_BY && k->n_buckets == 2 && k->column == 1 && k->other == 1);
    has_inputs(f, (size_t[]){2, 1}, (bool[]){false, false}, 2);
    ck_assert_uint_eq(input_of(f, 5, 1), 0); /* v */
    ck_assert_uint_eq(input_of(f, 5, 0), 1);
    ck_assert_uint_eq(input_of(f, 5, 2), 1); /* another value, and none */
    ck_assert_uint_eq(input_of(f, 5, 3), 1);
    ck_fails(compose("n", "m", 0.5, "a", 0.5, NULL, NULL), AS_E_UNSUPPORTED, err,
             "m: an ensemble by a column cannot be a member");
}
END_TEST

/* Numbers are compared as a row has them, however they are written. */
START_TEST(an_ensemble_by_a_number)
{
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    AS_AUTO(model_file_freep) struct model_file *none = NULL;
    JSON_AUTO combine = by_column("x", "-2.50", "1e1");
    write_trial("a", 5, 6, 7);
    write_trial("b", 9, 6, 8);
    json_t *buckets = json_object_get(combine, "buckets");
    (void)json_array_append_new(buckets, json_pack("{s:s, s:i}", "value", "10.0", "input", 1));
    (void)json_array_append_new(buckets, json_pack("{s:s, s:i}", "value", "-0", "input", 0));
    ck_ok(compose("m", "a", 0, "b", 0, combine, NULL), err);
    ck_ok(read_model("m", &f), err);
    ck_assert_uint_eq(model_file_combine(f)->n_buckets, 3); /* 10.0 is 1e1 */
    ck_assert_uint_eq(input_of(f, -2.5F, 0), 0);
    ck_assert_uint_eq(input_of(f, 10, 0), 1);
    ck_assert_uint_eq(input_of(f, 0, 0), 0);
    ck_assert_uint_eq(input_of(f, NAN, 0), 1);
    ck_assert_uint_eq(input_of(f, 2.5F, 0), 1);
    (void)json_object_set_new(combine, "buckets", json_array());
    (void)json_object_set_new(combine, "other", json_integer(0));
    ck_ok(compose("n", "a", 0, "b", 0, combine, NULL), err); /* then all rows are others */
    ck_ok(read_model("n", &none), err);
    ck_assert_uint_eq(input_of(none, 10, 0), 0);
}
END_TEST

/* What can occur in no row is left out where that changes nothing, and refused elsewhere. */
START_TEST(values_that_no_row_has)
{
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    JSON_AUTO rare = by_column("c", "u", "rare");
    JSON_AUTO stray = by_column("c", "rare", "u");
    JSON_AUTO gap = by_column("c", "?", "u");
    JSON_AUTO twice = by_column("x", "1", "1.0");
    JSON_AUTO word = by_column("x", "one", "2");
    JSON_AUTO stranger = by_column("d", "u", "v");
    write_trial("a", 5, 6, 7);
    ck_ok(compose("m", "a", 0, "a", 0, rare, NULL), err);
    ck_ok(read_model("m", &f), err);
    ck_assert_uint_eq(model_file_combine(f)->n_buckets, 1);
    ck_fails(compose("n", "a", 0, "a", 0, stray, NULL), AS_E_INVAL, err,
             "/combine/buckets/0/value: found 'rare', expected a category of 'c'");
    ck_fails(compose("n", "a", 0, "a", 0, gap, NULL), AS_E_INVAL, err,
             "/combine/buckets/0/value: found '?', a missing value");
    ck_fails(compose("n", "a", 0, "a", 0, twice, NULL), AS_E_INVAL, err,
             "'1.0' are one value, expected each value once");
    ck_fails(compose("n", "a", 0, "a", 0, word, NULL), AS_E_INVAL, err,
             "/combine/buckets/0/value: found 'one', expected a number");
    ck_fails(compose("n", "a", 0, "a", 0, stranger, NULL), AS_E_INVAL, err,
             "/combine/column: found 'd', expected a column");
}
END_TEST

/* ---- damage ---- */

static as_status parse_copy(const char *bytes, size_t len, struct model_file **ret)
{
    char *copy = malloc(len ? len : 1);
    ck_assert_ptr_nonnull(copy);
    if (len)
        memcpy(copy, bytes, len);
    return model_file_parse(copy, len, ret, &err);
}

START_TEST(every_cut_and_every_changed_byte_is_found)
{
    AS_AUTO(as_freep) char *bytes = NULL;
    AS_AUTO(as_freep) char *path = in_dir("m");
    size_t len = 0;
    struct model_file *f = NULL;
    write_trial("a", 5, 6, 7);
    ck_ok(compose("m", "a", 0.5, "a", 0.5, NULL, NULL), err);
    ck_ok(file_read(path, 1 << 20, &bytes, &len, &err), err);
    for (size_t n = 0; n < len; n++)
        ck_assert_msg(parse_copy(bytes, n, &f) != AS_OK, "%zu of %zu bytes", n, len);
    for (size_t i = 0; i < len; i++) {
        bytes[i] = (char)(bytes[i] ^ 1);
        ck_assert_msg(parse_copy(bytes, len, &f) != AS_OK, "byte %zu of %zu changed", i, len);
        bytes[i] = (char)(bytes[i] ^ 1);
    }
    ck_ok(parse_copy(bytes, len, &f), err);
    model_file_free(f);
}
END_TEST

START_TEST(running_out_of_memory_is_an_error)
{
    AS_AUTO(as_freep) char *bytes = NULL;
    AS_AUTO(as_freep) char *path = in_dir("m");
    size_t len = 0;
    JSON_AUTO combine = by_column("c", "u", "v");
    write_trial("a", 5, 6, 7);
    ck_ok(compose("m", "a", 0, "a", 0, combine, NULL), err);
    ck_ok(file_read(path, 1 << 20, &bytes, &len, &err), err);
    as_status st = AS_E_NOMEM;
    for (size_t nth = 1; st != AS_OK; nth++) {
        struct model_file *f = NULL;
        as_mem_fail_nth(nth);
        st = parse_copy(bytes, len, &f);
        as_mem_fail_nth(0);
        ck_assert_msg(st == AS_OK || st == AS_E_NOMEM, "allocation %zu: %s", nth, err.msg);
        model_file_free(f);
        ck_assert_uint_lt(nth, 10000);
    }
}
END_TEST

/* ---- manifests ---- */

static const char *const tensor_names[] = {"members/0/odd", "members/0/z"};

static as_status read_manifest(const char *version, const char *manifest, const char *tensor)
{
    const char *names[] = {tensor_names[0], tensor};
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    JSON_AUTO meta = json_pack("{s:s, s:s, s:s}", "format", "assay-model", "version", version,
                               "model", manifest);
    write_file("x", meta, names, 2, 1);
    return read_model("x", &f);
}

/* The manifest of a model of one member, with one of its fields replaced or removed (NULL). */
static char *manifest_with(const char *field, json_t *value)
{
    JSON_AUTO train = json_pack("{s:s, s:i}", "dataset", "d", "epochs", 1);
    JSON_AUTO dataset = NULL;
    JSON_AUTO record = NULL;
    char text[600];
    (void)snprintf(text, sizeof text, DATASET, 6);
    ck_ok(json_parse(text, strlen(text), &dataset, &err), err);
    ck_ok(json_parse(RECORD, strlen(RECORD), &record, &err), err);
    JSON_AUTO m =
        json_pack("{s:O, s:{s:s}, s:[{s:f, s:O, s:O}]}", "dataset", dataset, "combine", "kind",
                  "mean", "members", "weight", 1.0, "train", train, "preprocessing", record);
    if (value)
        ck_assert_int_eq(json_object_set_new(m, field, value), 0);
    else if (field)
        ck_assert_int_eq(json_object_del(m, field), 0);
    char *out = json_format(m);
    ck_assert_ptr_nonnull(out);
    return out;
}

static void refuses(as_status status, const char *field, json_t *value, const char *message)
{
    AS_AUTO(as_freep) char *text = manifest_with(field, value);
    ck_fails(read_manifest("1", text, tensor_names[1]), status, err, message);
}

/* The same of one that is stacked of two inputs, with another `combine` or other members. */
static as_status read_stacked(json_t *combine, const char *const *members)
{
    AS_AUTO(as_freep) char *text = manifest_with(NULL, NULL);
    JSON_AUTO m = NULL;
    JSON_AUTO list = json_array();
    ck_ok(json_parse(text, strlen(text), &m, &err), err);
    for (; *members; members++) {
        JSON_AUTO more = NULL;
        JSON_AUTO copy = json_copy(json_array_get(json_object_get(m, "members"), 0));
        ck_ok(json_parse(*members, strlen(*members), &more, &err), err);
        ck_assert(json_object_update(copy, more) == 0 && json_array_append(list, copy) == 0);
    }
    ck_assert(json_object_set(m, "members", list) == 0 &&
              json_object_set_new(m, "combine", combine) == 0);
    AS_AUTO(as_freep) char *out = json_format(m);
    ck_assert_ptr_nonnull(out);
    return read_manifest("1", out, tensor_names[1]);
}

static json_t *stacked(const char *field, json_t *value)
{
    json_t *j = json_pack("{s:s, s:s, s:[f, f], s:[f, f]}", "kind", "linear", "inputs", "log",
                          "weights", 2.0, -1.0, "biases", 0.0, 1.0);
    if (value)
        ck_assert_int_eq(json_object_set_new(j, field, value), 0);
    else if (field)
        ck_assert_int_eq(json_object_del(j, field), 0);
    return j;
}

START_TEST(stacked_manifests_that_are_refused)
{
    static const char *const good[] = {"{\"input\":0,\"weight\":0.5}",
                                       "{\"input\":0,\"weight\":0.5}", "{\"input\":1}", NULL};
    ck_ok(read_stacked(stacked(NULL, NULL), good), err);
    const struct {
        const char *field;
        json_t *value;
        const char *message;
    } bad[] = {
        {"inputs", NULL, "/combine/inputs"},
        {"inputs", json_string("outputs"),
         "/combine/inputs: found 'outputs', expected 'log' for a classification"},
        {"inputs", json_string("exp"), "/combine/inputs"},
        {"biases", NULL, "/combine/biases"},
        {"biases", json_pack("[f]", 1.0), "/combine/biases: found 1, expected 2"},
        {"biases", json_pack("[f, s]", 1.0, "2"), "/combine/biases/1: expected a number"},
        {"biases", json_pack("[f, f]", 1e39, 0.0), "/combine/biases/0: expected a number"},
        {"weights", NULL, "/combine/weights"},
        {"weights", json_array(), "/combine/weights: found 0, expected 1 to 1024"},
        {"weights", json_pack("[f, f]", 1.0, 1e31), "/combine/weights/1: expected a number"},
        {"weights", json_pack("[f, f]", 1.0, 0.0), "/combine/weights/1: found 0"},
        {"weights", json_pack("[f, n]", 1.0), "/combine/weights/1: expected a number"},
        {"weights", json_pack("[f]", 1.0), "/members/2/input: found 1"},
        {"weights", json_pack("[f, f, f]", 1.0, 1.0, 1.0), "they are of 2 inputs, /combine has 3"},
        {"penalty", json_real(1), "penalty"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(bad); i++)
        ck_fails(read_stacked(stacked(bad[i].field, bad[i].value), good), AS_E_INVAL, err,
                 bad[i].message);
    static const char *const members[][4] = {{"{}", NULL},
                                             {"{\"input\":0}", "{\"input\":0}", NULL},
                                             {"{\"input\":1}", "{\"input\":0}", NULL},
                                             {"{\"input\":0}", "{\"input\":-1}", NULL},
                                             {"{\"input\":0}", "{\"input\":1,\"weight\":0.5}"}};
    static const char *const messages[] = {"/members/0/input", "input 0 is 2, expected 1",
                                           "/members/0/input: found 1, expected 0",
                                           "/members/1/input", "input 1 is 0.5, expected 1"};
    for (size_t i = 0; i < AS_ARRAY_LEN(messages); i++)
        ck_fails(read_stacked(stacked(NULL, NULL), members[i]), AS_E_INVAL, err, messages[i]);
    static const char *const of_mean[] = {"{\"input\":0}", NULL};
    ck_fails(read_stacked(json_pack("{s:s}", "kind", "mean"), of_mean), AS_E_INVAL, err, "input");
}
END_TEST

START_TEST(manifests_by_a_column_that_are_refused)
{
    static const char *const two[] = {"{\"input\":0}", "{\"input\":1}", NULL};
    ck_ok(read_stacked(by_column("c", "u", "v"), two), err);
    const struct {
        const char *field;
        json_t *value;
        const char *message;
    } bad[] = {
        {"column", NULL, "/combine/column"},
        {"column", json_integer(1), "/combine/column"},
        {"other", NULL, "/combine/other"},
        {"other", json_integer(2), "/combine/other: found 2, expected a whole number from 0 to 1"},
        {"other", json_integer(-1), "/combine/other"},
        {"buckets", NULL, "/combine/buckets"},
        {"buckets", json_pack("[n]"), "/combine/buckets/0"},
        {"buckets", json_pack("[{s:s}]", "value", "u"), "/combine/buckets/0/input"},
        {"buckets", json_pack("[{s:i}]", "input", 0), "/combine/buckets/0/value"},
        {"buckets", json_pack("[{s:s, s:i}]", "value", "u", "input", 2),
         "/combine/buckets/0/input: found 2, expected a whole number from 0 to 1"},
        {"buckets", json_pack("[{s:s, s:i, s:i}]", "value", "u", "input", 1, "n", 1), "n"},
        {"buckets",
         json_pack("[{s:s, s:i}, {s:s, s:i}]", "value", "u", "input", 0, "value", "u", "input", 0),
         "'u' and 'u' are one value"},
        {"biases", json_pack("[f, f]", 0.0, 0.0), "biases"},
        {"sums", json_pack("[i]", 2), "/combine/sums/0: expected the index of an input, 0 to 1"},
        {"sums", json_pack("[i, i]", 1, 0), "/combine/sums/1"},
        {"sums", json_pack("[i, i]", 1, 1), "/combine/sums/1"},
        {"sums", json_pack("[f]", 1.0), "/combine/sums/0"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(bad); i++) {
        json_t *j = by_column("c", "u", "v");
        if (bad[i].value)
            ck_assert_int_eq(json_object_set_new(j, bad[i].field, bad[i].value), 0);
        else
            ck_assert_int_eq(json_object_del(j, bad[i].field), 0);
        ck_fails(read_stacked(j, two), AS_E_INVAL, err, bad[i].message);
    }
    static const char *const members[][3] = {{"{}", "{}", NULL},
                                             {"{\"input\":0}", "{\"input\":2}", NULL},
                                             {"{\"input\":1}", "{\"input\":1}", NULL},
                                             {"{\"input\":0}", "{\"input\":0}", NULL}};
    static const char *const messages[] = {
        "/combine/other: found 1, expected a whole number from 0 to 0",
        "/members/1/input: found 2, expected a whole number from 0 to 1",
        "/members/0/input: found 1, expected 0",
        "/combine/other: found 1, expected a whole number from 0 to 0"};
    for (size_t i = 0; i < AS_ARRAY_LEN(messages); i++)
        ck_fails(read_stacked(by_column("c", "u", "v"), members[i]), AS_E_INVAL, err, messages[i]);
    JSON_AUTO many = json_array();
    for (size_t i = 0; i <= MODEL_FILE_MAX_BUCKETS; i++)
        ck_assert_int_eq(json_array_append_new(many, json_object()), 0);
    json_t *all = by_column("c", "u", "v");
    ck_assert_int_eq(json_object_set(all, "buckets", many), 0);
    ck_fails(read_stacked(all, two), AS_E_TOO_LARGE, err, "found 1001, at most 1000");
}
END_TEST

START_TEST(manifests_that_are_refused)
{
    AS_AUTO(as_freep) char *good = manifest_with(NULL, NULL);
    ck_ok(read_manifest("1", good, tensor_names[1]), err);
    ck_fails(read_manifest("2", good, tensor_names[1]), AS_E_UNSUPPORTED, err,
             "version '2', this program knows version 1");
    ck_assert(strncmp(err.msg, dir, strlen(dir)) == 0);
    static const char *const strangers[] = {
        "members/1/z", "members/00/z", "members//z", "z", "members/18446744073709551616/z",
        "members/ 0/z"};
    for (size_t i = 0; i < AS_ARRAY_LEN(strangers); i++)
        ck_fails(read_manifest("1", good, strangers[i]), AS_E_INVAL, err, strangers[i]);
    ck_fails(read_manifest("1", "{", tensor_names[1]), AS_E_INVAL, err, "'model'");
    refuses(AS_E_UNSUPPORTED, "combine", json_pack("{s:s}", "kind", "vote"), "found 'vote'");
    refuses(AS_E_INVAL, "combine", json_pack("{s:s, s:i}", "kind", "mean", "power", 2), "power");
    refuses(AS_E_INVAL, "members", json_array(), "found none");
    refuses(AS_E_INVAL, "members", json_pack("[{s:f}]", "weight", 1.0), "/members/0");
    refuses(AS_E_INVAL, "surprise", json_true(), "surprise");
    refuses(AS_E_INVAL, "dataset", NULL, "dataset");
    refuses(AS_E_INVAL, "metrics", json_true(), "metrics");
}
END_TEST

static void refuses_document(const char *fields, const char *message)
{
    JSON_AUTO record = NULL;
    JSON_AUTO train = NULL;
    char text[200];
    (void)snprintf(text, sizeof text, "{\"dataset\":\"d\",\"epochs\":1,%s}", fields);
    ck_ok(json_parse(text, strlen(text), &train, &err), err);
    ck_ok(json_parse(RECORD, strlen(RECORD), &record, &err), err);
    refuses(AS_E_INVAL, "members",
            json_pack("[{s:f, s:O, s:O}]", "weight", 1.0, "train", train, "preprocessing", record),
            message);
}

/* What predicts takes the document of a model that was read as one that suits its data set. */
START_TEST(documents_for_another_task_are_refused)
{
    refuses_document(
        "\"loss\":\"mse\"",
        "/members/0/train/loss: found mse, expected cross_entropy or bce: data set 'd' "
        "is for classification");
    refuses_document("\"loss\":\"huber\",\"model\":{\"kind\":\"boosted_trees\"}",
                     "/members/0/train/loss: found huber");
}
END_TEST

START_TEST(weights_must_add_up)
{
    write_trial("a", 5, 6, 7);
    ck_fails(compose("m", "a", 0.5, "a", 0.4, NULL, NULL), AS_E_INVAL, err,
             "the sum of the weights is 0.9, expected 1");
    ck_fails(compose("m", "a", 0, "a", 1, NULL, NULL), AS_E_INVAL, err, "/members/0/weight");
    ck_fails(compose("m", "a", -1, "a", 2, NULL, NULL), AS_E_INVAL, err, "/members/0/weight");
    AS_AUTO(as_freep) char *path = in_dir("m");
    char *bytes = NULL;
    ck_fails(file_read(path, 10, &bytes, NULL, &err), AS_E_NOT_FOUND, err,
             "m"); /* nothing written */
}
END_TEST

START_TEST(sources_that_are_refused)
{
    JSON_AUTO vote = json_pack("{s:s}", "kind", "vote");
    JSON_AUTO about = json_pack("{s:{}}", "members");
    JSON_AUTO foreign = json_pack("{s:s}", "format", "pt");
    write_trial("a", 5, 6, 7);
    write_trial("b", 5, 8, 7);
    write_file("f", foreign, tensor_names, 2, 1);
    ck_fails(compose("m", "a", 0.5, "b", 0.5, NULL, NULL), AS_E_INVAL, err, "different data sets");
    ck_fails(compose("m", "f", 1, NULL, 0, NULL, NULL), AS_E_INVAL, err, "found the format 'pt'");
    ck_fails(compose("m", "none", 1, NULL, 0, NULL, NULL), AS_E_NOT_FOUND, err, "none");
    ck_fails(compose("m", "a", 1, NULL, 0, vote, NULL), AS_E_UNSUPPORTED, err, "found 'vote'");
    ck_fails(compose("m", "a", 1, NULL, 0, NULL, about), AS_E_INVAL, err, "/members");
    ck_fails(compose("none/m", "a", 1, NULL, 0, NULL, NULL), AS_E_NOT_FOUND, err, "none/m");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("model_file");
    TCase *t = tcase_create("model_file");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_trials_file_is_a_model_of_one_member);
    tcase_add_test(t, members_keep_their_own);
    tcase_add_test(t, numbers_are_aligned);
    tcase_add_test(t, equal_content_gives_equal_bytes);
    tcase_add_test(t, a_model_may_be_a_source);
    tcase_add_test(t, a_stacked_ensemble_has_inputs);
    tcase_add_test(t, a_sum_grows);
    tcase_add_test(t, a_sum_may_be_an_input);
    tcase_add_test(t, an_ensemble_by_a_category);
    tcase_add_test(t, an_ensemble_by_a_number);
    tcase_add_test(t, values_that_no_row_has);
    tcase_add_test(t, stacked_manifests_that_are_refused);
    tcase_add_test(t, manifests_by_a_column_that_are_refused);
    tcase_add_test(t, every_cut_and_every_changed_byte_is_found);
    tcase_add_test(t, running_out_of_memory_is_an_error);
    tcase_add_test(t, manifests_that_are_refused);
    tcase_add_test(t, documents_for_another_task_are_refused);
    tcase_add_test(t, weights_must_add_up);
    tcase_add_test(t, sources_that_are_refused);
    suite_add_tcase(s, t);
    return s;
}
