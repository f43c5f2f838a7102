#include "cli/session/request.h"

#include "base/str.h"
#include "tests/support/check_main.h"

START_TEST(refs)
{
    struct as_err err = {0};
    struct trial_ref r;
    ck_ok(request_parse_ref("digits/12", false, &r, &err), err);
    ck_assert_str_eq(r.sweep, "digits");
    ck_assert_int_eq(r.number, 12);
    ck_ok(request_parse_ref("digits", true, &r, &err), err);
    ck_assert_int_eq(r.number, -1);
    ck_fails(request_parse_ref("digits", false, &r, &err), AS_E_USAGE, err, "SWEEP/NUMBER");
    ck_fails(request_parse_ref("digits/x", false, &r, &err), AS_E_USAGE, err, "'x'");
    ck_fails(request_parse_ref("digits/-1", false, &r, &err), AS_E_USAGE, err, "-1");
    ck_fails(request_parse_ref("", true, &r, &err), AS_E_USAGE, err, "SWEEP");
    struct str path = {0};
    ck_ok(request_parse_ref("a b/3", false, &r, &err), err);
    request_path(&path, &r, "log");
    ck_assert_str_eq(str_cstr(&path), "/v1/sweeps/a%20b/trials/3/log");
    str_done(&path);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("request");
    TCase *t = tcase_create("request");
    tcase_add_test(t, refs);
    suite_add_tcase(s, t);
    return s;
}
