/* Predicting image files: each gets the prediction that the same pixels in an array get, with its
 * name. The model is trained by assay-train on 120 grey images of 8 x 6. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <png.h>

#include "base/file.h"
#include "cli/predict/predict_file.h"
#include "data/formats/npy.h"
#include "tests/support/check_main.h"
#include "tests/support/trained.h"

#define HEIGHT 8
#define WIDTH 6
#define ROW (HEIGHT * WIDTH)

static struct as_err err;
static struct child child;
static struct model_file *model;

static void teardown(void)
{
    model_file_free(model);
    model = NULL;
    child_teardown(&child);
}

static char *at(const char *name)
{
    return child_path(&child, name);
}

static void train_images(void)
{
    AS_AUTO(as_freep) char *x = at("x.npy");
    AS_AUTO(as_freep) char *y = at("y.npy");
    AS_AUTO(as_freep) char *path = at("artifacts/model.safetensors");
    const struct dataset_paths paths = {.features = x, .targets = y};
    char report[512];
    trained_write_images(x, y, 120, 1);
    trained_model(&child, &paths, DATASET_NPY, NULL, DATASET_CLASSIFICATION,
                  "\"epochs\":2,\"model\":{\"layers\":[8]}", report, sizeof report);
    ck_ok(model_file_read(path, 1 << 26, &model, &err), err);
}

static void setup(void)
{
    child_setup(&child);
}

static void make_folder(const char *name)
{
    AS_AUTO(as_freep) char *path = at(name);
    ck_assert_int_eq(mkdir(path, 0700), 0);
}

/* The first `n` images of x.npy, as bytes. */
static unsigned char *pixels_of(size_t n)
{
    AS_AUTO(as_freep) char *x = at("x.npy");
    AS_AUTO(npy_freep) struct npy *in = NULL;
    AS_AUTO(as_freep) double *v = as_calloc(n * ROW, sizeof *v);
    unsigned char *bytes = as_calloc(n, ROW);
    ck_assert(v && bytes);
    ck_ok(npy_open(x, &in, &err), err);
    ck_ok(npy_read(in, n * ROW, v, &err), err);
    for (size_t i = 0; i < n * ROW; i++)
        bytes[i] = (unsigned char)v[i];
    return bytes;
}

/* Write a grey image, each of its pixels as `scale` x `scale` pixels, in one channel or three. */
static void put_png(const char *name, const unsigned char *pixels, size_t scale, bool colour)
{
    AS_AUTO(as_freep) char *path = at(name);
    size_t h = HEIGHT * scale, w = WIDTH * scale, channels = colour ? 3 : 1;
    AS_AUTO(as_freep) unsigned char *out = as_calloc(h * w, channels);
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)w,
                       .height = (png_uint_32)h,
                       .format = colour ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY};
    for (size_t i = 0; i < h * w * channels; i++) {
        size_t row = i / channels / w / scale, column = i / channels % w / scale;
        out[i] = pixels[row * WIDTH + column];
    }
    ck_assert(png_image_write_to_file(&image, path, 0, out, 0, NULL));
}

static as_status predict(const char *data, const char *output, struct predict_opts opts,
                         struct predict_summary *ret)
{
    AS_AUTO(as_freep) char *from = at(data);
    AS_AUTO(as_freep) char *to = at(output);
    opts.data = from;
    opts.output = to;
    opts.threads = 2;
    predict_summary_done(ret);
    return predict_file(model, &opts, NULL, ret, &err);
}

static char *lines_of(const char *name)
{
    size_t len;
    return child_read(&child, name, &len);
}

/* ---- tests ---- */

#define N 70 /* images: more than a block of them */

START_TEST(as_the_same_pixels_in_an_array)
{
    AS_AUTO(predict_summary_done) struct predict_summary s = {0};
    train_images();
    AS_AUTO(as_freep) unsigned char *pixels = pixels_of(120);
    make_folder("f");
    make_folder("f/sub");
    for (size_t i = 0; i < N; i++) { /* names in the order of the rows */
        char name[40];
        (void)snprintf(name, sizeof name, "f/%s%03zu.png", i < 5 ? "" : "sub/", i);
        put_png(name, pixels + i * ROW, 1, i % 2 == 1);
    }
    child_write(&child, "f/notes.txt", "text", 4);
    child_write(&child, "f/.hidden.png", "text", 4);
    ck_ok(predict("x.npy", "array.csv", (struct predict_opts){.proba = true}, &s), err);
    ck_ok(predict("f", "files.csv", (struct predict_opts){.proba = true}, &s), err);
    ck_assert_uint_eq(s.rows, N);
    AS_AUTO(as_freep) char *rows = lines_of("array.csv");
    AS_AUTO(as_freep) char *files = lines_of("files.csv");
    char *r = NULL, *f = NULL, *row = strtok_r(rows, "\n", &r), *file = strtok_r(files, "\n", &f);
    ck_assert_str_eq(row, "prediction,probability_0,probability_1");
    ck_assert_str_eq(file, "file,prediction,probability_0,probability_1");
    for (size_t i = 0; i < N; i++) {
        char expected[600];
        row = strtok_r(NULL, "\n", &r);
        file = strtok_r(NULL, "\n", &f);
        (void)snprintf(expected, sizeof expected, "%s/f/%s%03zu.png,%s", child.dir,
                       i < 5 ? "" : "sub/", i, row);
        ck_assert_str_eq(file, expected);
    }
    ck_assert_ptr_null(strtok_r(NULL, "\n", &f));
    ck_ok(predict("f", "files.npy", (struct predict_opts){0}, &s), err);
    AS_AUTO(as_freep) char *path = at("files.npy");
    AS_AUTO(npy_freep) struct npy *npy = NULL;
    ck_ok(npy_open(path, &npy, &err), err);
    ck_assert_uint_eq(npy_header_of(npy)->n_values, 2 * N);
}
END_TEST

START_TEST(one_image_of_another_size)
{
    AS_AUTO(predict_summary_done) struct predict_summary s = {0};
    unsigned char even[ROW];
    memset(even, 90, sizeof even);
    train_images();
    put_png("small.png", even, 1, false);
    put_png("LARGE.PNG", even, 5, true);
    ck_ok(predict("small.png", "small.csv", (struct predict_opts){.proba = true}, &s), err);
    ck_ok(predict("LARGE.PNG", "large.csv", (struct predict_opts){.proba = true}, &s), err);
    ck_assert_uint_eq(s.rows, 1);
    AS_AUTO(as_freep) char *small = lines_of("small.csv");
    AS_AUTO(as_freep) char *large = lines_of("large.csv");
    ck_assert_str_eq(strstr(small, ".png,") + 5, strstr(large, ".PNG,") + 5);
}
END_TEST

START_TEST(faults_are_named)
{
    AS_AUTO(predict_summary_done) struct predict_summary s = {0};
    const struct predict_opts none = {0};
    train_images();
    AS_AUTO(as_freep) unsigned char *pixels = pixels_of(1);
    make_folder("f");
    ck_fails(predict("f", "o.csv", none, &s), AS_E_INVAL, err, "found no image");
    put_png("f/a.png", pixels, 1, false);
    child_write(&child, "f/b.jpg", "no image", 8);
    ck_fails(predict("f", "o.csv", none, &s), AS_E_INVAL, err, "f/b.jpg");
    AS_AUTO(as_freep) char *path = at("o.csv");
    ck_assert(access(path, F_OK) != 0); /* nothing half written */
    ck_fails(predict("missing.png", "o.csv", none, &s), AS_E_NOT_FOUND, err, "missing.png");
}
END_TEST

START_TEST(other_models_take_none)
{
    AS_AUTO(predict_summary_done) struct predict_summary s = {0};
    AS_AUTO(as_freep) char *table = at("t.csv");
    AS_AUTO(as_freep) char *path = at("artifacts/model.safetensors");
    const struct dataset_paths paths = {.table = table};
    char report[512];
    trained_write_table(&child, 211, 2);
    trained_model(&child, &paths, DATASET_CSV, "y", DATASET_CLASSIFICATION,
                  "\"epochs\":1,\"model\":{\"layers\":[4]}", report, sizeof report);
    ck_ok(model_file_read(path, 1 << 26, &model, &err), err);
    make_folder("f");
    ck_fails(predict("f", "o.csv", (struct predict_opts){0}, &s), AS_E_INVAL, err,
             "the model takes columns of a table");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("predict_images");
    TCase *t = tcase_create("predict_images");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, as_the_same_pixels_in_an_array);
    tcase_add_test(t, one_image_of_another_size);
    tcase_add_test(t, faults_are_named);
    tcase_add_test(t, other_models_take_none);
    suite_add_tcase(s, t);
    return s;
}
