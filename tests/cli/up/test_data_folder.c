#include "cli/up/data_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/up/supervisor.h"
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

START_TEST(lock_and_logs)
{
    struct as_err err = {0};
    struct data_folder f, second;
    ck_ok(data_folder_open(&f, dir, &err), err);
    data_folder_publish(&f, "http://127.0.0.1:1");
    ck_fails(data_folder_open(&second, dir, &err), AS_E_CONFLICT, err, "http://127.0.0.1:1");
    char pid[32];
    (void)snprintf(pid, sizeof pid, "pid %d", (int)getpid());
    ck_assert_ptr_nonnull(strstr(err.msg, pid));
    data_folder_close(&second);
    for (int i = 0; i < 6; i++) {
        char text[8];
        AS_AUTO(as_freep) char *log = data_folder_new_log(&f, "x");
        ck_assert_int_ne(access(log, F_OK), 0);
        (void)snprintf(text, sizeof text, "%d", i);
        ck_ok(file_replace(log, text, 1, 0600, &err), err);
    }
    AS_AUTO(as_freep) char *oldest = file_join(f.logs, "x.log.3");
    AS_AUTO(as_freep) char *gone = file_join(f.logs, "x.log.4");
    AS_AUTO(as_freep) char *text = supervisor_log_end(oldest);
    ck_assert_str_eq(text, "2");
    ck_assert_int_ne(access(gone, F_OK), 0);
    data_folder_close(&f);
    ck_ok(data_folder_open(&f, dir, &err), err); /* the lock is free again */
    data_folder_close(&f);
}
END_TEST

/* XDG_DATA_HOME says where data belongs, for root too. */
START_TEST(the_default_follows_xdg_data_home)
{
    struct as_err err = {0};
    struct data_folder f;
    AS_AUTO(as_freep) char *expected = file_join(dir, "assay");
    AS_AUTO(as_freep) char *real = NULL;
    ck_assert_int_eq(setenv("XDG_DATA_HOME", dir, 1), 0);
    ck_ok(data_folder_open(&f, NULL, &err), err);
    real = realpath(expected, NULL);
    ck_assert_ptr_nonnull(real);
    ck_assert_str_eq(f.path, real);
    data_folder_close(&f);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("data_folder");
    TCase *t = tcase_create("data_folder");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, lock_and_logs);
    tcase_add_test(t, the_default_follows_xdg_data_home);
    suite_add_tcase(s, t);
    return s;
}
