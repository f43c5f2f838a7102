/* Every kind of data, network and loss through the whole trainer: it learns, and a member of a
 * group ends with what it ends with alone, in lanes and in lockstep. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "data/formats/npy.h"
#include "base/rng.h"
#include "tests/support/check_main.h"
#include "tests/support/rig.h"

#define ROWS 160

static struct rig rig;

static char *place(const char *name)
{
    char *path = file_join(rig.dir, name);
    ck_assert_ptr_nonnull(path);
    return path;
}

/* Features of `dims` dimensions beside targets, as two NPY files. */
static void pair(const char *name, dataset_task task, const float *x, const size_t *shape,
                 size_t dims, const void *y, npy_type type, size_t targets)
{
    AS_AUTO(as_freep) char *xp = place("x.npy");
    AS_AUTO(as_freep) char *yp = place("y.npy");
    ck_ok(npy_write(xp, NPY_F4, shape, dims, x, &rig.err), rig.err);
    ck_ok(npy_write(yp, type, (size_t[]){shape[0], targets}, targets > 1 ? 2 : 1, y, &rig.err),
          rig.err);
    struct dataset_paths paths = {.features = xp, .targets = yp};
    rig_data(&rig, name, &paths, DATASET_NPY, task);
}

/* Alone on each back end, then together; `metric` must come below `most`. */
static void learns(const struct trial *trials, size_t n, const char *metric, double most)
{
    static const char *const backends[] = {"cpu", "reference"};
    const struct trial *all[4];
    for (size_t i = 0; i < n; i++)
        all[i] = &trials[i];
    for (size_t b = 0; b < 2; b++) {
        char solo[32], fused[32];
        (void)snprintf(solo, sizeof solo, "solo-%s", backends[b]);
        (void)snprintf(fused, sizeof fused, "fused-%s", backends[b]);
        for (size_t i = 0; i < n; i++)
            ck_assert_int_eq(rig_solo(&rig, solo, all[i], backends[b]), 0);
        rig_job(&rig, fused, all, n, n);
        ck_assert_int_eq(rig_run(&rig, backends[b], 2), 0);
        for (size_t i = 0; i < n; i++) {
            rig_same(&rig, solo, fused, all[i]);
            ck_assert_double_lt(rig_last(&rig, solo, all[i], metric), most);
        }
    }
}

/* 6 x 6 pictures of a bright row (class 0), column (1) or neither (2), with noise. */
START_TEST(images)
{
    static float x[ROWS * 36];
    static int64_t y[ROWS];
    struct rng r;
    rng_init(&r, 1, 1);
    for (size_t i = 0; i < ROWS; i++) {
        y[i] = (int64_t)(i % 3);
        size_t at = (size_t)rng_below(&r, 6);
        for (size_t p = 0; p < 36; p++) {
            bool bright = (y[i] == 0 && p / 6 == at) || (y[i] == 1 && p % 6 == at);
            x[i * 36 + p] = (float)(rng_uniform(&r) * 0.3 + (bright ? 1 : 0));
        }
    }
    pair("bars", DATASET_CLASSIFICATION, x, (size_t[]){ROWS, 6, 6, 1}, 4, y, NPY_I8, 1);
#define CNN                                                                                        \
    "\"model\":{\"kind\":\"cnn\",\"layers\":[{\"conv\":4,\"kernel\":3,\"norm\":\"batch\"},{"       \
    "\"pool\":"                                                                                    \
    "\"max\",\"size\":2},{\"residual\":[{\"conv\":4,\"kernel\":3,\"norm\":\"batch\"}]},{\"pool\":" \
    "\"global\"}]},\"micro_batch\":8,\"epochs\":12,"
    static const struct trial trials[] = {
        {"a", CNN "\"batch_size\":8,\"optimizer\":{\"lr\":0.02},\"augment\":{\"pad\":1}", "1"},
        {"b",
         CNN "\"batch_size\":16,\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.1,\"momentum\":0.9},"
             "\"augment\":{\"flip\":0.5,\"cutout\":2}",
         "2"},
    };
    learns(trials, 2, "val_error", 0.35);
}
END_TEST

/* Whole numbers from 0 to 255: they stay bytes, and each batch is scaled. Rows of 25 bytes, so that
 * few begin with an element of the buffer. */
START_TEST(images_of_bytes)
{
    static float x[ROWS * 25];
    static int64_t y[ROWS];
    struct rng r;
    rng_init(&r, 1, 2);
    for (size_t i = 0; i < ROWS; i++) {
        y[i] = (int64_t)(i % 2);
        for (size_t p = 0; p < 25; p++)
            x[i * 25 + p] = (float)(rng_below(&r, 156) + (p / 5 == 2 && y[i] == 1 ? 100 : 0));
    }
    pair("bytes", DATASET_CLASSIFICATION, x, (size_t[]){ROWS, 5, 5}, 3, y, NPY_I8, 1);
    static const struct trial trials[] = {
        {"a", "\"model\":{\"layers\":[6]},\"epochs\":4,\"augment\":{\"flip\":0.5}", "1"},
        {"b", "\"model\":{\"layers\":[6]},\"epochs\":3,\"augment\":{\"pad\":1}", "2"},
    };
    learns(trials, 2, "val_error", 0.4);
}
END_TEST

START_TEST(text)
{
    static char bytes[4000];
    AS_AUTO(as_freep) char *path = place("t.txt");
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = "the quick brown fox. "[i % 21];
    ck_ok(file_replace(path, bytes, sizeof bytes, 0644, &rig.err), rig.err);
    struct dataset_paths paths = {.table = path};
    rig_data(&rig, "fox", &paths, DATASET_TEXT, DATASET_TASK_AUTO);
#define GPT                                                                                        \
    "\"model\":{\"kind\":\"transformer\",\"depth\":1,\"width\":16,\"heads\":2,\"context\":16},"    \
    "\"micro_batch\":8,\"epochs\":8,"
    static const struct trial trials[] = {
        {"a", GPT "\"batch_size\":8,\"optimizer\":{\"lr\":0.02}", "1"},
        {"b", GPT "\"batch_size\":16,\"optimizer\":{\"lr\":0.03,\"clip_norm\":1}", "2"},
    };
    learns(trials, 2, "val_loss", 2.0); /* log 256 = 5.5 at the start */
}
END_TEST

/* Two targets of very different units. */
START_TEST(several_numbers)
{
    static float x[ROWS * 3], y[ROWS * 2];
    struct rng r;
    rng_init(&r, 2, 2);
    for (size_t i = 0; i < ROWS; i++) {
        for (size_t c = 0; c < 3; c++)
            x[i * 3 + c] = (float)rng_normal(&r);
        y[2 * i] = 1000 * (x[3 * i] - 2 * x[3 * i + 1]) + 5000;
        y[2 * i + 1] = 0.01F * x[3 * i + 2];
    }
    pair("two", DATASET_REGRESSION, x, (size_t[]){ROWS, 3}, 2, y, NPY_F4, 2);
#define LINE "\"model\":{\"kind\":\"linear\"},\"epochs\":30,\"batch_size\":16,"
    static const struct trial mse[] = {
        {"a", LINE "\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.05}", "1"},
        {"b", LINE "\"optimizer\":{\"lr\":0.05,\"ema\":0.5}", "2"},
    };
    learns(mse, 1, "val_loss", 0.01);
    ck_assert_double_gt(rig_last(&rig, "solo-cpu", &mse[0], "val_r2"), 0.99);
    learns(mse + 1, 1, "val_loss", 0.05);
    static const struct trial resampled[] = {
        /* each member its own sample, the same bits as alone */
        {"r", LINE "\"resample\":1,\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.05}", "1"},
        {"s", LINE "\"resample\":2,\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.05}", "1"},
    };
    learns(resampled, 2, "val_loss", 0.01);
    ck_assert_double_ne(rig_last(&rig, "solo-cpu", &resampled[0], "val_loss"),
                        rig_last(&rig, "solo-cpu", &mse[0], "val_loss"));
    ck_assert_double_ne(rig_last(&rig, "solo-cpu", &resampled[0], "val_loss"),
                        rig_last(&rig, "solo-cpu", &resampled[1], "val_loss"));
    static const struct trial huber[] = {
        {"c", LINE "\"loss\":\"huber\",\"huber_delta\":0.5,\"optimizer\":{\"lr\":0.05}", "1"},
        {"d", LINE "\"loss\":\"huber\",\"huber_delta\":2,\"optimizer\":{\"lr\":0.05}", "1"},
    };
    learns(huber, 2, "val_loss", 0.05);
}
END_TEST

START_TEST(two_classes_through_one_output)
{
    static float x[ROWS * 2];
    static int64_t y[ROWS];
    struct rng r;
    rng_init(&r, 3, 3);
    for (size_t i = 0; i < ROWS; i++) {
        x[2 * i] = (float)rng_normal(&r);
        x[2 * i + 1] = (float)rng_normal(&r);
        y[i] = x[2 * i] + x[2 * i + 1] > 0;
    }
    pair("half", DATASET_CLASSIFICATION, x, (size_t[]){ROWS, 2}, 2, y, NPY_I8, 1);
#define BCE                                                                                        \
    "\"loss\":\"bce\",\"model\":{\"kind\":\"linear\"},\"epochs\":20,\"batch_size\":16,"            \
    "\"metrics\":"                                                                                 \
    "[\"val_auc\",\"val_f1\",\"val_log_loss\"],"
    static const struct trial trials[] = {
        {"a", BCE "\"optimizer\":{\"lr\":0.1}", "1"},
        {"b", BCE "\"optimizer\":{\"lr\":0.05},\"label_smoothing\":0.1", "2"},
    };
    learns(trials, 2, "val_error", 0.1);
    ck_assert_double_gt(rig_last(&rig, "solo-cpu", &trials[0], "val_auc"), 0.98);
    ck_assert_double_gt(rig_last(&rig, "solo-cpu", &trials[0], "val_f1"), 0.9);
    ck_assert_double_eq_tol(rig_last(&rig, "solo-cpu", &trials[1], "val_loss"),
                            rig_last(&rig, "solo-cpu", &trials[1], "val_log_loss"), 1e-6);
    AS_AUTO(as_freep) char *path = place("solo-cpu/a/artifacts/predictions.npy");
    AS_AUTO(npy_freep) struct npy *p = NULL;
    double row[2];
    ck_ok(npy_open(path, &p, &rig.err), rig.err);
    ck_assert_uint_eq(npy_header_of(p)->shape[1], 2); /* a column for each class, as always */
    ck_ok(npy_read(p, 2, row, &rig.err), rig.err);
    ck_assert_double_eq_tol(row[0] + row[1], 1, 1e-6);
}
END_TEST

/* What predictions.npy and targets.npy say of a trial's loss with these weights. */
static double weighted_loss_of(const char *tag, const struct trial *t, const double *weights)
{
    char name[80];
    double sum = 0, of = 0;
    (void)snprintf(name, sizeof name, "%s/%s/artifacts/predictions.npy", tag, t->id);
    AS_AUTO(as_freep) char *at_p = place(name);
    (void)snprintf(name, sizeof name, "%s/%s/artifacts/targets.npy", tag, t->id);
    AS_AUTO(as_freep) char *at_y = place(name);
    AS_AUTO(npy_freep) struct npy *p = NULL;
    AS_AUTO(npy_freep) struct npy *y = NULL;
    ck_ok(npy_open(at_p, &p, &rig.err), rig.err);
    ck_ok(npy_open(at_y, &y, &rig.err), rig.err);
    size_t rows = npy_header_of(p)->shape[0], classes = npy_header_of(p)->shape[1];
    for (size_t i = 0; i < rows; i++) {
        double shares[10], label = 0;
        ck_assert_uint_le(classes, AS_ARRAY_LEN(shares));
        ck_ok(npy_read(p, classes, shares, &rig.err), rig.err);
        ck_ok(npy_read(y, 1, &label, &rig.err), rig.err);
        sum -= weights[(size_t)label] * log(shares[(size_t)label]);
        of += weights[(size_t)label];
    }
    return sum / of;
}

/* val_loss weighs the rows held out as a whole: it is the same however they are cut into batches.
 * The rate is too small to move a weight. */
static void weigh_alike(const struct trial *trials, size_t n, const char *backend,
                        const double *weights)
{
    double first = 0;
    for (size_t i = 0; i < n; i++) {
        ck_assert_int_eq(rig_solo(&rig, backend, &trials[i], backend), 0);
        double loss = rig_last(&rig, backend, &trials[i], "val_loss");
        first = i == 0 ? loss : first;
        ck_assert_double_eq_tol(loss, first, 1e-6 * first);
        ck_assert_double_eq_tol(loss, weighted_loss_of(backend, &trials[i], weights), 1e-5 * first);
    }
}

START_TEST(class_weights_of_all_rows_held_out)
{
    static const double ten[] = {9, 1, 1, 0, 4, 0.1, 0.1, 2, 1, 0.5}, two[] = {7, 0.25};
#define STILL "\"epochs\":1,\"optimizer\":{\"kind\":\"sgd\",\"lr\":1e-30},"
#define TEN STILL "\"class_weights\":[9,1,1,0,4,0.1,0.1,2,1,0.5],\"batch_size\":"
#define TWO STILL "\"loss\":\"bce\",\"class_weights\":[7,0.25],\"batch_size\":"
    static const struct trial ce[] = {
        {"a", TEN "7", "1"}, {"b", TEN "64", "1"}, {"c", TEN "1000", "1"}};
    static const struct trial bce[] = {
        {"d", TWO "5", "1"}, {"e", TWO "8", "1"}, {"f", TWO "100", "1"}};
    static float x[ROWS * 2];
    static int64_t y[ROWS];
    struct rng r;
    weigh_alike(ce, 3, "cpu", ten);
    weigh_alike(ce, 3, "reference", ten);
    rng_init(&r, 5, 5);
    for (size_t i = 0; i < ROWS; i++) {
        x[2 * i] = (float)rng_normal(&r);
        x[2 * i + 1] = (float)rng_normal(&r);
        y[i] = i % 3 == 0;
    }
    pair("half", DATASET_CLASSIFICATION, x, (size_t[]){ROWS, 2}, 2, y, NPY_I8, 1);
    weigh_alike(bce, 3, "cpu", two);
    weigh_alike(bce, 3, "reference", two);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("train_kinds");
    TCase *t = tcase_create("train_kinds");
    rig_fixture(t, &rig);
    tcase_add_test(t, images);
    tcase_add_test(t, images_of_bytes);
    tcase_add_test(t, text);
    tcase_add_test(t, several_numbers);
    tcase_add_test(t, two_classes_through_one_output);
    tcase_add_test(t, class_weights_of_all_rows_held_out);
    suite_add_tcase(s, t);
    return s;
}
