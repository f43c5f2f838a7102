/* The error record: what is filled, and what a prefix keeps. */
#include "base/status.h"

#include <string.h>

#include "tests/support/check_main.h"

START_TEST(filled)
{
    struct as_err err = {0};
    ck_assert_int_eq(as_fail_at(&err, AS_E_INVAL, "/x", "is %d", 3), AS_E_INVAL);
    ck_assert_int_eq(err.code, AS_E_INVAL);
    ck_assert_str_eq(err.msg, "is 3");
    ck_assert_str_eq(err.pointer, "/x");
    ck_assert_int_eq(as_fail(&err, AS_E_IO, "%s again", err.msg), AS_E_IO);
    ck_assert_str_eq(err.msg, "is 3 again");
    ck_assert_str_eq(err.pointer, "");
    ck_assert_int_eq(as_fail(NULL, AS_E_IO, "nobody reads it"), AS_E_IO);
}
END_TEST

START_TEST(out_of_memory)
{
    struct as_err err = {.pointer = "/old"};
    ck_assert_int_eq(as_fail_nomem(&err), AS_E_NOMEM);
    ck_assert_int_eq(err.code, AS_E_NOMEM);
    ck_assert_str_eq(err.msg, "out of memory");
    ck_assert_str_eq(err.pointer, "");
    ck_assert_int_eq(as_fail_nomem(NULL), AS_E_NOMEM);
}
END_TEST

START_TEST(prefix_keeps_the_pointer)
{
    struct as_err err = {0};
    as_status st = as_fail_at(&err, AS_E_INVAL, "/x", "is 3");
    ck_assert_int_eq(as_err_prefix(&err, st, "file %s", "a"), AS_E_INVAL);
    ck_assert_str_eq(err.msg, "file a: is 3");
    ck_assert_str_eq(err.pointer, "/x");
}
END_TEST

TEST_SUITE()
{
    Suite *su = suite_create("status");
    TCase *c = tcase_create("status");
    tcase_add_test(c, filled);
    tcase_add_test(c, out_of_memory);
    tcase_add_test(c, prefix_keeps_the_pointer);
    suite_add_tcase(su, c);
    return su;
}
