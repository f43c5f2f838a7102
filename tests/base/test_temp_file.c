/* Temporary files: where they are, who may read them, and what is left of them. */
#include "base/temp_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/check_main.h"

static struct as_err err;
static char dir[] = "/tmp/test-temp-file-XXXXXX";

START_TEST(with_a_name)
{
    char path[256];
    struct stat by_name, by_fd;
    int fd = -1;
    ck_ok(temp_file_create(path, sizeof path, &fd, &err), err);
    ck_assert_int_eq(strncmp(path, dir, strlen(dir)), 0);
    ck_assert_int_eq(stat(path, &by_name), 0);
    ck_assert_int_eq(fstat(fd, &by_fd), 0);
    ck_assert_uint_eq(by_name.st_ino, by_fd.st_ino);
    ck_assert_uint_eq(by_fd.st_mode & 0777, 0600);
    ck_assert_int_eq(unlink(path), 0);
    close(fd);
}
END_TEST

START_TEST(without_a_name)
{
    char got[4] = "";
    int fd = -1;
    ck_ok(temp_file_open(&fd, &err), err);
    ck_assert_int_eq(write(fd, "abc", 3), 3);
    ck_assert_int_eq(pread(fd, got, 3, 0), 3);
    ck_assert_str_eq(got, "abc");
    close(fd);
    ck_assert_int_eq(rmdir(dir), 0); /* nothing is left in it */
    ck_assert_int_eq(mkdir(dir, 0700), 0);
}
END_TEST

START_TEST(nowhere)
{
    char path[256], small[8];
    int fd = -1;
    ck_fails(temp_file_create(small, sizeof small, &fd, &err), AS_E_IO, err, "too long");
    setenv("TMPDIR", "/nonexistent", 1);
    ck_fails(temp_file_create(path, sizeof path, &fd, &err), AS_E_IO, err, "/nonexistent/");
    ck_fails(temp_file_open(&fd, &err), AS_E_IO, err, "cannot create the temporary file");
    ck_assert_int_eq(fd, -1);
}
END_TEST

static void make_folder(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    setenv("TMPDIR", dir, 1);
}

static void remove_folder(void)
{
    rmdir(dir);
    memcpy(dir + strlen(dir) - 6, "XXXXXX", 6);
}

TEST_SUITE()
{
    Suite *su = suite_create("temp_file");
    TCase *c = tcase_create("temp_file");
    tcase_add_checked_fixture(c, make_folder, remove_folder);
    tcase_add_test(c, with_a_name);
    tcase_add_test(c, without_a_name);
    tcase_add_test(c, nowhere);
    suite_add_tcase(su, c);
    return su;
}
