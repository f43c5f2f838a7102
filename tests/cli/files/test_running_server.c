#include "cli/files/running_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

static char dir[TEMP_FOLDER_SIZE];

static void setup(void)
{
    temp_folder_make(dir);
}

static void teardown(void)
{
    temp_folder_remove(dir);
}

/* The newest note of a live process is used; notes of dead processes are removed. */
START_TEST(notes)
{
    struct as_err err = {0};
    struct running_server s = {0};
    char path[100];
    ck_assert_int_eq(setenv("XDG_STATE_HOME", dir, 1), 0);
    ck_fails(running_server_read(NULL, NULL, &s, &err), AS_E_NOT_FOUND, err, "assay up");
    ck_ok(running_server_write("http://127.0.0.1:7", "/t/admin.token", dir, &err), err);
    ck_ok(running_server_read(NULL, NULL, &s, &err), err);
    ck_assert_str_eq(s.url, "http://127.0.0.1:7");
    ck_assert_str_eq(s.token_file, "/t/admin.token");
    running_server_done(&s);
    ck_fails(running_server_read("http://127.0.0.1:8", NULL, &s, &err), AS_E_NOT_FOUND, err,
             "assay up");
    ck_ok(running_server_read("http://127.0.0.1:7", NULL, &s, &err), err);
    running_server_done(&s);
    (void)snprintf(path, sizeof path, "%s/assay/up/1.json", dir);
    static const char dead[] = "{\"url\": \"http://x\", \"token_file\": \"t\", \"pid\": 1, "
                               "\"start\": 999999999999, \"since\": 99999999999999}";
    ck_ok(file_replace(path, dead, strlen(dead), 0600, &err), err);
    ck_ok(running_server_read(NULL, NULL, &s, &err), err);
    ck_assert_str_eq(s.url, "http://127.0.0.1:7");
    ck_assert_int_ne(access(path, F_OK), 0);
    running_server_done(&s);
    running_server_remove();
    ck_fails(running_server_read(NULL, NULL, &s, &err), AS_E_NOT_FOUND, err, "assay up");
}
END_TEST

/* The note of a data folder, by any path to it; of no other folder, and none before it exists. */
START_TEST(data_folders)
{
    struct as_err err = {0};
    struct running_server s = {0};
    char data[100], link[100], other[100];
    (void)snprintf(data, sizeof data, "%s/data", dir);
    (void)snprintf(link, sizeof link, "%s/link", dir);
    (void)snprintf(other, sizeof other, "%s/other", dir);
    ck_assert_int_eq(setenv("XDG_STATE_HOME", dir, 1), 0);
    ck_assert_int_eq(mkdir(data, 0700) | mkdir(other, 0700) | symlink("data", link), 0);
    ck_ok(running_server_write("http://127.0.0.1:7", "/t/admin.token", data, &err), err);
    ck_ok(running_server_read(NULL, data, &s, &err), err);
    ck_assert_str_eq(s.url, "http://127.0.0.1:7");
    running_server_done(&s);
    ck_ok(running_server_read(NULL, link, &s, &err), err);
    running_server_done(&s);
    ck_fails(running_server_read(NULL, other, &s, &err), AS_E_NOT_FOUND, err, "assay up");
    (void)snprintf(other, sizeof other, "%s/none", dir);
    ck_fails(running_server_read(NULL, other, &s, &err), AS_E_NOT_FOUND, err, "assay up");
    ck_fails(running_server_read("http://127.0.0.1:8", data, &s, &err), AS_E_NOT_FOUND, err,
             "assay up");
    running_server_remove();
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("running_server");
    TCase *t = tcase_create("running_server");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, notes);
    tcase_add_test(t, data_folders);
    suite_add_tcase(s, t);
    return s;
}
