#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/temp_file.h"
#include "tests/support/check_main.h"

static struct as_err err;
static char dir[64];

static void setup(void)
{
    (void)snprintf(dir, sizeof dir, "/tmp/assay-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(setenv("TMPDIR", dir, 1), 0);
}

static void teardown(void)
{
    ck_assert_int_eq(file_remove_tree(dir, NULL), AS_OK);
}

/* What is written at the beginning is read again from there. */
static void check_usable(int fd)
{
    char got[4] = {0};
    ck_assert_int_eq(write(fd, "abc", 3), 3);
    ck_assert_int_eq(pread(fd, got, 3, 0), 3);
    ck_assert_str_eq(got, "abc");
    ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
}

START_TEST(with_a_name)
{
    char a[TEMP_FILE_PATH], b[TEMP_FILE_PATH];
    AS_AUTO(file_closep) int fd = -1;
    AS_AUTO(file_closep) int other = -1;
    struct stat sb;
    ck_ok(temp_file_create(a, sizeof a, &fd, &err), err);
    ck_ok(temp_file_create(b, sizeof b, &other, &err), err);
    ck_assert_str_ne(a, b);
    ck_assert_int_eq(strncmp(a, dir, strlen(dir)), 0);
    ck_assert_int_eq(stat(a, &sb), 0);
    ck_assert_int_eq(sb.st_mode & 0777, 0600);
    check_usable(fd);
}
END_TEST

START_TEST(without_a_name)
{
    AS_AUTO(file_closep) int fd = -1;
    struct stat sb;
    ck_ok(temp_file_open(&fd, &err), err);
    ck_assert_int_eq(fstat(fd, &sb), 0);
    ck_assert_uint_eq(sb.st_nlink, 0);
    check_usable(fd);
    ck_assert_int_eq(rmdir(dir), 0); /* nothing is left in the folder */
    ck_assert_int_eq(mkdir(dir, 0700), 0);
}
END_TEST

START_TEST(folder_is_not_there)
{
    char path[TEMP_FILE_PATH] = "x";
    int fd = -1;
    ck_assert_int_eq(setenv("TMPDIR", "/nowhere", 1), 0);
    ck_fails(temp_file_create(path, sizeof path, &fd, &err), AS_E_IO, err,
             "no temporary file /nowhere/");
    ck_assert_str_eq(path, "");
    ck_assert_int_eq(fd, -1);
    ck_fails(temp_file_open(&fd, &err), AS_E_IO, err, "/nowhere/");
    ck_assert_int_eq(fd, -1);
}
END_TEST

START_TEST(path_does_not_fit)
{
    char path[8] = "x";
    int fd = -1;
    ck_fails(temp_file_create(path, sizeof path, &fd, &err), AS_E_IO, err, "TMPDIR is too long");
    ck_assert_str_eq(path, "");
    ck_assert_int_eq(fd, -1);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("temp_file");
    TCase *t = tcase_create("temp_file");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, with_a_name);
    tcase_add_test(t, without_a_name);
    tcase_add_test(t, folder_is_not_there);
    tcase_add_test(t, path_does_not_fit);
    suite_add_tcase(s, t);
    return s;
}
