/* The bytes of a file as an image: whole, unchanged by what becomes of the file, and errors as of
 * file_read(). */
#include "base/file_image.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

#define BYTES 100001 /* some pages and a part of one */

static char folder[TEMP_FOLDER_SIZE], path[TEMP_FOLDER_SIZE + 16], bytes[BYTES];
static struct as_err err;

static void begin(void)
{
    temp_folder_make(folder);
    (void)snprintf(path, sizeof path, "%s/file", folder);
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (char)(i * 7 + i / 251);
    ck_ok(file_replace(path, bytes, BYTES, 0600, &err), err);
}

static void end(void)
{
    temp_folder_remove(folder);
}

/* A program that writes the file anew, shorter, changes no byte and ends nobody. */
START_TEST(stays_as_it_was)
{
    AS_AUTO(file_image_done) struct file_image image = {0};
    ck_ok(file_image_read(path, BYTES, &image, &err), err);
    ck_assert_int_eq(truncate(path, 10), 0);
    ck_assert_uint_eq(image.len, BYTES);
    ck_assert_int_eq(memcmp(image.at, bytes, BYTES), 0);
}
END_TEST

START_TEST(refuses_as_reading_does)
{
    struct file_image image = {0};
    ck_fails(file_image_read(path, BYTES - 1, &image, &err), AS_E_TOO_LARGE, err, "");
    ck_assert_int_eq(unlink(path), 0);
    ck_fails(file_image_read(path, BYTES, &image, &err), AS_E_NOT_FOUND, err, path);
    ck_fails(file_image_read(folder, BYTES, &image, &err), AS_E_IO, err, "");
    ck_assert_ptr_null(image.at);
}
END_TEST

/* What is no file of a disk, or empty, is read. */
START_TEST(others_are_read)
{
    AS_AUTO(file_image_done) struct file_image image = {0};
    AS_AUTO(file_image_done) struct file_image none = {0};
    ck_ok(file_image_read("/proc/self/status", BYTES, &image, &err), err);
    ck_assert(!image.is_mapped && image.len > 100);
    ck_assert_int_eq(truncate(path, 0), 0);
    ck_ok(file_image_read(path, BYTES, &none, &err), err);
    ck_assert_uint_eq(none.len, 0);
}
END_TEST

START_TEST(of_memory)
{
    AS_AUTO(file_image_done) struct file_image image = {0};
    int fd = memfd_create("test", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_fails(file_image_map(dup(fd), BYTES, &image, &err), AS_E_INVAL, err, "empty");
    ck_assert_int_eq((int)write(fd, bytes, BYTES), BYTES);
    ck_fails(file_image_map(dup(fd), 10, &image, &err), AS_E_TOO_LARGE, err, "at most 10");
    ck_ok(file_image_map(fd, BYTES, &image, &err), err);
    ck_assert(image.is_mapped);
    ck_assert_int_eq(memcmp(image.at, bytes, BYTES), 0);
    ck_assert_int_lt((int)write(fd, bytes, 1), 0); /* it was taken */
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("file_image");
    TCase *t = tcase_create("file_image");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, stays_as_it_was);
    tcase_add_test(t, refuses_as_reading_does);
    tcase_add_test(t, others_are_read);
    tcase_add_test(t, of_memory);
    suite_add_tcase(s, t);
    return s;
}
