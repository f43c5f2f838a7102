/* Models of every kind as ONNX files; ensembles are in test_onnx_ensembles.c. Each is trained by
 * assay-train, exported, checked by the onnx package, and run by ONNX Runtime on rows as their user
 * has them: the outputs are those of model/predict within 1e-5 of the largest number of a row, or
 * of the deviation of a target. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/str.h"
#include "data/formats/npy.h"
#include "data/preprocess/target_unit.h"
#include "model/onnx/graph.h"
#include "model/onnx/onnx_write.h"
#include "model/onnx/predictions.h"
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

/* ---- tables ---- */

static void table_case(int classes, const char *fields)
{
    onnx_table_write(&child, 211, classes);
    onnx_table_train(&child, classes, fields, "11", "model");
    onnx_case_compare(&child, "model", ROWS);
}

START_TEST(categories_and_missing_values)
{
    table_case(3, "\"epochs\":4,\"batch_size\":16,\"model\":{\"layers\":[12,7],\"norm\":\"batch\","
                  "\"dropout\":0.1},\"optimizer\":{\"lr\":0.01,\"ema\":0.9}");
}
END_TEST

START_TEST(embedded_categories_of_two_classes)
{
    table_case(2, "\"epochs\":3,\"loss\":\"bce\",\"model\":{\"layers\":[9],\"embedding\":3,"
                  "\"activation\":\"tanh\"}");
}
END_TEST

START_TEST(several_numbers)
{
    table_case(0, "\"epochs\":4,\"batch_size\":8,\"model\":{\"layers\":[10,10],\"activation\":"
                  "\"gelu\"}");
}
END_TEST

START_TEST(linear_not_standardised)
{
    table_case(0, "\"epochs\":2,\"standardize\":false,\"model\":{\"kind\":\"linear\"},"
                  "\"optimizer\":{\"lr\":0.0001}");
}
END_TEST

START_TEST(logistic)
{
    table_case(3, "\"epochs\":6,\"model\":{\"kind\":\"logistic\"},\"optimizer\":{\"lr\":0.05}");
}
END_TEST

START_TEST(numbers_in_bins)
{
    table_case(3, "\"epochs\":6,\"model\":{\"kind\":\"logistic\"},\"optimizer\":{\"lr\":0.05},"
                  "\"numbers\":{\"encode\":\"piecewise_linear\",\"bins\":6}");
    table_case(0, "\"epochs\":4,\"standardize\":false,\"model\":{\"layers\":[12],\"embedding\":2},"
                  "\"numbers\":{\"encode\":\"piecewise_linear\"}");
}
END_TEST

static void train_coded(const char *fields)
{
    double codes[] = {-999, 99.5};
    AS_AUTO(as_freep) char *path = child_path(&child, "t.csv");
    AS_AUTO(str_done) struct str b = {0};
    str_puts(&b, "size,kind,weight,y\n");
    for (size_t i = 0; i < 120; i++)
        str_printf(&b, "%s,%s,%zu.5,%s\n",
                   i % 5 == 2   ? "-999"
                   : i % 7 == 3 ? "99.5"
                   : i % 2      ? "1.25"
                                : "3",
                   i % 4 == 1 ? "-999.0"
                   : i % 3    ? "round"
                              : "square",
                   i % 11, i % 5 == 2 || i % 3 == 0 ? "high" : "low");
    child_write(&child, "t.csv", b.s, b.len);
    const struct onnx_data data = {.paths = {.table = path},
                                   .format = DATASET_CSV,
                                   .target = "y",
                                   .task = DATASET_CLASSIFICATION,
                                   .options = {.missing = {codes, AS_ARRAY_LEN(codes)}}};
    onnx_case_train(&child, &data, fields, "11", "model");
}

START_TEST(codes_of_missing_values)
{
    train_coded("\"epochs\":4,\"batch_size\":16,\"model\":{\"layers\":[9]}");
    onnx_case_compare(&child, "model", ROWS);
    train_coded("\"model\":{\"kind\":\"extra_trees\",\"n_estimators\":5}");
    onnx_case_compare(&child, "model", ROWS);
}
END_TEST

START_TEST(deep_and_wide)
{
    table_case(3, "\"epochs\":30,\"model\":{\"layers\":[256,256,256,128]},\"optimizer\":{\"lr\":"
                  "0.003}");
}
END_TEST

/* A row that predicting refuses gives NaN, and no label. */
START_TEST(refused_rows)
{
    onnx_table_write(&child, 211, 3);
    onnx_table_train(&child, 3, "\"epochs\":1,\"model\":{\"layers\":[8]}", "1", "model");
    onnx_case_refuses(&child, "model", 1, INFINITY);
    onnx_case_refuses(&child, "model", 0, -INFINITY);
}
END_TEST

/* An array has no names: one input. */
static void write_array(void)
{
    const size_t shape[] = {150, 5};
    float x[150][5];
    struct rng r;
    rng_init(&r, 1, 8);
    for (size_t i = 0; i < 150; i++)
        for (size_t c = 0; c < 5; c++)
            x[i][c] = c < 4 ? (float)rng_normal(&r) : x[i][0] * x[i][1] + x[i][2];
    AS_AUTO(as_freep) char *path = child_path(&child, "t.npy");
    ck_ok(npy_write(path, NPY_F4, shape, 2, x, &err), err);
}

START_TEST(array_without_names)
{
    write_array();
    AS_AUTO(as_freep) char *path = child_path(&child, "t.npy");
    const struct onnx_data data = {.paths = {.table = path},
                                   .format = DATASET_NPY,
                                   .target = "-1",
                                   .task = DATASET_REGRESSION};
    onnx_case_train(&child, &data, "\"epochs\":3,\"model\":{\"layers\":[16]}", "2", "model");
    onnx_case_compare(&child, "model", ROWS);
    onnx_case_refuses(&child, "model", 3, NAN);
}
END_TEST

/* A prediction near zero is the mean of the target minus nearly the same number, so its error is
 * that of a standardised number, not one of its own size. Of so many rows some are near zero. */
START_TEST(numbers_near_zero)
{
    write_array();
    AS_AUTO(as_freep) char *path = child_path(&child, "t.npy");
    const struct onnx_data data = {.paths = {.table = path},
                                   .format = DATASET_NPY,
                                   .target = "-1",
                                   .task = DATASET_REGRESSION};
    onnx_case_train(&child, &data,
                    "\"epochs\":20,\"model\":{\"layers\":[64,64],\"activation\":\"tanh\"}", "2",
                    "model");
    onnx_case_compare(&child, "model", 20000);
}
END_TEST

/* ---- images ---- */

/* Pictures [n, 8, 6, c], or [n, c, 8, 6], of fractions, with a bright half. */
static void write_pictures(size_t n, size_t c, bool first)
{
    const size_t last_shape[] = {n, 8, 6, c}, first_shape[] = {n, c, 8, 6};
    AS_AUTO(as_freep) float *x = as_calloc(n * 48 * c, sizeof *x);
    AS_AUTO(as_freep) int64_t *y = as_calloc(n, sizeof *y);
    AS_AUTO(as_freep) char *x_path = child_path(&child, "x.npy");
    AS_AUTO(as_freep) char *y_path = child_path(&child, "y.npy");
    struct rng r;
    rng_init(&r, 1, 6);
    ck_assert(x && y);
    for (size_t i = 0; i < n; i++) {
        y[i] = (int64_t)rng_below(&r, 3);
        for (size_t p = 0; p < 48 * c; p++)
            x[i * 48 * c + p] = (float)(rng_uniform(&r) + (p % 3 == (size_t)y[i] ? 0.4 : 0));
    }
    ck_ok(npy_write(x_path, NPY_F4, first ? first_shape : last_shape, 4, x, &err), err);
    ck_ok(npy_write(y_path, NPY_I8, &n, 1, y, &err), err);
}

static void picture_case(size_t channels, bool first, const char *fields)
{
    AS_AUTO(as_freep) char *x = child_path(&child, "x.npy");
    AS_AUTO(as_freep) char *y = child_path(&child, "y.npy");
    const struct onnx_data data = {.paths = {.features = x, .targets = y},
                                   .format = DATASET_NPY,
                                   .task = DATASET_CLASSIFICATION,
                                   .options = {.channels_first = first}};
    write_pictures(120, channels, first);
    onnx_case_train(&child, &data, fields, "3", "model");
    onnx_case_compare(&child, "model", 13);
    if (!strstr(fields, "boost"))
        return;
    struct onnx_data next = data;
    next.base = "model";
    AS_AUTO(str_done) struct str stage = {0};
    str_printf(&stage, "%.*s1}", (int)(strlen(fields) - 2), fields);
    onnx_case_train(&child, &next, str_cstr(&stage), "4", "sum");
    onnx_case_compare(&child, "sum", 13);
}

START_TEST(boosted_pictures)
{
    picture_case(2, true,
                 "\"epochs\":2,\"model\":{\"kind\":\"cnn\",\"layers\":[{\"conv\":4,\"kernel\":3},{"
                 "\"pool\":\"global\"},{\"dense\":5}]},\"boost\":{\"stage\":0}");
}
END_TEST

START_TEST(convolutions)
{
    picture_case(
        3, false,
        "\"epochs\":2,\"batch_size\":16,\"model\":{\"kind\":\"cnn\",\"activation\":\"gelu\","
        "\"layers\":[{\"conv\":4,\"kernel\":3,\"padding\":2},{\"conv\":8,\"depthwise\":true,"
        "\"kernel\":3,\"stride\":2},{\"pool\":\"max\",\"size\":3,\"stride\":2,\"padding\":1},"
        "{\"conv\":5,\"kernel\":2,\"padding\":1,\"activation\":\"none\"},{\"pool\":\"avg\","
        "\"size\":2,\"stride\":1,\"padding\":1},{\"dense\":6},{\"dropout\":true}]}");
}
END_TEST

START_TEST(residual_blocks)
{
    picture_case(
        3, true,
        "\"epochs\":2,\"batch_size\":16,\"model\":{\"kind\":\"cnn\",\"layers\":[{\"conv\":4,"
        "\"norm\":\"batch\"},{\"residual\":[{\"conv\":4,\"norm\":\"batch\"},{\"conv\":4,\"norm\":"
        "\"batch\",\"activation\":\"none\"}]},{\"residual\":[{\"conv\":6,\"stride\":2,\"norm\":"
        "\"batch\"},{\"conv\":6,\"activation\":\"none\"}]},{\"pool\":\"global\"},{\"dense\":5,"
        "\"norm\":\"batch\"}]}");
}
END_TEST

START_TEST(resnet8)
{
    picture_case(
        1, false,
        "\"epochs\":1,\"batch_size\":16,\"model\":{\"kind\":\"cnn\",\"preset\":\"resnet8\","
        "\"width\":8}");
}
END_TEST

START_TEST(mlp_of_pictures)
{
    picture_case(2, true, "\"epochs\":2,\"model\":{\"layers\":[9]}");
}
END_TEST

static void write_idx(const char *name, const unsigned char *head, size_t n_head,
                      const unsigned char *bytes, size_t n)
{
    AS_AUTO(str_done) struct str b = {0};
    str_add(&b, (const char *)head, n_head);
    str_add(&b, (const char *)bytes, n);
    child_write(&child, name, b.s, b.len);
}

/* Bytes are given as bytes. */
START_TEST(images_of_bytes)
{
    enum { N = 90, AREA = 30 };
    static unsigned char x[N * AREA], y[N];
    AS_AUTO(as_freep) char *x_path = child_path(&child, "x.idx");
    AS_AUTO(as_freep) char *y_path = child_path(&child, "y.idx");
    const struct onnx_data data = {.paths = {.features = x_path, .targets = y_path},
                                   .format = DATASET_IDX,
                                   .task = DATASET_CLASSIFICATION};
    struct rng r;
    rng_init(&r, 1, 4);
    for (size_t i = 0; i < N; i++)
        y[i] = (unsigned char)rng_below(&r, 2);
    for (size_t i = 0; i < sizeof x; i++)
        x[i] = (unsigned char)(rng_below(&r, 150) + (i % 2 == y[i / AREA] ? 90 : 0));
    write_idx("x.idx", (unsigned char[]){0, 0, 8, 3, 0, 0, 0, N, 0, 0, 0, 6, 0, 0, 0, 5}, 16, x,
              sizeof x);
    write_idx("y.idx", (unsigned char[]){0, 0, 8, 1, 0, 0, 0, N}, 8, y, sizeof y);
    onnx_case_train(&child, &data,
                    "\"epochs\":2,\"model\":{\"kind\":\"cnn\",\"layers\":[{\"conv\":4},{\"pool\":"
                    "\"max\"}]}",
                    "4", "model");
    onnx_case_compare(&child, "model", 13);
    struct onnx_data next = data;
    next.base = "model";
    onnx_case_train(&child, &next, "\"epochs\":2,\"boost\":{\"stage\":1}", "4", "sum");
    onnx_case_compare(&child, "sum", 13);
}
END_TEST

/* ---- text ---- */

START_TEST(transformer)
{
    static char text[3000];
    struct rng r;
    rng_init(&r, 1, 7);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = "the quick brown fox. "[i % 21];
    for (size_t i = 0; i < 100; i++)
        text[rng_below(&r, sizeof text)] = '?';
    child_write(&child, "t.txt", text, sizeof text);
    AS_AUTO(as_freep) char *path = child_path(&child, "t.txt");
    const struct onnx_data data = {.paths = {.table = path}, .format = DATASET_TEXT};
    onnx_case_train(&child, &data,
                    "\"epochs\":2,\"batch_size\":8,\"optimizer\":{\"lr\":0.01},\"model\":{"
                    "\"kind\":\"transformer\",\"depth\":2,\"width\":16,\"heads\":2,"
                    "\"context\":12}",
                    "5", "model");
    onnx_case_compare_text(&child, "model", 5);
}
END_TEST

/* ---- trees ---- */

START_TEST(boosted_trees_of_classes)
{
    table_case(3, "\"model\":{\"kind\":\"boosted_trees\",\"n_estimators\":20,\"max_depth\":4}");
}
END_TEST

START_TEST(boosted_trees_of_two_classes)
{
    table_case(2, "\"model\":{\"kind\":\"boosted_trees\",\"n_estimators\":20,"
                  "\"max_cat_to_onehot\":1}");
}
END_TEST

START_TEST(boosted_trees_of_numbers)
{
    table_case(0, "\"model\":{\"kind\":\"boosted_trees\",\"n_estimators\":30,"
                  "\"max_cat_to_onehot\":1}");
}
END_TEST

START_TEST(forests)
{
    table_case(3, "\"model\":{\"kind\":\"random_forest\",\"n_estimators\":20}");
    table_case(2, "\"model\":{\"kind\":\"random_forest\",\"n_estimators\":20}");
    table_case(0, "\"model\":{\"kind\":\"random_forest\",\"n_estimators\":20}");
}
END_TEST

START_TEST(extra_trees)
{
    table_case(3, "\"model\":{\"kind\":\"extra_trees\",\"n_estimators\":20}");
    table_case(2, "\"model\":{\"kind\":\"extra_trees\",\"n_estimators\":20,\"max_depth\":4}");
    table_case(0, "\"model\":{\"kind\":\"extra_trees\",\"n_estimators\":20}");
    picture_case(2, false, "\"model\":{\"kind\":\"extra_trees\",\"n_estimators\":8}");
}
END_TEST

/* Cluster and distance: a cluster that differs is a difference of 1 or more. */
START_TEST(kmeans)
{
    table_case(3, "\"model\":{\"kind\":\"kmeans\",\"clusters\":5}");
    table_case(0, "\"standardize\":false,\"model\":{\"kind\":\"kmeans\",\"clusters\":3}");
    picture_case(2, false, "\"model\":{\"kind\":\"kmeans\",\"clusters\":4}");
}
END_TEST

START_TEST(nearest_neighbours)
{
    table_case(3, "\"model\":{\"kind\":\"knn\",\"weights\":\"distance\"}");
    table_case(2, "\"model\":{\"kind\":\"knn\",\"neighbours\":12}");
    table_case(0, "\"model\":{\"kind\":\"knn\",\"weights\":\"distance\"},\"numbers\":{\"encode\":"
                  "\"piecewise_linear\",\"bins\":6}");
    picture_case(2, false, "\"model\":{\"kind\":\"knn\"}");
}
END_TEST

START_TEST(naive_bayes)
{
    table_case(3, "\"model\":{\"kind\":\"naive_bayes\"}");
    table_case(2, "\"model\":{\"kind\":\"naive_bayes\",\"var_smoothing\":1e-9},\"loss\":\"bce\"");
    picture_case(2, false, "\"model\":{\"kind\":\"naive_bayes\"}");
}
END_TEST

START_TEST(trees_of_pictures)
{
    picture_case(2, false, "\"model\":{\"kind\":\"boosted_trees\",\"n_estimators\":8}");
}
END_TEST

/* ---- transformed targets ---- */

/* Two targets: the graph gives what target_unit_back() gives, also past the ends of the
 * quantiles. */
static void transform_case(target_transform transform)
{
    enum { N = 6 };
    static const float x[N][2] = {{-2, 1}, {-0.5F, 0}, {0, -1}, {0.25F, 9}, {3, -9}, {90, 0.01F}};
    const int64_t dims[] = {ONNX_ROWS, 2};
    double mean[] = {4, -0.1}, scale[] = {1.5, 0.9};
    double quantiles[] = {1, 2, 2, 8, 1000, -3, -2.5, 0, 0, 1e-3};
    const struct preprocess fit = {.n_targets = 2,
                                   .target_mean = mean,
                                   .target_scale = scale,
                                   .target_transform = transform,
                                   .n_quantiles = transform == TARGET_QUANTILE ? 5 : 0,
                                   .quantiles = transform == TARGET_QUANTILE ? quantiles : NULL};
    struct onnx_port port = {
        .name = "x", .type = ONNX_FLOAT, .dims = dims, .n_dims = 2, .note = "a number"};
    AS_AUTO(onnx_graph_freep) struct onnx_graph *g = NULL;
    AS_AUTO(as_freep) char *path = child_path(&child, "model.onnx");
    float y[N][2];
    for (size_t i = 0; i < (size_t)2 * N; i++)
        y[i / 2][i % 2] = (float)target_unit_back(&fit, i % 2, (double)x[i / 2][i % 2]);
    ck_ok(onnx_graph_create(&g, &err), err);
    const char *in = onnx_graph_input(g, &port);
    port.name = "y";
    onnx_graph_output(g, &port, onnx_own_unit(g, &fit, in));
    ck_ok(onnx_graph_write(g, path, &err), err);
    child_write(&child, "x.bin", x, sizeof x);
    child_write(&child, "y.bin", y, sizeof y);
    onnx_case_run(&child,
                  json_pack("[{s:s, s:s, s:[i, i], s:s}]", "name", "x", "type", "float32", "dims",
                            N, 2, "file", "x.bin"),
                  json_pack("[{s:s, s:s, s:[i, i], s:s}]", "name", "y", "type", "float32", "dims",
                            N, 2, "file", "y.bin"),
                  false);
}

START_TEST(transformed_targets)
{
    for (target_transform t = TARGET_AS_IS; t <= TARGET_QUANTILE; t++)
        transform_case(t);
}
END_TEST

/* A model of positive targets, in whose graph the transformation is. */
START_TEST(models_of_transformed_targets)
{
    static const char *const kinds[] = {
        "\"epochs\":3,\"model\":{\"kind\":\"mlp\",\"layers\":[9]}",
        "\"model\":{\"kind\":\"boosted_trees\",\"n_estimators\":8}"};
    const struct onnx_data data = {.paths = {.table = child_path(&child, "t.csv")},
                                   .format = DATASET_CSV,
                                   .target = "y",
                                   .task = DATASET_REGRESSION};
    onnx_table_write(&child, 211, 0);
    for (size_t i = 0; i < (onnx_case_has_trees() ? 2 : 1); i++)
        for (target_transform t = TARGET_LOG; t <= TARGET_QUANTILE; t++) {
            char fields[200];
            (void)snprintf(fields, sizeof fields, "\"target\":{\"transform\":\"%s\"},%s",
                           target_transform_names[t], kinds[i]);
            onnx_case_train(&child, &data, fields, "1", "model");
            onnx_case_compare(&child, "model", ROWS);
        }
    free((char *)data.paths.table);
}
END_TEST

/* What no operator of ONNX reads is refused with the column's name. */
START_TEST(dates_and_texts_are_refused)
{
    static const char *const tables[] = {
        "when,x,y\n2024-03-09,1,2\n2024-04-10,2,3\n2024-05-11,3,5\n2025-01-01,3,6\n",
        "note,x,y\nvery good tea,1,2\nnot so good,2,3\nbad tea indeed,3,5\ngood good tea,3,6\n"};
    for (size_t i = 0; i < AS_ARRAY_LEN(tables); i++) {
        AS_AUTO(model_file_freep) struct model_file *f = NULL;
        AS_AUTO(as_freep) char *table = child_path(&child, "t.csv");
        AS_AUTO(as_freep) char *path = child_path(&child, "model");
        const struct onnx_data data = {.paths = {.table = table},
                                       .format = DATASET_CSV,
                                       .target = "y",
                                       .task = DATASET_REGRESSION};
        child_write(&child, "t.csv", tables[i], strlen(tables[i]));
        onnx_case_train(&child, &data, "\"epochs\":1,\"model\":{\"layers\":[2]}", "1", "model");
        ck_ok(model_file_read(path, MODEL_FILE_MAX_BYTES, &f, &err), err);
        ck_fails(onnx_write(f, "/dev/null", &err), AS_E_UNSUPPORTED, err,
                 i == 0 ? "column 'when' holds dates" : "column 'note' holds texts");
    }
}
END_TEST

/* ---- files ---- */

static char *read_bytes(const char *name, size_t *ret_len)
{
    return child_read(&child, name, ret_len);
}

static struct model_file *small_model(void)
{
    struct model_file *f = NULL;
    AS_AUTO(as_freep) char *path = child_path(&child, "model");
    onnx_table_write(&child, 60, 3);
    onnx_table_train(&child, 3, "\"epochs\":1,\"model\":{\"layers\":[64]}", "1", "model");
    ck_ok(model_file_read(path, MODEL_FILE_MAX_BYTES, &f, &err), err);
    return f;
}

START_TEST(equal_models_give_equal_bytes)
{
    AS_AUTO(model_file_freep) struct model_file *f = small_model();
    AS_AUTO(as_freep) char *a_path = child_path(&child, "a.onnx");
    AS_AUTO(as_freep) char *b_path = child_path(&child, "b.onnx");
    size_t a_len, b_len;
    ck_ok(onnx_write(f, a_path, &err), err);
    ck_ok(onnx_write(f, b_path, &err), err);
    AS_AUTO(as_freep) char *a = read_bytes("a.onnx", &a_len);
    AS_AUTO(as_freep) char *b = read_bytes("b.onnx", &b_len);
    ck_assert_uint_gt(a_len, 1000);
    ck_assert_uint_eq(a_len, b_len);
    ck_assert_int_eq(memcmp(a, b, a_len), 0);
}
END_TEST

/* A disk that is full: a limit on the size of files. What was there stays, and nothing is left. */
START_TEST(full_disk)
{
    AS_AUTO(model_file_freep) struct model_file *f = small_model();
    AS_AUTO(as_freep) char *path = child_path(&child, "old/m.onnx");
    AS_AUTO(as_freep) char *folder = child_path(&child, "old");
    struct rlimit limit, small;
    ck_ok(file_mkdirs(folder, 0700, &err), err);
    ck_ok(file_replace(path, "old", 3, 0644, &err), err);
    ck_fails(onnx_write(f, "/dev/full", &err), AS_E_IO, err, "/dev/full");
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = (struct rlimit){1000, limit.rlim_max};
    (void)signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    as_status st = onnx_write(f, path, &err);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_fails(st, AS_E_IO, err, "m.onnx");
    size_t len;
    AS_AUTO(as_freep) char *old = read_bytes("old/m.onnx", &len);
    ck_assert_str_eq(old, "old");
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(folder), 0); /* nothing else is in it */
}
END_TEST

/* Every allocation that fails is an error, and nothing is written. */
START_TEST(out_of_memory)
{
    AS_AUTO(model_file_freep) struct model_file *f = small_model();
    AS_AUTO(as_freep) char *path = child_path(&child, "m.onnx");
    as_status st = AS_E_NOMEM;
    size_t nth = 0;
    while (st == AS_E_NOMEM) {
        as_mem_fail_nth(++nth);
        st = onnx_write(f, path, &err);
        as_mem_fail_nth(0);
        ck_assert_msg(st == AS_OK || st == AS_E_NOMEM, "%zu: %s", nth, err.msg);
        ck_assert_int_eq(access(path, F_OK) == 0, st == AS_OK);
    }
    ck_assert_uint_gt(nth, 10);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("onnx_write");
    TCase *t = tcase_create("onnx_write");
    tcase_add_checked_fixture(t, setup, teardown);
    if (!onnx_case_has_checker())
        skip_tests("checks of the files", 1, "python3 has no package onnx (python3-onnx)");
    if (!onnx_case_has_runtime())
        skip_tests("runs of the files", 1, "no ONNX Runtime is installed: see ASSAY_ONNX_RUNTIME");
    tcase_add_test(t, categories_and_missing_values);
    tcase_add_test(t, embedded_categories_of_two_classes);
    tcase_add_test(t, several_numbers);
    tcase_add_test(t, linear_not_standardised);
    tcase_add_test(t, logistic);
    tcase_add_test(t, numbers_in_bins);
    tcase_add_test(t, codes_of_missing_values);
    tcase_add_test(t, deep_and_wide);
    tcase_add_test(t, refused_rows);
    tcase_add_test(t, array_without_names);
    tcase_add_test(t, numbers_near_zero);
    tcase_add_test(t, convolutions);
    tcase_add_test(t, residual_blocks);
    tcase_add_test(t, resnet8);
    tcase_add_test(t, mlp_of_pictures);
    tcase_add_test(t, images_of_bytes);
    tcase_add_test(t, transformer);
    bool trees = onnx_case_has_trees();
    const char *why = "there is no libxgboost (libxgboost0)";
    add_test_if(t, boosted_trees_of_classes, trees, why);
    add_test_if(t, boosted_trees_of_two_classes, trees, why);
    add_test_if(t, boosted_trees_of_numbers, trees, why);
    add_test_if(t, forests, trees, why);
    add_test_if(t, trees_of_pictures, trees, why);
    tcase_add_test(t, extra_trees);
    tcase_add_test(t, kmeans);
    tcase_add_test(t, nearest_neighbours);
    tcase_add_test(t, naive_bayes);
    tcase_add_test(t, boosted_pictures);
    tcase_add_test(t, transformed_targets);
    tcase_add_test(t, models_of_transformed_targets);
    tcase_add_test(t, dates_and_texts_are_refused);
    tcase_add_test(t, equal_models_give_equal_bytes);
    tcase_add_test(t, full_disk);
    tcase_add_test(t, out_of_memory);
    suite_add_tcase(s, t);
    return s;
}
