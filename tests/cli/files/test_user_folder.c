#include "cli/files/user_folder.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "tests/support/check_main.h"

static void check_folder(const char *variable, const char *home, const char *want)
{
    struct as_err err = {0};
    AS_AUTO(as_freep) char *path = NULL;
    ck_assert_int_eq(variable ? setenv("XDG_STATE_HOME", variable, 1) : unsetenv("XDG_STATE_HOME"),
                     0);
    ck_assert_int_eq(home ? setenv("HOME", home, 1) : unsetenv("HOME"), 0);
    ck_ok(user_folder_find("XDG_STATE_HOME", ".local/state", &path, &err), err);
    ck_assert_str_eq(path, want);
}

START_TEST(variable_then_home)
{
    check_folder("/state", "/home/x", "/state/assay");
    check_folder("relative", "/home/x", "/home/x/.local/state/assay");
    check_folder("", "/home/x", "/home/x/.local/state/assay");
    check_folder(NULL, "/home/x", "/home/x/.local/state/assay");
}
END_TEST

START_TEST(no_home)
{
    struct as_err err = {0};
    char *path = NULL;
    ck_assert_int_eq(unsetenv("XDG_STATE_HOME"), 0);
    ck_assert_int_eq(setenv("HOME", "relative", 1), 0);
    ck_fails(user_folder_find("XDG_STATE_HOME", ".local/state", &path, &err), AS_E_NOT_FOUND, err,
             "XDG_STATE_HOME");
    ck_assert_ptr_null(path);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("user_folder");
    TCase *t = tcase_create("user_folder");
    tcase_add_test(t, variable_then_home);
    tcase_add_test(t, no_home);
    suite_add_tcase(s, t);
    return s;
}
