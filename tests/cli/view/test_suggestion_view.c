#include "cli/view/suggestion_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/commands/client_name.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"

START_TEST(lines_for_eval)
{
    struct as_err err = {0};
    struct str b = {0};
    JSON_AUTO s = json_plain("{\"number\":3,\"attempt\":2,\"seed\":\"81\",\"params\":{\"lr\":0.01,"
                             "\"opt.kind\":\"it's $(rm -rf /)\",\"deep\":true,\"β\":2},"
                             "\"inactive\":[\"mom\",\"γ\"]}");
    ck_ok(suggestion_view_shell("digits", s, &b, &err), err);
    ck_assert_str_eq(str_cstr(&b),
                     "ASSAY_SWEEP='digits'\n"
                     "ASSAY_NUMBER=3\n"
                     "ASSAY_ATTEMPT=2\n"
                     "ASSAY_SEED='81'\n"
                     "ASSAY_PARAMS='{\"lr\":0.01,\"opt.kind\":\"it'\\''s $(rm -rf /)\","
                     "\"deep\":true,\"β\":2}'\n"
                     "ASSAY_PARAM_lr='0.01'\n"
                     "ASSAY_PARAM_opt_kind='it'\\''s $(rm -rf /)'\n"
                     "ASSAY_PARAM_deep='true'\n"
                     "unset ASSAY_PARAM_mom\n");
    str_done(&b);
}
END_TEST

START_TEST(a_shell_takes_what_was_meant)
{
    struct as_err err = {0};
    struct str b = {0};
    char line[200] = "";
    JSON_AUTO s = json_plain("{\"number\":1,\"attempt\":1,\"seed\":\"5\",\"params\":{\"x\":"
                             "\"a'b\\\"c`d`$HOME\\\\ e\"},\"inactive\":[]}");
    ck_ok(suggestion_view_shell("s", s, &b, &err), err);
    str_puts(&b, "printf '%s\\n' \"$ASSAY_PARAM_x\"\n");
    ck_ok(str_check(&b, &err), err);
    ck_assert_int_eq(setenv("TEST_LINES", b.s, 1), 0);
    FILE *f = popen("eval \"$TEST_LINES\"", "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, f));
    ck_assert_int_eq(pclose(f), 0);
    ck_assert_str_eq(line, "a'b\"c`d`$HOME\\ e\n");
    str_done(&b);
}
END_TEST

START_TEST(two_names_for_one_variable)
{
    struct as_err err = {0};
    struct str b = {0};
    JSON_AUTO s = json_plain("{\"number\":1,\"params\":{\"a-b\":1},\"inactive\":[\"a.b\"]}");
    ck_fails(suggestion_view_shell("s", s, &b, &err), AS_E_INVAL, err, "ASSAY_PARAM_a_b");
    str_done(&b);
}
END_TEST

START_TEST(names_of_clients)
{
    char name[CLIENT_NAME_SIZE], again[CLIENT_NAME_SIZE];
    client_name_default(name);
    ck_assert_str_eq(name, client_name_default(again));
    ck_assert(client_name_is_ours(name));
    ck_assert(!client_name_is_ours("somebody@else-1-2"));
    ck_assert_uint_le(strlen(name), 63);
    ck_assert_uint_eq(strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                   "._:@-"),
                      strlen(name));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("suggestion_view");
    TCase *t = tcase_create("suggestion_view");
    tcase_add_test(t, lines_for_eval);
    tcase_add_test(t, a_shell_takes_what_was_meant);
    tcase_add_test(t, two_names_for_one_variable);
    tcase_add_test(t, names_of_clients);
    suite_add_tcase(s, t);
    return s;
}
