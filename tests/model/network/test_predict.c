/* Predicting without the trainer: assay-train, in a process of its own, trains a model and records
 * its predictions of the rows held out; here model/network and data/preprocess alone read the
 * stored model, encode the same rows by the stored record, and must get the recorded predictions
 * bit for bit. This program does not link the trainer. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "data/dataset_json.h"
#include "data/dataset_read.h"
#include "base/json.h"
#include "base/rng.h"
#include "data/formats/npy.h"
#include "data/formats/safetensors.h"
#include "data/preprocess/record.h"
#include "data/preprocess/train_data.h"
#include "model/network/network.h"
#include "model/plan/plan.h"
#include "model/network/outputs.h"
#include "tests/support/check_main.h"
#include "tests/support/child.h"

static struct as_err err;
static struct child child;
static char last_report[512];

static void setup(void)
{
    child_setup(&child);
}

static void teardown(void)
{
    child_teardown(&child);
}

static char *in_dir(const char *name)
{
    char *path = file_join(child.dir, name);
    ck_assert_ptr_nonnull(path);
    return path;
}

/* ---- training ---- */

/* Train on the files with the fields of `train` besides its data set. */
static void train(const struct dataset_paths *paths, dataset_format format, const char *target,
                  dataset_task task, const char *fields)
{
    struct dataset_info info = {0};
    ck_ok(dataset_inspect(paths, format, target, task, NULL, &info, &err), err);
    JSON_AUTO dataset = dataset_info_to_json(&info);
    JSON_AUTO places = json_object();
    if (paths->table)
        ck_assert_int_eq(json_object_set_new(places, "table", json_string(paths->table)), 0);
    if (paths->features)
        ck_assert_int_eq(json_object_set_new(places, "features", json_string(paths->features)), 0);
    if (paths->targets)
        ck_assert_int_eq(json_object_set_new(places, "targets", json_string(paths->targets)), 0);
    ck_assert_int_eq(json_object_set(dataset, "paths", places), 0);
    AS_AUTO(as_freep) char *text = json_format(dataset);
    AS_AUTO(str_done) struct str job = {0};
    str_printf(&job, "{\"train\":{\"dataset\":\"d\",%s},\"dataset\":%s}", fields, text);
    child_write(&child, "job.json", job.s, job.len);
    child_start(&child, "11", NULL);
    while (child_line(&child, last_report, sizeof last_report))
        ;
    ck_assert_int_eq(child_wait(&child), 0);
    dataset_info_done(&info);
}

/* ---- the stored model ---- */

struct stored {
    struct safetensors *file;
    struct train_spec spec;
    struct dataset_info info;
    struct preprocess fit;
    struct net_plan *plan;
};

static json_t *metadata(const struct safetensors *file, const char *key)
{
    json_t *doc = NULL;
    const char *text = safetensors_metadata(file, key);
    ck_assert_msg(text != NULL, "no %s", key);
    ck_ok(json_parse(text, strlen(text), &doc, &err), err);
    return doc;
}

static void stored_read(struct stored *s)
{
    *s = (struct stored){0};
    AS_AUTO(as_freep) char *path = in_dir("artifacts/model.safetensors");
    ck_ok(safetensors_read(path, 1 << 26, &s->file, &err), err);
    JSON_AUTO spec = metadata(s->file, "train");
    JSON_AUTO info = metadata(s->file, "dataset");
    JSON_AUTO record = metadata(s->file, "preprocessing");
    ck_ok(train_spec_parse(spec, "/train", &s->spec, &err), err);
    ck_ok(dataset_info_from_json(info, "/dataset", &s->info, &err), err);
    ck_ok(preprocess_from_json(record, "/preprocessing", &s->info, &s->fit, &err), err);
    struct net_data data = net_data_of(&s->info);
    ck_ok(net_plan_create(&s->spec, &data, "/train", &s->plan, &err), err);
}

static void stored_done(struct stored *s)
{
    safetensors_free(s->file);
    train_spec_done(&s->spec);
    dataset_info_done(&s->info);
    preprocess_done(&s->fit);
    net_plan_free(s->plan);
}

/* The file's values of a list of tensors, at their offsets. */
static float *values_of(const struct stored *s, const struct net_tensor *tensors, size_t n,
                        size_t count)
{
    float *values = as_calloc(count, sizeof *values);
    ck_assert_ptr_nonnull(values);
    for (size_t i = 0; i < n; i++)
        ck_ok(safetensors_copy(s->file, tensors[i].name, SAFETENSORS_F32, tensors[i].count,
                               values + tensors[i].offset, &err),
              err);
    return values;
}

static struct network *network_of(const struct stored *s, struct backend *be)
{
    const struct net_plan *p = s->plan;
    struct network *net = NULL;
    AS_AUTO(as_freep) float *params = values_of(s, p->tensors, p->n_tensors, p->n_params);
    AS_AUTO(as_freep) float *state = values_of(s, p->states, p->n_states, p->n_state);
    ck_ok(network_create(be, p, 1, p->buffer_rows, &net, &err), err);
    ck_ok(network_write(net, network_params(net), 0, p, params, &err), err);
    ck_ok(network_write_state(net, 0, state, &err), err);
    return net;
}

/* ---- the rows held out ---- */

struct rows {
    size_t n, n_x, n_codes;
    float *x;       /* [n, n_x] */
    int32_t *codes; /* [n, n_codes]; of text the tokens of windows */
    int32_t *next;  /* of text [n, n_codes]: the tokens to predict */
};

static void rows_done(struct rows *r)
{
    free(r->x);
    free(r->codes);
    free(r->next);
}

/* The split is a function of its seed and the number of rows: which rows, in the order of the
 * recorded predictions. */
static void split(const struct stored *s, const struct dataset_paths *paths, struct train_data *ret)
{
    struct dataset set;
    const struct preprocess_opts opts = {
        .split_seed = (uint64_t)s->spec.validation_seed,
        .n_validation = train_spec_validation_rows(&s->spec, s->info.n_rows),
        .context = (size_t)s->spec.model.context,
    };
    ck_ok(dataset_load(paths, &s->info, &set, &err), err);
    ck_ok(train_data_prepare(&set, &s->info, &opts, ret, &err), err);
}

/* Take the rows held out of the whole set, encoded by the stored record. */
static void held_rows(const struct stored *s, const struct dataset_paths *paths, struct rows *ret)
{
    AS_AUTO(train_data_done) struct train_data d = {0};
    AS_AUTO(dataset_done) struct dataset set = {0};
    AS_AUTO(as_freep) int32_t *codes = NULL;
    split(s, paths, &d);
    ck_ok(dataset_load(paths, &s->info, &set, &err), err);
    ck_ok(preprocess_apply(&s->fit, &s->info, &set, &codes, &err), err);
    *ret = (struct rows){.n = d.n_val, .n_x = set.n_features, .n_codes = s->fit.n_codes};
    ret->x = as_calloc(ret->n * ret->n_x, sizeof *ret->x);
    ret->codes = as_calloc(ret->n * ret->n_codes, sizeof *ret->codes);
    ck_assert(ret->n > 0 && ret->x && ret->codes);
    for (size_t i = 0; i < ret->n; i++) {
        size_t row = (size_t)d.val_rows[i];
        memcpy(ret->x + i * ret->n_x, set.x + row * ret->n_x, ret->n_x * sizeof *ret->x);
        if (codes)
            memcpy(ret->codes + i * ret->n_codes, codes + row * ret->n_codes,
                   ret->n_codes * sizeof *codes);
    }
}

/* Windows of text and the token that follows each of theirs. */
static void held_windows(const struct stored *s, const struct dataset_paths *paths,
                         struct rows *ret)
{
    AS_AUTO(train_data_done) struct train_data d = {0};
    split(s, paths, &d);
    *ret = (struct rows){.n = d.n_val, .n_codes = d.context};
    ret->codes = as_calloc(ret->n * d.context, sizeof *ret->codes);
    ret->next = as_calloc(ret->n * d.context, sizeof *ret->next);
    ck_assert(ret->n > 0 && ret->codes && ret->next);
    for (size_t i = 0; i < ret->n; i++) {
        const int32_t *tokens = d.set.tokens + d.val_rows[i];
        memcpy(ret->codes + i * d.context, tokens, d.context * sizeof *tokens);
        memcpy(ret->next + i * d.context, tokens + 1, d.context * sizeof *tokens);
    }
}

/* ---- predicting ---- */

static struct tensor put(struct backend *be, buf_kind kind, const void *values, size_t n,
                         struct buf **ret)
{
    if (n == 0)
        return tensor_none();
    ck_ok(buf_create(be, kind, n, ret, &err), err);
    ck_ok(buf_upload(*ret, 0, values, n, &err), err);
    return tensor_at(*ret, 0, 0);
}

/* Rows [at, at + n) through the network: outputs [n * tokens, outputs]. */
static void forward(struct network *net, struct backend *be, const struct stored *s,
                    const struct rows *rows, size_t at, size_t n, float *ret)
{
    struct buf *x = NULL, *codes = NULL;
    struct network_pass pass = {.rows = n};
    pass.x = put(be, BUF_F32, rows->x ? rows->x + at * rows->n_x : NULL, n * rows->n_x, &x);
    pass.codes = put(be, BUF_I32, rows->codes + at * rows->n_codes, n * rows->n_codes, &codes);
    ck_ok(network_forward(net, be, 0, 1, &pass, &err), err);
    struct tensor out = network_outputs(net, 0);
    ck_ok(buf_download(out.buf, out.offset, ret, n * s->plan->tokens * s->plan->outputs, &err),
          err);
    buf_free(x);
    buf_free(codes);
}

/* Outputs of all rows [n * tokens, outputs], in passes of as many rows as the trainer's; room for
 * `columns` of each. */
static float *outputs_of(const struct stored *s, const struct rows *rows, size_t columns)
{
    struct backend *be = NULL;
    const struct backend_opts opts = {.threads = 1};
    size_t most = s->plan->buffer_rows, row = s->plan->tokens * s->plan->outputs;
    float *out = as_calloc(rows->n * s->plan->tokens * columns, sizeof *out);
    ck_assert_ptr_nonnull(out);
    ck_ok(backend_open("cpu", &opts, &be, &err), err);
    struct network *net = network_of(s, be);
    for (size_t at = 0; at < rows->n; at += most) {
        size_t n = rows->n - at < most ? rows->n - at : most;
        forward(net, be, s, rows, at, n, out + at * row);
    }
    network_free(net);
    backend_free(be);
    return out;
}

/* Predictions [n, columns]: probabilities, or numbers in the targets' own unit. */
static float *predict(const struct stored *s, const struct rows *rows, size_t columns)
{
    float *v = outputs_of(s, rows, columns);
    outputs_to_probabilities(v, rows->n, s->plan->outputs, train_spec_loss(&s->spec, s->info.task));
    if (s->info.task == DATASET_REGRESSION)
        outputs_to_own_unit(v, rows->n, &s->fit);
    if (s->plan->outputs < columns)
        outputs_to_both_classes(v, rows->n);
    return v;
}

/* The stored model predicts what the trainer recorded. */
static void predicts_as_recorded(const struct dataset_paths *paths, size_t columns)
{
    AS_AUTO(stored_done) struct stored s = {0};
    AS_AUTO(rows_done) struct rows rows = {0};
    AS_AUTO(npy_freep) struct npy *npy = NULL;
    AS_AUTO(as_freep) char *path = in_dir("artifacts/predictions.npy");
    stored_read(&s);
    held_rows(&s, paths, &rows);
    ck_ok(npy_open(path, &npy, &err), err);
    const struct npy_header *h = npy_header_of(npy);
    ck_assert(h->type == NPY_F4 && h->n_dims == 2);
    ck_assert_uint_eq(h->shape[0], rows.n);
    ck_assert_uint_eq(h->shape[1], columns);
    AS_AUTO(as_freep) double *recorded = as_calloc(h->n_values, sizeof *recorded);
    ck_assert_ptr_nonnull(recorded);
    ck_ok(npy_read(npy, h->n_values, recorded, &err), err);
    AS_AUTO(as_freep) float *predicted = predict(&s, &rows, columns);
    for (size_t i = 0; i < h->n_values; i++) {
        float expected = (float)recorded[i]; /* exact: it was a float32 */
        ck_assert_msg(memcmp(&expected, &predicted[i], sizeof expected) == 0,
                      "row %zu column %zu: %.9g, recorded %.9g", i / columns, i % columns,
                      (double)predicted[i], (double)expected);
    }
}

/* ---- data ---- */

/* A table of two numbers, one of them sometimes missing, and a category, with 3 classes, 2 classes
 * or a number to predict. */
static void write_table(size_t rows, int classes)
{
    static const char *const colours[] = {"blue", "green", "red"};
    static const char *const names[] = {"high", "low", "middle"};
    AS_AUTO(str_done) struct str b = {0};
    struct rng r;
    rng_init(&r, 1, 5);
    str_puts(&b, "size,weight,colour,y\n");
    for (size_t i = 0; i < rows; i++) {
        double x = rng_uniform(&r), w = 100 * rng_uniform(&r);
        size_t c = (size_t)rng_below(&r, 3);
        double y = 3 * x + 0.05 * w + 2 * (double)c + rng_uniform(&r);
        if (rng_below(&r, 8) == 0)
            str_printf(&b, ",%.4f,%s,", w, colours[c]);
        else
            str_printf(&b, "%.4f,%.4f,%s,", x, w, colours[c]);
        if (classes == 0)
            str_printf(&b, "%.4f\n", 1000 + 50 * y);
        else
            str_printf(&b, "%s\n", names[y < 5 ? 1 : y > 8 && classes == 3 ? 0 : 2]);
    }
    child_write(&child, "t.csv", b.s, b.len);
}

static void table_case(int classes, const char *fields)
{
    write_table(211, classes);
    AS_AUTO(as_freep) char *path = in_dir("t.csv");
    const struct dataset_paths paths = {.table = path};
    train(&paths, DATASET_CSV, "y", classes ? DATASET_CLASSIFICATION : DATASET_REGRESSION, fields);
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
    table_case(2, "\"epochs\":3,\"loss\":\"bce\",\"model\":{\"layers\":[9],\"embedding\":3}");
}
END_TEST

START_TEST(regression)
{
    table_case(0, "\"epochs\":4,\"batch_size\":8,\"model\":{\"layers\":[10]}");
}
END_TEST

START_TEST(transformed_targets)
{
    static const char *const transforms[] = {"log", "log1p", "quantile"};
    for (size_t i = 0; i < AS_ARRAY_LEN(transforms); i++) {
        char fields[128];
        (void)snprintf(fields, sizeof fields,
                       "\"epochs\":3,\"batch_size\":16,\"model\":{\"layers\":[9]},\"target\":{"
                       "\"transform\":\"%s\"}",
                       transforms[i]);
        table_case(0, fields);
    }
}
END_TEST

START_TEST(not_standardised)
{
    table_case(0, "\"epochs\":2,\"standardize\":false,\"model\":{\"kind\":\"linear\"},"
                  "\"optimizer\":{\"lr\":0.0001}");
}
END_TEST

/* Dates and texts that are sometimes missing, beside a category; other separators and decimal signs. */
START_TEST(dates_and_texts)
{
    static const char *const words[] = {"good", "bad", "not", "very", "tea", "coffee"};
    AS_AUTO(str_done) struct str b = {0};
    struct rng r;
    rng_init(&r, 1, 8);
    str_puts(&b, "when;note;colour;y\n");
    for (size_t i = 0; i < 150; i++) {
        unsigned day = (unsigned)rng_below(&r, 28) + 1, month = (unsigned)rng_below(&r, 12) + 1;
        size_t word[4];
        if (rng_below(&r, 9))
            str_printf(&b, "%u.%u.2024 %02u:30", day, month, (unsigned)rng_below(&r, 24));
        for (size_t k = 0; k < 4; k++)
            word[k] = (size_t)rng_below(&r, 6);
        str_puts(&b, ";");
        if (rng_below(&r, 9))
            str_printf(&b, "\"%s %s, %s %s %zu\"", words[word[0]], words[word[1]], words[word[2]],
                       words[word[3]], i);
        str_printf(&b, ";%s;%zu,%02u\n", i % 3 ? "red" : "blue", month + word[0], day);
    }
    child_write(&child, "t.csv", b.s, b.len);
    AS_AUTO(as_freep) char *path = in_dir("t.csv");
    const struct dataset_paths paths = {.table = path};
    train(&paths, DATASET_CSV, "y", DATASET_REGRESSION,
          "\"epochs\":3,\"batch_size\":16,\"model\":{\"layers\":[9]}");
    predicts_as_recorded(&paths, 1);
    AS_AUTO(stored_done) struct stored s = {0};
    stored_read(&s);
    ck_assert_uint_eq(dataset_inputs(&s.info), 7 + 1 + DATASET_BUCKETS + 3);
}
END_TEST

/* Pictures [n, 8, 6, 1] with a bright half, as bytes or as fractions. */
static void write_images(const char *x_path, const char *y_path, size_t n, double scale)
{
    const size_t shape[] = {n, 8, 6, 1};
    AS_AUTO(as_freep) float *x = as_calloc(n * 48, sizeof *x);
    AS_AUTO(as_freep) int64_t *y = as_calloc(n, sizeof *y);
    struct rng r;
    rng_init(&r, 1, 6);
    for (size_t i = 0; i < n; i++) {
        y[i] = (int64_t)rng_below(&r, 2);
        for (size_t p = 0; p < 48; p++)
            x[i * 48 + p] =
                (float)(scale * (double)(rng_below(&r, 150) + (p / 24 == (size_t)y[i] ? 90 : 0)));
    }
    ck_ok(npy_write(x_path, NPY_F4, shape, 4, x, &err), err);
    ck_ok(npy_write(y_path, NPY_I8, &n, 1, y, &err), err);
}

static void image_case(double scale)
{
    AS_AUTO(as_freep) char *x = in_dir("x.npy");
    AS_AUTO(as_freep) char *y = in_dir("y.npy");
    const struct dataset_paths paths = {.features = x, .targets = y};
    write_images(x, y, 120, scale);
    train(&paths, DATASET_NPY, NULL, DATASET_CLASSIFICATION,
          "\"epochs\":2,\"batch_size\":16,\"augment\":{\"flip\":0.5},\"model\":{\"kind\":\"cnn\","
          "\"layers\":[{\"conv\":4,\"norm\":\"batch\"},{\"pool\":\"max\",\"size\":2},{\"residual\":"
          "[{\"conv\":4}]},{\"pool\":\"global\"},{\"dense\":5}]}");
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

/* Text has no recorded predictions: the share of tokens that were predicted right is a quotient of
 * counts, so it must be the reported one exactly. */
static double accuracy(const struct stored *s, const struct rows *rows)
{
    size_t outputs = s->plan->outputs, places = rows->n * rows->n_codes, right = 0;
    AS_AUTO(as_freep) float *z = outputs_of(s, rows, outputs);
    for (size_t i = 0; i < places; i++) {
        size_t best = 0;
        for (size_t o = 1; o < outputs; o++)
            best = z[i * outputs + o] > z[i * outputs + best] ? o : best;
        right += best == (size_t)rows->next[i];
    }
    return (double)right / (double)places;
}

START_TEST(transformer)
{
    AS_AUTO(stored_done) struct stored s = {0};
    AS_AUTO(rows_done) struct rows rows = {0};
    static char text[3000];
    struct rng r;
    rng_init(&r, 1, 7);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = "the quick brown fox. "[i % 21];
    for (size_t i = 0; i < 100; i++)
        text[rng_below(&r, sizeof text)] = '?';
    child_write(&child, "t.txt", text, sizeof text);
    AS_AUTO(as_freep) char *path = in_dir("t.txt");
    const struct dataset_paths paths = {.table = path};
    train(&paths, DATASET_TEXT, NULL, DATASET_TASK_AUTO,
          "\"epochs\":4,\"batch_size\":8,\"optimizer\":{\"lr\":0.01},\"model\":{"
          "\"kind\":\"transformer\",\"depth\":2,\"width\":16,\"heads\":2,\"context\":12}");
    stored_read(&s);
    held_windows(&s, &paths, &rows);
    JSON_AUTO report = NULL;
    double recorded = 0;
    ck_ok(json_parse(last_report, strlen(last_report), &report, &err), err);
    ck_assert(json_number_get(json_object_get(report, "val_accuracy"), &recorded));
    ck_assert_double_gt(recorded, 0.2);
    ck_assert_double_eq(accuracy(&s, &rows), recorded);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("predict");
    TCase *t = tcase_create("predict");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, categories_and_missing_values);
    tcase_add_test(t, embedded_categories_of_two_classes);
    tcase_add_test(t, regression);
    tcase_add_test(t, transformed_targets);
    tcase_add_test(t, not_standardised);
    tcase_add_test(t, dates_and_texts);
    tcase_add_test(t, images_of_bytes);
    tcase_add_test(t, images_of_fractions);
    tcase_add_test(t, transformer);
    suite_add_tcase(s, t);
    return s;
}
