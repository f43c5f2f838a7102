/* The small helpers of this folder: JSON texts, temporary folders, roots. */
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"
#include "tests/support/roots.h"
#include "tests/support/temp_folder.h"

START_TEST(json_with_either_quote)
{
    JSON_AUTO plain = json_plain("{\"a\":\"it's\"}");
    JSON_AUTO quoted = json_of("{'a': 'x'}");
    ck_assert_str_eq(json_string_value(json_object_get(plain, "a")), "it's");
    ck_assert_str_eq(json_string_value(json_object_get(quoted, "a")), "x");
}
END_TEST

START_TEST(folders_are_new_and_go_with_their_files)
{
    char one[TEMP_FOLDER_SIZE], two[TEMP_FOLDER_SIZE];
    temp_folder_make(one);
    temp_folder_make(two);
    ck_assert_str_ne(one, two);
    AS_AUTO(as_freep) char *file = file_join(one, "file");
    struct as_err err;
    ck_ok(file_replace(file, "x", 1, 0600, &err), err);
    temp_folder_remove(one);
    ck_assert_int_ne(access(one, F_OK), 0);
    ck_assert_int_eq(access(two, F_OK), 0);
    temp_folder_remove(two);
}
END_TEST

START_TEST(roots_hold_what_they_should)
{
    AS_AUTO(as_freep) char *this_file = file_join(source_root(), "tests/support/test_helpers.c");
    AS_AUTO(as_freep) char *ninja = file_join(build_root(), "build.ninja");
    ck_assert_int_eq(access(this_file, R_OK), 0);
    ck_assert_int_eq(access(ninja, R_OK), 0);
    ck_assert(this_file[0] == '/' && ninja[0] == '/');
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("support_helpers");
    TCase *t = tcase_create("helpers");
    tcase_add_test(t, json_with_either_quote);
    tcase_add_test(t, folders_are_new_and_go_with_their_files);
    tcase_add_test(t, roots_hold_what_they_should);
    suite_add_tcase(s, t);
    return s;
}
