/* A folder of images is packed, and the file is a data set whose classes are the folders' names. */
#include "cli/files/image_folder.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <png.h>

#include "base/file.h"
#include "base/hash.h"
#include "data/dataset_read.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

static struct as_err err;
static char dir[TEMP_FOLDER_SIZE];
static char packed[64];
static const struct image_folder_opts plain;

static void setup(void)
{
    temp_folder_make(dir);
    (void)snprintf(packed, sizeof packed, "%s/.packed", dir);
}

static void teardown(void)
{
    temp_folder_remove(dir);
}

/* A grey or colour image of one value. */
static void put_png(const char *class, const char *name, size_t h, size_t w, bool colour, int value)
{
    char path[256];
    unsigned char pixels[3 * 32 * 32];
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)w,
                       .height = (png_uint_32)h,
                       .format = colour ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY};
    (void)snprintf(path, sizeof path, "%s/%s", dir, class);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof path, "%s/%s/%s", dir, class, name);
    memset(pixels, value, sizeof pixels);
    ck_assert(png_image_write_to_file(&image, path, 0, pixels, 0, NULL));
}

static void put_text(const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    ck_ok(file_replace(path, "text", 4, 0644, &err), err);
}

START_TEST(classes_by_name)
{
    struct image_folder p = {0};
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    AS_AUTO(dataset_done) struct dataset d = {0};
    const struct dataset_paths paths = {.table = packed};
    put_png("dog", "b.png", 4, 6, false, 20);
    put_png("dog", "a.PNG", 4, 6, false, 10);
    put_png("cat", "x.png", 4, 6, true, 30);
    put_png("cat", ".hidden.png", 4, 6, true, 90);
    put_text("dog/notes.txt");
    put_text("readme");
    ck_ok(image_folder_pack(dir, packed, &plain, &p, &err), err);
    ck_assert(p.n_images == 3 && p.n_classes == 2 && p.n_skipped == 2 && p.channels == 3);
    ck_ok(dataset_inspect(&paths, DATASET_SAFETENSORS, NULL, DATASET_TASK_AUTO, NULL, &info, &err),
          err);
    ck_assert_int_eq(info.input, DATASET_IMAGE);
    ck_assert(info.height == 4 && info.width == 6 && info.channels == 3);
    ck_assert_str_eq(info.classes[0], "cat");
    ck_assert_str_eq(info.classes[1], "dog");
    ck_ok(dataset_load(&paths, &info, &d, &err), err);
    ck_assert_mem_eq(d.labels, ((int32_t[]){0, 1, 1}), 3 * sizeof *d.labels);
    ck_assert(d.x[0] == 30 && d.x[72] == 10 && d.x[144] == 20);
}
END_TEST

/* Names that are numbers have numeric order, as everywhere, whatever the order of the folders. */
START_TEST(numbers_as_classes)
{
    struct image_folder p = {0};
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    AS_AUTO(dataset_done) struct dataset d = {0};
    const struct dataset_paths paths = {.table = packed};
    put_png("10", "a.png", 2, 2, false, 1);
    put_png("9", "a.png", 2, 2, false, 2);
    ck_ok(image_folder_pack(dir, packed, &plain, &p, &err), err);
    ck_ok(dataset_inspect(&paths, DATASET_SAFETENSORS, NULL, DATASET_TASK_AUTO, NULL, &info, &err),
          err);
    ck_assert_str_eq(info.classes[0], "9");
    ck_ok(dataset_load(&paths, &info, &d, &err), err);
    ck_assert_mem_eq(d.labels, ((int32_t[]){1, 0}), 2 * sizeof *d.labels);
}
END_TEST

START_TEST(resized_and_equal_bytes)
{
    struct image_folder p = {0};
    char first[SHA256_HEX_SIZE], again[SHA256_HEX_SIZE];
    const struct image_folder_opts opts = {.height = 3, .width = 2, .grey = true};
    put_png("a", "1.png", 4, 6, true, 50);
    put_png("b", "1.png", 9, 2, false, 60);
    ck_fails(image_folder_pack(dir, packed, &plain, &p, &err), AS_E_INVAL, err,
             "b/1.png has 9 x 2 pixels, and images before it 4 x 6: name one size, --size");
    for (int i = 0; i < 2; i++) {
        AS_AUTO(file_closep) int fd = -1;
        int64_t size;
        ck_ok(image_folder_pack(dir, packed, &opts, &p, &err), err);
        ck_assert(p.height == 3 && p.width == 2 && p.channels == 1);
        ck_ok(file_open_regular(packed, &fd, &err), err);
        ck_ok(sha256_of_fd(fd, NULL, NULL, i ? again : first, &size, &err), err);
    }
    ck_assert_str_eq(first, again);
}
END_TEST

static as_status stop(void *arg, size_t done, size_t total, struct as_err *e)
{
    (void)arg;
    (void)total;
    return done == 3 ? as_fail(e, AS_E_UNAVAILABLE, "interrupted") : AS_OK;
}

START_TEST(refused)
{
    struct image_folder p = {0};
    char path[128];
    const struct image_folder_opts huge = {.height = 300, .width = 300},
                                   stopping = {.on_file = stop};
    put_png("a", "1.png", 4, 4, false, 50);
    ck_fails(image_folder_pack(dir, packed, &plain, &p, &err), AS_E_INVAL, err,
             "found 1 folder in it, expected one for each class");
    put_png("b", "1.png", 4, 4, false, 50);
    ck_fails(image_folder_pack(dir, packed, &huge, &p, &err), AS_E_TOO_LARGE, err,
             "2 images of 300 x 300 pixels");
    ck_fails(image_folder_pack(dir, packed, &stopping, &p, &err), AS_E_UNAVAILABLE, err,
             "interrupted");
    put_text("b/2.jpg");
    ck_fails(image_folder_pack(dir, packed, &plain, &p, &err), AS_E_INVAL, err,
             "b/2.jpg: neither a PNG nor a JPEG image");
    (void)snprintf(path, sizeof path, "%s/c", dir);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_fails(image_folder_pack(dir, packed, &plain, &p, &err), AS_E_INVAL, err, "c has no image");
    ck_fails(image_folder_pack("/nonexistent", packed, &plain, &p, &err), AS_E_NOT_FOUND, err,
             "/nonexistent");
    ck_assert_int_ne(access(packed, F_OK), 0);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("image_folder");
    TCase *t = tcase_create("image_folder");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, classes_by_name);
    tcase_add_test(t, numbers_as_classes);
    tcase_add_test(t, resized_and_equal_bytes);
    tcase_add_test(t, refused);
    suite_add_tcase(s, t);
    return s;
}
