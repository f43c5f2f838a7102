#include "cli/commands/verbs.h"

#include "cli/session/request.h"
#include "tests/support/check_main.h"

START_TEST(suggestions)
{
    ck_assert_str_eq(verbs_suggest("sweps"), "sweeps");
    ck_assert_str_eq(verbs_suggest("trails"), "trials");
    ck_assert_str_eq(verbs_suggest("ls"), "sweeps");
    ck_assert_str_eq(verbs_suggest("stop"), "cancel");
    ck_assert_str_eq(verbs_suggest("ensembel"), "ensemble");
    ck_assert_ptr_null(verbs_suggest("xyzzy-plugh"));
    ck_assert_ptr_nonnull(verbs_find("run"));
    ck_assert_ptr_null(verbs_find("Run"));
}
END_TEST

START_TEST(refs)
{
    struct as_err err = {0};
    struct trial_ref r;
    ck_ok(request_parse_ref("digits/12", false, &r, &err), err);
    ck_assert_str_eq(r.sweep, "digits");
    ck_assert_int_eq(r.number, 12);
    ck_ok(request_parse_ref("digits", true, &r, &err), err);
    ck_assert_int_eq(r.number, -1);
    ck_fails(request_parse_ref("digits", false, &r, &err), AS_E_INVAL, err, "SWEEP/NUMBER");
    ck_fails(request_parse_ref("digits/x", false, &r, &err), AS_E_INVAL, err, "'x'");
    ck_fails(request_parse_ref("digits/-1", false, &r, &err), AS_E_INVAL, err, "-1");
    ck_fails(request_parse_ref("", true, &r, &err), AS_E_INVAL, err, "SWEEP");
    struct str path = {0};
    ck_ok(request_parse_ref("a b/3", false, &r, &err), err);
    request_path(&path, &r, "log");
    ck_assert_str_eq(str_cstr(&path), "/v1/sweeps/a%20b/trials/3/log");
    str_done(&path);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("verbs");
    TCase *t = tcase_create("verbs");
    tcase_add_test(t, suggestions);
    tcase_add_test(t, refs);
    suite_add_tcase(s, t);
    return s;
}
