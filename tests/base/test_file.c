#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "tests/support/check_main.h"

static char dir[64];

static void setup(void)
{
    (void)snprintf(dir, sizeof dir, "/tmp/assay-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void teardown(void)
{
    ck_assert_int_eq(file_remove_tree(dir, NULL), AS_OK);
}

START_TEST(replace_and_read)
{
    struct as_err err;
    AS_AUTO(as_freep) char *path = file_join(dir, "f");
    AS_AUTO(as_freep) char *got = NULL;
    size_t len;
    ck_ok(file_replace(path, "one", 3, 0600, &err), err);
    ck_ok(file_replace(path, "three", 5, 0600, &err), err);
    ck_ok(file_read(path, 100, &got, &len, &err), err);
    ck_assert_uint_eq(len, 5);
    ck_assert_str_eq(got, "three");
    struct stat sb;
    ck_assert_int_eq(stat(path, &sb), 0);
    ck_assert_int_eq(sb.st_mode & 0777, 0600);
    char *none = NULL;
    ck_fails(file_read(path, 4, &none, NULL, &err), AS_E_TOO_LARGE, err, "larger");
    ck_fails(file_read("/nowhere/x", 4, &none, NULL, &err), AS_E_NOT_FOUND, err, "/nowhere/x");
}
END_TEST

/* /dev/full stands in for a full disk: ENOSPC on every write. */
START_TEST(publish_and_sync)
{
    struct as_err err;
    AS_AUTO(as_freep) char *path = file_join(dir, "f");
    AS_AUTO(as_freep) char *got = NULL;
    AS_AUTO(as_freep) char *missing = file_join(dir, "none");
    const struct iovec parts[] = {{"on", 2}, {"", 0}, {"e", 1}};
    struct stat st;
    size_t len;
    ck_ok(file_replace(path, "before", 6, 0600, &err), err);
    ck_ok(file_publishv(path, parts, 3, 0640, &err), err);
    ck_ok(file_read(path, 100, &got, &len, &err), err);
    ck_assert_str_eq(got, "one");
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0640);
    ck_ok(file_sync(path, &err), err);
    ck_ok(file_sync(dir, &err), err);
    ck_fails(file_sync(missing, &err), AS_E_NOT_FOUND, err, "none");
}
END_TEST

START_TEST(full_disk_is_named)
{
    struct as_err err;
    FILE *f = fopen("/dev/full", "w");
    ck_assert_ptr_nonnull(f);
    ck_fails(file_write_all(fileno(f), "x", 1, &err), AS_E_IO, err, "No space left");
    (void)fclose(f);
}
END_TEST

START_TEST(folders)
{
    struct as_err err;
    AS_AUTO(as_freep) char *path = file_join(dir, "a/b/c");
    ck_ok(file_mkdirs(path, 0700, &err), err);
    ck_ok(file_mkdirs(path, 0700, &err), err);
    ck_fails(file_mkdirs("", 0700, &err), AS_E_IO, err, "without a name");
    AS_AUTO(as_freep) char *file = file_join(path, "x");
    ck_fails(file_mkdirs("/dev/null", 0700, &err), AS_E_IO, err, "is not a folder");
    ck_ok(file_replace(file, "abc", 3, 0600, &err), err);
    char hex[SHA256_HEX_SIZE];
    int64_t size;
    ck_ok(sha256_of_file(file, hex, &size, &err), err);
    ck_assert_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    ck_assert_int_eq(size, 3);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("file");
    TCase *t = tcase_create("file");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, replace_and_read);
    tcase_add_test(t, publish_and_sync);
    tcase_add_test(t, full_disk_is_named);
    tcase_add_test(t, folders);
    suite_add_tcase(s, t);
    return s;
}
